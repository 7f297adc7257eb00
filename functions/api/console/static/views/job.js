// A job's life, as a timeline, and what may be done to it.
import { html } from '../core/html.js'
import { call, get, post, seg, some } from '../core/api.js'
import { useLive } from '../core/live.js'
import { Facts, Json, Loaded, Reason, Status, Time, length, look } from '../core/form.js'
import { Act, ask } from '../core/ask.js'
import { Late } from './jobs.js'

const ended = new Set(['SUCCEEDED', 'DEAD', 'CANCELLED', 'SKIPPED', 'EXPIRED'])
const words = { due: 'its due time', retry: 'its next attempt', snooze: 'the end of its snooze', worker: 'a free worker', pause: 'a pause to be lifted',
  handler: 'a worker that knows its task', parents: 'the jobs before it' }

// lifeOf returns the moments of a job's life in order: {at, what, tone, text, gap}. due_at moves with each
// retry, so the first due time is that of the first start less its lateness.
export function lifeOf(job, attempts) {
  const moments = [{ at: job.created_at, what: 'Accepted', tone: 'idle', text: job.schedule && !job.manual ? `made by schedule ${job.schedule}` : '' }]
  const first = attempts.find((a) => a.started_at)
  const due = first ? new Date(new Date(first.started_at) - (first.start_lateness_ms || 0)).toISOString() : job.due_at
  moments.push({ at: due, what: 'Due', tone: 'wait', text: job.nominal_at && job.nominal_at !== due ? 'nominal time and jitter' : '' })
  for (const a of attempts) {
    if (a.started_at) {
      moments.push({ at: a.started_at, what: `Attempt ${a.attempt} claimed and started`, tone: 'busy', text: a.worker ? `by ${a.worker}` : '', late: a.start_lateness_ms })
    }
    if (a.finished_at || a.outcome === 'lost') {
      moments.push({ at: a.finished_at, what: `Attempt ${a.attempt} ${a.outcome}`, tone: look(a.outcome)[0], reason: a.error,
        took: a.finished_at && a.started_at ? new Date(a.finished_at) - new Date(a.started_at) : undefined })
    }
  }
  if (job.status === 'RUNNING' && job.started_at && !moments.some((m) => m.at === job.started_at && m.tone === 'busy')) {
    moments.push({ at: job.started_at, what: `Attempt ${job.attempt} claimed and started`, tone: 'busy', text: '', late: job.start_lateness_ms })
  }
  if (job.cancel_requested_at) moments.push({ at: job.cancel_requested_at, what: 'Asked to stop', tone: 'warn', text: '' })
  if (job.finished_at) moments.push({ at: job.finished_at, what: `Settled: ${job.status.toLowerCase()}`, tone: look(job.status)[0], reason: attempts.length ? undefined : job.status_reason })
  const order = moments.map((m, i) => ({ ...m, i })).sort((a, b) => (a.at && b.at ? new Date(a.at) - new Date(b.at) : 0) || a.i - b.i)
  if (!ended.has(job.status)) {
    order.push({ what: job.status === 'RUNNING' ? 'Running' : `Waits for ${words[job.waiting_for] || 'its turn'}`, tone: 'next', text: '',
      at: job.status !== 'RUNNING' && new Date(job.due_at) > Date.now() ? job.due_at : undefined })
  }
  return order.map((m, i) => ({ ...m, gap: i > 0 && m.at && order[i - 1].at ? new Date(m.at) - new Date(order[i - 1].at) : 0 }))
}

export function Life({ job, attempts }) {
  return html`<ol class="life">${lifeOf(job, attempts).map((m) => html`<li class=${m.tone}>
    ${m.gap > 0 && html`<span class="gap mute small">${length(m.gap)}</span>`}
    <p><strong>${m.what}</strong> ${m.text} ${m.late !== undefined && html`<${Late} ms=${m.late} />`}${
      m.took !== undefined && html`<span class="mute">after ${length(m.took)}</span>`}</p>
    ${m.at && html`<p class="small"><${Time} at=${m.at} /></p>`}
    ${m.reason && html`<p class="small"><${Reason} of=${m.reason} /></p>`}</li>`)}</ol>`
}

export function Job({ id, can }) {
  const live = useLive(async (signal) => {
    const [job, attempts] = await Promise.all([get(`/jobs/${seg(id)}`, {}, signal), some(`/jobs/${seg(id)}/attempts`, {}, { signal })])
    return { job, attempts: attempts.items, more: attempts.more }
  }, [id])
  const { job, attempts, more } = live.data || {}
  const act = (verb, danger, title, text) => async () => {
    await ask({ title, text, danger, touches: '1 job', verb: title, done_text: `${title}: done.`,
      act: async () => {
        const said = verb === 'DELETE' ? await call('DELETE', `/jobs/${seg(id)}`) : await post(`/jobs/${seg(id)}/${verb}`)
        if (verb === 'DELETE') location.hash = '#/jobs'
        else if (said.job_id && said.job_id !== id) location.hash = `#/jobs/${said.job_id}`
        else live.again()
      } })
  }
  return html`<${Loaded} of=${live}>${job && html`
    <div class="row">
      <${Status} of=${job.status} /> <${Reason} of=${job.status_reason} />
      <span class="push"></span>
      ${can('write') && ['SCHEDULED', 'QUEUED'].includes(job.status) && html`<${Act} label="Run now" on=${act('run-now', false, 'Run the job now', 'It is due at once, and does not wait for its time.')} />`}
      ${can('admin') && job.status === 'DEAD' && !job.redriven_by && html`<${Act} primary label="Redrive" on=${act('redrive', false, 'Redrive the job', 'A new job of the same work is made, due now.')} />`}
      ${can('write') && !ended.has(job.status) && !job.cancel_requested_at && html`<${Act} danger label="Cancel" on=${act('cancel', true, 'Cancel the job', 'What runs is asked to stop; what waits does not start.')} />`}
      ${can('write') && ended.has(job.status) && !job.run_id && html`<${Act} danger label="Delete" on=${act('DELETE', true, 'Delete the job', 'It is forgotten, with its payload, result and attempts.')} />`}
    </div>
    ${job.progress && html`<p><progress value=${job.progress.done} max=${job.progress.total || undefined} aria-label="Progress"></progress> ${job.progress.done}${
      job.progress.total ? ` of ${job.progress.total}` : ''} ${job.progress.note || ''}</p>`}
    <div class="halves">
      <section aria-labelledby="life"><h2 id="life">Timeline</h2><${Life} job=${job} attempts=${attempts} />
        ${more && html`<p class="mute small">The first ${attempts.length} attempts are shown.</p>`}</section>
      <section aria-labelledby="facts"><h2 id="facts">What it is</h2>
        <${Facts} of=${[
          ['Task', job.task], ['Due', html`<${Time} at=${job.due_at} />`], ['Nominal', job.nominal_at && html`<${Time} at=${job.nominal_at} />`],
          ['Lateness', job.start_lateness_ms !== undefined && length(job.start_lateness_ms)], ['Pool', job.pool], ['Priority', job.priority],
          ['Timeout', job.timeout], ['Attempts', `${job.attempt} of ${job.max_attempts}`],
          ['Retry', job.retry && `${job.retry.initial_delay} × ${job.retry.factor}, at most ${job.retry.max_delay}`],
          ['Schedule', job.schedule && html`<a href=${`#/schedules/${job.schedule}`}>${job.schedule}</a>`],
          ['Run', job.run_id && html`<a href=${`#/runs/${job.run_id}/${job.node}`}>${job.node}${job.item === undefined ? '' : ` [${job.item}]`}</a>`],
          ['After', job.after && job.after.map((a) => html`<a href=${`#/jobs/${a}`} class="id">${a}</a> `)],
          ['Redrive of', job.redrive_of && html`<a href=${`#/jobs/${job.redrive_of}`} class="id">${job.redrive_of}</a>`],
          ['Redriven by', job.redriven_by && html`<a href=${`#/jobs/${job.redriven_by}`} class="id">${job.redriven_by}</a>`],
          ['Tags', job.tags && Object.entries(job.tags).map(([k, v]) => html`<code>${k}=${v}</code> `)],
        ]} />
        <${Json} label="Payload" value=${job.payload} /><${Json} label="Result" value=${job.result} /><${Json} label="Metadata" value=${job.metadata} />
      </section>
    </div>`}<//>`
}

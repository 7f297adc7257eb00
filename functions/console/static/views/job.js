// A job's life, as a timeline, and what may be done to it.
import { html } from '../core/html.js'
import { get, getText, post, remove, seg, some } from '../core/api.js'
import { now } from '../core/clock.js'
import { useLive } from '../core/live.js'
import { Facts, Json, Loaded, Reason, Time, jobTitle, length, look } from '../core/form.js'
import { Act, ask, why } from '../core/ask.js'
import { useTitle } from '../core/shown.js'
import { JobStatus, Late, held, keyed } from './jobs.js'

const ended = new Set(['SUCCEEDED', 'DEAD', 'CANCELLED', 'SKIPPED', 'EXPIRED'])
const words = { due: 'its due time', retry: 'its next attempt', snooze: 'the end of its snooze',
  worker: 'a free worker', pause: 'a pause to be lifted', handler: 'a worker that knows its task',
  parents: 'the jobs before it' }

// waits says what a job waits for.
const waits = (job) => {
  if (job.paused) return 'its resume'
  if (job.limit) return `${keyed(job.limit)}, ${job.limit.ahead.toLocaleString()} ahead`
  return words[job.waiting_for] || 'its turn'
}

// lifeOf returns the moments of a job's life in order: {at, what, tone, text, late, took, reason, gap}. due_at moves
// with each retry, so the first due time is that of the first start less its lateness.
export function lifeOf(job, attempts) {
  const moments = []
  const add = (at, what, tone, more) => moments.push({ at, what, tone, ...more })
  add(job.created_at, 'Accepted', 'idle',
    { text: job.schedule && !job.manual ? `made by schedule ${job.schedule}` : '' })
  const first = attempts.find((a) => a.started_at)
  const due = first ? new Date(new Date(first.started_at) - (first.start_lateness_ms || 0)).toISOString() : job.due_at
  add(due, 'Due', 'wait', { text: job.nominal_at && job.nominal_at !== due ? 'the nominal time and its spread' : '' })
  const started = (n, at, late, worker) => add(at, `Attempt ${n} claimed and started`, 'busy',
    { late, text: worker ? `by ${worker}` : '' })
  for (const a of attempts) {
    if (a.started_at) started(a.attempt, a.started_at, a.start_lateness_ms, a.worker)
    if (a.finished_at || a.outcome === 'lost') {
      add(a.finished_at, `Attempt ${a.attempt} ${a.outcome}`, look(a.outcome)[0], { reason: a.error,
        took: a.finished_at && a.started_at ? new Date(a.finished_at) - new Date(a.started_at) : undefined })
    }
  }
  if (job.status === 'RUNNING' && job.started_at && !attempts.some((a) => a.started_at === job.started_at)) {
    started(job.attempt, job.started_at, job.start_lateness_ms)
  }
  if (job.cancel_requested_at) add(job.cancel_requested_at, 'Asked to stop', 'warn')
  if (job.finished_at) {
    add(job.finished_at, `Settled: ${job.status.toLowerCase()}`, look(job.status)[0],
      { reason: attempts.length ? undefined : job.status_reason })
  }
  const order = moments.map((m, i) => ({ ...m, i }))
    .sort((a, b) => (a.at && b.at ? new Date(a.at) - new Date(b.at) : 0) || a.i - b.i)
  if (!ended.has(job.status)) {
    const runs = job.status === 'RUNNING'
    order.push({ what: runs ? 'Running' : `Waits for ${waits(job)}`, tone: 'next',
      at: !runs && new Date(job.due_at) > now() ? job.due_at : undefined })
  }
  return order.map((m, i) => ({ ...m,
    gap: i > 0 && m.at && order[i - 1].at ? new Date(m.at) - new Date(order[i - 1].at) : 0 }))
}

export const Life = ({ job, attempts }) => html`
  <ol class="life">${lifeOf(job, attempts).map((m) => html`<li class=${m.tone}>
    ${m.gap > 0 && html`<span class="gap mute small">${length(m.gap)} later</span>`}
    <p><strong>${m.what}</strong> ${m.text} <${Late} ms=${m.late} />
      ${m.took !== undefined && html`<span class="mute">after ${length(m.took)}</span>`}</p>
    ${m.at && html`<p class="small"><${Time} at=${m.at} /></p>`}
    ${m.reason && html`<p class="small"><${Reason} of=${m.reason} /></p>`}</li>`)}</ol>`

export function Job({ id, can }) {
  const path = `/jobs/${seg(id)}`
  const live = useLive(async (signal) => {
    const [job, attempts] = await Promise.all([get(path, {}, signal), some(`${path}/attempts`, {}, { signal })])
    const [holds, log] = await Promise.all([held(job) ? holdsOf(job, signal) : [], logOf(job, path, signal)])
    return { job, attempts: attempts.items, more: attempts.more, holds, log }
  }, [id])
  const { job, attempts, more, holds, log } = live.data || {}
  useTitle(jobTitle(job))
  return html`<${Loaded} of=${live}>${job && html`
    <div class="row"><${JobStatus} of=${job} />
      <${Reason} of=${job.status_reason} /><span class="push"></span>
      <${Verbs} job=${job} path=${path} can=${can} live=${live} /></div>
    ${holds.map((h) => html`<${Hold} of=${h} />`)}
    <${Progress} of=${job.progress} />
    <div class="halves">
      <section aria-labelledby="life"><h2 id="life">Timeline</h2><${Life} job=${job} attempts=${attempts} />
        ${more && html`<p class="mute small">The first ${attempts.length} attempts are shown.</p>`}</section>
      <section aria-labelledby="facts"><h2 id="facts">Details</h2><${Facts} of=${factsOf(job)} />
        <${Json} label="Payload" value=${job.payload} /><${Json} label="Result" value=${job.result} />
        <${Json} label="Metadata" value=${job.metadata} /></section>
    </div>
    ${log && html`<section class="json" aria-labelledby="log"><h2 id="log">Log of attempt ${log.attempt}</h2>
      <pre tabindex="0" aria-labelledby="log">${log.text}</pre></section>`}`}<//>`
}

// logOf returns the log of the newest attempt that has written one, or null.
async function logOf(job, path, signal) {
  for (let n = job.attempt; n > 0 && n > job.attempt - 2; n--) {
    const text = await getText(`${path}/attempts/${n}/log`, signal).catch(() => '') // the job is shown all the same
    if (typeof text === 'string' && text) return { attempt: n, text }
    if (ended.has(job.status)) return null
  }
  return null
}

// ofTimes says whether a job is of a schedule's own times: the pause of a schedule does not hold a run on request.
const ofTimes = (job) => job.schedule && !job.manual && !job.backfill

// holdsOf returns the pauses that hold a job, each with what it is of and, but for the job's own, where it is shown.
async function holdsOf(job, signal) {
  const maybe = (path) => get(path, {}, signal).catch(() => null) // the job is shown all the same
  const [pauses, schedule, run] = await Promise.all([some('/pauses', {}, { most: 1000, signal }).catch(() => null),
    ofTimes(job) && maybe(`/schedules/${seg(job.schedule)}`), job.run_id && maybe(`/runs/${seg(job.run_id)}`)])
  const named = { all: 'everything', [`task:${job.task}`]: `the task ${job.task}` }
  return [
    job.paused && { ...job.paused, what: 'this job' },
    ...(pauses?.items || []).filter((p) => Object.hasOwn(named, p.scope))
      .map((p) => ({ ...p, what: named[p.scope], to: '#/pauses' })),
    schedule?.paused && { ...schedule.paused, what: `the schedule ${job.schedule}`,
      to: `#/schedules/${job.schedule}` },
    run?.status === 'PAUSED' && { what: 'its run', to: `#/runs/${job.run_id}` },
  ].filter(Boolean)
}

// Hold says what a pause is of, by whom it was made and why.
const Hold = ({ of: h }) => html`<p class="note">Held by the pause of ${h.to
  ? html`<a href=${h.to}>${h.what}</a>` : h.what}${h.since && html`: ${h.reason ? `“${h.reason}”` : 'no reason given'},
    by ${h.by || 'an unknown caller'}, <${Time} at=${h.since} />`}${
  h.until && html`, until <${Time} at=${h.until} />`}</p>`

const waiting = new Set(['BLOCKED', 'SCHEDULED', 'QUEUED'])

function Verbs({ job, path, can, live }) {
  const verb = (title, text, danger, act) => () => ask({ title, text, danger, touches: '1 job', verb: title,
    no: danger && 'Keep it', done_text: `${title}: done.`, act: async () => { await act(); await live.again() } })
  const post_ = (name) => async () => {
    const said = await post(`${path}/${name}`)
    if (said.job_id !== job.job_id) location.hash = `#/jobs/${said.job_id}` // a redrive makes a new one
  }
  const pause = () => ask({ title: 'Pause the job', verb: 'Pause the job', touches: '1 job', fields: [why],
    text: 'It does not start until it is resumed. Its start_within and expire_after go on.',
    done_text: 'Pause the job: done.',
    act: async ({ reason }) => { await post(`${path}/pause`, reason ? { reason } : {}); await live.again() } })
  return html`
    ${can('write') && html`<a class="button" href=${`#/jobs/new!?like=${job.job_id}`}>Make another</a>`}
    ${can('write') && waiting.has(job.status) && !job.paused && html`<${Act} label="Pause" on=${pause} />`}
    ${can('write') && job.paused && html`<${Act} primary label="Resume"
      on=${verb('Resume the job', 'It starts when it is due, unless something else holds it.', false,
        post_('resume'))} />`}
    ${can('write') && ['SCHEDULED', 'QUEUED'].includes(job.status) && !job.paused && html`<${Act} label="Run now"
      on=${verb('Run the job now', 'It is due at once, and does not wait for its time.', false, post_('run-now'))} />`}
    ${can('admin') && job.status === 'DEAD' && !job.redriven_by && html`<${Act} primary label="Redrive"
      on=${verb('Redrive the job', 'A new job of the same work is made, due now.', false, post_('redrive'))} />`}
    ${can('write') && !ended.has(job.status) && !job.cancel_requested_at && html`<${Act} danger label="Cancel"
      on=${verb('Cancel the job', 'What runs is asked to stop; what waits does not start.', true, post_('cancel'))} />`}
    ${can(job.status === 'DEAD' ? 'admin' : 'write') && ended.has(job.status) && !job.run_id && html`<${Act} danger
      label="Delete" on=${() => ask({ title: 'Delete the job', verb: 'Delete the job', danger: true, touches: '1 job',
        text: 'It is forgotten, with its payload, result and attempts.', done_text: 'The job is deleted.',
        act: async () => { await remove(path); location.hash = '#/jobs' } })} />`}`
}

const Progress = ({ of }) => of && html`<p>
  <progress value=${of.done} max=${of.total || undefined} aria-label="Progress"></progress>
  ${` ${of.done}${of.total ? ` of ${of.total}` : ''} ${of.note || ''}`}</p>`

const link = (room, to, text) => to && html`<a href=${`#/${room}/${to}`} class=${text ? '' : 'id'}>${text || to}</a>`

const factsOf = (job) => [
  ['Job', html`<code>${job.job_id}</code>`], ['Task', job.task],
  ['Status', held(job) && `${job.status.toLowerCase()}, and paused`], ['Due', html`<${Time} at=${job.due_at} />`],
  ['Nominal', job.nominal_at && html`<${Time} at=${job.nominal_at} />`],
  ['Lateness', job.start_lateness_ms !== undefined && length(job.start_lateness_ms)],
  ['Pool', job.pool], ['Priority', job.priority], ['Timeout', job.timeout],
  ['Attempts', `${job.attempt} of ${job.max_attempts}`],
  ['Retry', job.retry && `${job.retry.initial_delay} × ${job.retry.factor}, at most ${job.retry.max_delay}`],
  ['Limits', job.limits?.map((l) => html`<a href=${`#/limits/${l.name}`}>${keyed(l).slice(6)}</a> `)],
  ['Unique key', job.unique && html`<code>${job.unique.key}</code> until ${job.unique.until}, on conflict
    ${job.unique.on_conflict}`],
  ['Schedule', link('schedules', job.schedule, job.schedule)],
  ['Backfill', link('operations', job.backfill)],
  ['Run', job.run_id && link('runs', `${job.run_id}/${job.node}`,
    job.item === undefined ? job.node : `${job.node} [${job.item}]`)],
  ['After', job.after?.map((a) => html`${link('jobs', a)} `)],
  ['Redrive of', link('jobs', job.redrive_of)], ['Redriven by', link('jobs', job.redriven_by)],
  ['Tags', job.tags && Object.entries(job.tags).map(([k, v]) => `${k}=${v}`)
    .map((tag) => html`<a href=${`#/jobs?tag=${seg(tag)}`}><code>${tag}</code></a> `)],
]

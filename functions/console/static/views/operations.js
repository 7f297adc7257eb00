// Operations: what is done to many at once, how far it is, and what may be done about it.
import { html } from '../core/html.js'
import { get, post, seg } from '../core/api.js'
import { useLive, usePages } from '../core/live.js'
import { Empty, Facts, Id, Loaded, Reason, Refused, Status, Time, plural, short } from '../core/form.js'
import { Act, ask } from '../core/ask.js'
import { useTitle } from '../core/shown.js'
import { Table } from '../core/table.js'

const names = { backfill: 'Backfill', cancel: 'Cancel jobs', pause: 'Pause jobs', resume: 'Resume jobs',
  run_now: 'Run jobs now', reschedule: 'Reschedule jobs', reprioritize: 'Give jobs a priority', delete: 'Delete jobs',
  redrive: 'Redrive dead letters', purge: 'Purge dead letters', retry_runs: 'Retry runs', cancel_runs: 'Cancel runs' }

// nameOf says in words what an operation does.
export const nameOf = (o) => `${names[o.action] || o.action}${o.schedule ? ` of ${o.schedule}` : ''}`

// over says that an operation has ended; one whose canary failed may still go on by proceed.
export const over = (o) => ['SUCCEEDED', 'FAILED', 'STOPPED'].includes(o.status)

const thing = (o) => ({ backfill: 'time', retry_runs: 'run', cancel_runs: 'run' }[o.action] || 'job')
const failedCanary = (o) => o.status === 'FAILED' && o.status_reason?.code === 'canary_failed'

// inCanary says that the others wait for the first ones: nothing but those has been touched.
const inCanary = (o) => Boolean(o.canary) && !over(o)
  && o.done + o.failed <= o.canary.succeeded + o.canary.failed + o.canary.open

// stateOf says in words how far an operation is.
export function stateOf(o) {
  if (o.status === 'COUNTING') return `It counts what matches: ${plural(o.matched, thing(o))} so far.`
  const ended = o.done + o.skipped + o.failed
  const parts = [[o.skipped, 'left out'], [o.failed, 'refused'], [o.action === 'backfill' && o.open, 'open']]
    .filter(([n]) => n).map(([n, what]) => `, ${n.toLocaleString()} ${what}`)
  return `${ended.toLocaleString()} of ${plural(o.matched, thing(o))}${parts.join('')}.`
}

// canaryOf says in words how the first ones do; '' where nothing waits for them.
export function canaryOf(o) {
  if (!o.canary) return ''
  const { succeeded, failed, open } = o.canary
  const counts = [`${succeeded.toLocaleString()} succeeded`, failed > 0 && `${failed.toLocaleString()} failed`,
    open > 0 && `${open.toLocaleString()} open`].filter(Boolean).join(', ')
  const waits = inCanary(o) && o.matched > o.done + o.skipped + o.failed
  return `Of the first ones: ${counts}.${waits ? ' The others wait for them.' : ''}`
}

// Progress shows how far an operation is.
export const Progress = ({ of: o }) => html`<p><progress value=${o.done + o.skipped + o.failed}
    max=${Math.max(o.matched, 1)} aria-label=${`Progress: ${nameOf(o)}`}></progress>${` ${stateOf(o)}`}</p>
  ${canaryOf(o) && html`<p class="small">${canaryOf(o)}</p>`}
  ${o.estimated_end_at && html`<p class="small mute">It ends about <${Time} at=${o.estimated_end_at} />.</p>`}`

// Verbs are what may be done about an operation now; done is called after each.
export function Verbs({ of: o, done }) {
  const verb = (name, label, text, more) => html`<${Act} label=${label} ...${more} on=${() => ask({
    title: `${label}: ${nameOf(o)}`, verb: label, text, touches: '1 operation', danger: Boolean(more?.danger),
    done_text: `${label}: done.`,
    act: async () => { await post(`/operations/${seg(o.operation_id)}/${name}`); await done() } })} />`
  const left = plural(Math.max(0, o.matched - o.done - o.skipped - o.failed), thing(o))
  return html`
    ${o.status === 'PAUSED' && verb('resume', 'Resume', 'It goes on where it was.', { primary: true })}
    ${!over(o) && o.status !== 'PAUSED' && verb('pause', 'Pause',
      'Nothing further is touched until it is resumed. What it has started goes on.')}
    ${(failedCanary(o) || inCanary(o)) && verb('proceed', 'Proceed',
      `The other ${left} follow, however the first ones end.`)}
    ${!over(o) && verb('stop', 'Stop', 'It ends here and cannot be resumed. What it has started goes on.',
      { danger: true })}`
}

// Brief is an operation on a page about something else.
export const Brief = ({ of: o, can, done }) => html`<section class="card"
  aria-label=${`${nameOf(o)} …${short(o.operation_id)}`}>
  <div class="row"><h2><a href=${`#/operations/${o.operation_id}`}>${nameOf(o)}</a></h2><${Status} of=${o.status} />
    <span class="push"></span>${can('write') && html`<${Verbs} of=${o} done=${done} />`}</div>
  <${Progress} of=${o} />
  ${o.status_reason && html`<p><${Reason} of=${o.status_reason} /></p>`}
  ${o.errors[0] && html`<p class="small">The first refusal: <code>${o.errors[0].code}</code> ${o.errors[0].detail}</p>`}
  <p class="small mute">Begun <${Time} at=${o.created_at} />${o.reason && ` – “${o.reason}”`}</p></section>`

const whyOf = (o) => [o.by, o.reason && `“${o.reason}”`].filter(Boolean).join(': ')

const columns = [
  { name: 'Operation', cell: (o) => html`<a href=${`#/operations/${o.operation_id}`}>${nameOf(o)}</a>
    <div class="mute small">${whyOf(o)}</div>` },
  { name: 'Status', cell: (o) => html`<${Status} of=${o.status} /><div class="thin small">${stateOf(o)}</div>` },
  { name: 'Progress', class: 'wide', cell: stateOf },
  { name: 'Begun', cell: (o) => html`<${Time} at=${o.created_at} />` },
]

// Operations lists them, newest first.
export function Operations() {
  const pages = usePages('/operations', {}, 'operation_id')
  return html`<${Loaded} of=${pages}>${pages.rows.length === 0
    ? html`<${Empty} title="No operations yet.">One acts on many jobs or runs, such as a redrive of${' '}
      <a href="#/dead-letters">dead letters</a> or a backfill of a <a href="#/schedules">schedule</a>.<//>`
    : html`<p class="mute small">${plural(pages.rows.length, 'operation')}${pages.cursor && ' so far'}, newest first</p>
      <${Table} caption="Operations" rows=${pages.rows} columns=${columns} id=${(o) => o.operation_id} />
      <${Refused} error=${pages.stuck} />${pages.cursor && html`<p class="center"><button type="button"
        onClick=${pages.more}>Older operations</button></p>`}`}<//>`
}

const factsOf = (o) => [
  ['Operation', html`<code>${o.operation_id}</code>`], ['Begun', html`<${Time} at=${o.created_at} />`],
  ['By', o.by], ['Reason', o.reason],
  ['Ended', o.ended_at && html`<${Time} at=${o.ended_at} />`],
  ['Schedule', o.schedule && html`<a href=${`#/schedules/${o.schedule}`}>${o.schedule}</a>`],
  ['From', o.from && html`<${Time} at=${o.from} />`], ['To, exclusive', o.to && html`<${Time} at=${o.to} />`],
  ['Matched', o.matched.toLocaleString()], ['Done', o.done.toLocaleString()],
  ['Left out', o.skipped.toLocaleString()], ['Refused', o.failed.toLocaleString()],
]

// Operation shows one with what may be done about it.
export function Operation({ id, can }) {
  const live = useLive((signal) => get(`/operations/${seg(id)}`, {}, signal), [id], 1_000)
  const o = live.data
  useTitle(o && `${nameOf(o)} …${short(o.operation_id)}`)
  const room = o && ['retry_runs', 'cancel_runs'].includes(o.action) ? 'runs' : 'jobs'
  return html`<${Loaded} of=${live}>${o && html`
    <div class="row"><${Status} of=${o.status} /><${Reason} of=${o.status_reason} /><span class="push"></span>
      ${can('write') && html`<${Verbs} of=${o} done=${live.again} />`}</div>
    <section class="card" aria-labelledby="far"><h2 id="far">How far it is</h2><${Progress} of=${o} />
      ${failedCanary(o) && html`<p>The others are as they were. Mend what the first ones failed of, and begin once more;
        or proceed, and the others follow all the same.</p>`}</section>
    <${Facts} of=${factsOf(o)} />
    ${o.errors.length > 0 && html`<h2>What was refused or failed</h2><${Table} caption="What was refused or failed"
      rows=${o.errors} id=${(e) => e.job_id} columns=${[
        { name: room === 'runs' ? 'Run' : 'Job', cell: (e) => html`<${Id} of=${e.job_id} to=${room} />` },
        { name: 'Why', cell: (e) => html`<code>${e.code}</code> <span class="name">${e.detail}</span>` }]} />
      ${o.failed > o.errors.length && html`<p class="mute small">The first ${o.errors.length} of ${
        o.failed.toLocaleString()} are shown.</p>`}`}`}<//>`
}

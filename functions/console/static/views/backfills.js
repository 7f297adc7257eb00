// The past times of a schedule that are made on request: asking for them, and how far each backfill is.
import { html } from '../core/html.js'
import { post, some } from '../core/api.js'
import { Reason, Status, Time, plural } from '../core/form.js'
import { Act, ask, why } from '../core/ask.js'
import { Table } from '../core/table.js'
import { now as serverNow } from '../core/clock.js'

const shown = 10 // of a schedule, its newest

// backfillsOf reads the newest backfills of a schedule among the newest operations.
export async function backfillsOf(name, signal) {
  const { items } = await some('/operations', {}, { most: 200, pages: 1, signal })
  return items.filter((o) => o.schedule === name).slice(0, shown)
}

// inputTime is a time as an input of the user's zone takes it, with its whole minutes only.
const inputTime = (at) => new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16)

// backfillBody is the body of a backfill as it was asked for.
export const backfillBody = (v) => ({ from: new Date(v.from).toISOString(), to: new Date(v.to).toISOString(),
  max_running: Number(v.max_running), order: v.order, again: v.again === 'all',
  ...(v.reason ? { reason: v.reason } : {}) })

export function Backfill({ s, path, live }) {
  const now = serverNow()
  const touches = async (v) => {
    if (!v.from || !v.to) return ''
    const d = await post(`${path}/backfills`, { ...backfillBody(v), dry_run: true })
    const matched = d.matched ?? d.matched_at_least
    return `${d.matched === undefined ? 'at least ' : ''}${plural(matched - d.skipped, 'time')}${
      d.skipped ? ` and leaves out ${d.skipped.toLocaleString()} that ran` : ''}`
  }
  return html`<${Act} label="Backfill…" on=${() => ask({ title: `Make past times of ${s.name}`, verb: 'Make them',
    text: 'Their jobs are due at once. What the schedule says of overlap and catch-up does not apply to them.',
    touches, done_text: 'The backfill has begun.', fields: [
      { name: 'from', label: 'From', type: 'datetime-local', required: true, value: inputTime(now - 86_400_000) },
      { name: 'to', label: 'To, exclusive', type: 'datetime-local', required: true, value: inputTime(now) },
      { name: 'max_running', label: 'At a time', type: 'number', min: 1, max: 100, value: 1, required: true },
      { name: 'order', label: 'Order', value: 'oldest',
        options: [['oldest', 'the oldest first'], ['newest', 'the newest first']] },
      { name: 'again', label: 'Times that ran', value: '', options: [['', 'are left out'], ['all', 'are made, too']] },
      why],
    act: async (v) => { await post(`${path}/backfills`, backfillBody(v)); await live.again() } })} />`
}

const ended = (o) => o.done + o.skipped + o.failed

function Progress({ of: o }) {
  const parts = [[o.failed, 'failed'], [o.skipped, 'left out'], [o.open, 'open']]
    .filter(([n]) => n).map(([n, what]) => `, ${n.toLocaleString()} ${what}`).join('')
  return html`<progress value=${ended(o)} max=${Math.max(o.matched, 1)}
      aria-label=${`Progress of the backfill from ${o.created_at}`}></progress>
    ${` ${ended(o).toLocaleString()} of ${plural(o.matched, 'time')}${parts}`}`
}

function Verbs({ of: o, live }) {
  const verb = (name, label, question) => html`<${Act} label=${label} danger=${name === 'stop'} on=${() => ask({
    title: `${label} the backfill`, verb: label, touches: '1 backfill', done_text: `${label}: done.`,
    act: async () => { await post(`/operations/${o.operation_id}/${name}`); await live.again() }, ...question })} />`
  const goesOn = 'Nothing new is made; what is open goes on.'
  if (o.status === 'PAUSED') return html`${verb('resume', 'Resume')} ${verb('stop', 'Stop', { danger: true })}`
  if (o.status !== 'RUNNING') return null
  return html`${verb('pause', 'Hold', { text: goesOn })} ${verb('stop', 'Stop', { danger: true, text: goesOn })}`
}

export function Backfills({ list, can, live }) {
  if (list.length === 0) return null
  return html`<h2>Backfills</h2><${Table} caption="Backfills" rows=${list} id=${(o) => o.operation_id} columns=${[
    { name: 'Status', class: 'st', cell: (o) => html`<a href=${`#/operations/${o.operation_id}`}
      aria-label=${`Backfill ${o.status.toLowerCase()}`}><${Status} of=${o.status} /></a>` },
    { name: 'Progress', cell: (o) => html`<${Progress} of=${o} />
      ${o.status_reason && html`<${Reason} of=${o.status_reason} />`}` },
    { name: 'Times', class: 'wide', cell: (o) => html`<${Time} at=${o.from} /> – <${Time} at=${o.to} />` },
    { name: 'Began', class: 'wide', cell: (o) => html`<${Time} at=${o.created_at} /> ${o.reason || ''}` },
    ...(can('write') ? [{ name: 'Change', cell: (o) => html`<${Verbs} of=${o} live=${live} />` }] : []),
  ]} />`
}

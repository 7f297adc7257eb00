// Schedules with their next times, and how their newest time went.
import { html } from '../core/html.js'
import { seg } from '../core/api.js'
import { usePages, useRow } from '../core/live.js'
import { Empty, Loaded, Status, Time, plural } from '../core/form.js'
import { Pages } from '../core/table.js'

export const rule = (c) => c.cron || (c.every && `every ${c.every}`) || c.rrule || plural(c.dates?.length || 0, 'date')

// calendars are the calendars of a schedule, also of one that has no list; rules names the rules of all.
export const calendars = (s) => s.calendars || [s.calendar]
export const rules = (s) => calendars(s).map(rule).join('; ')

function Next({ of: s }) {
  if (s.paused) return html`<${Status} of="paused" />`
  if (s.next[0]) return html`<${Time} at=${s.next[0]} />`
  return html`<span class="mute">${s.ended_by ? 'ended' : 'none'}</span>`
}

// Outcome is what one nominal time led to; of one that ran, how its job or run goes, with a link to it.
export function Outcome({ of: o }) {
  const status = html`<${Status} of=${(o.outcome === 'ran' && o.status) || o.outcome} />`
  if (!o.job_id && !o.run_id) return status
  return html`<a href=${o.run_id ? `#/runs/${o.run_id}` : `#/jobs/${o.job_id}`}>${status}</a>`
}

// Last is the newest time that has passed, which lists of schedules leave out.
function Last({ of: s }) {
  const { data, error } = useRow(`/schedules/${seg(s.name)}`)
  if (data?.last) return html`<${Outcome} of=${data.last} />`
  return html`<span class="mute" title=${error?.message}>${data ? 'none yet' : error ? 'unknown' : '…'}</span>`
}

const columns = [
  { name: 'Name', cell: (s) => html`<a href=${`#/schedules/${s.name}`} title=${s.name}>${s.name}</a>
    <code class="thin mute">${rules(s)}</code>` },
  { name: 'Rule', class: 'wide', cell: (s) => html`<code title=${rules(s)}>${rules(s)}</code>` },
  { name: 'Next', class: 'when', cell: (s) => html`<${Next} of=${s} />` },
  { name: 'After that', class: 'wide', cell: (s) => !s.paused && s.next[1]
    && html`<${Time} at=${s.next[1]} bare />` },
  { name: 'Makes', class: 'wide', cell: (s) => (s.dag ? html`run of <a href=${`#/dags/${s.dag.name}`}>${s.dag.name}</a>`
    : `${s.job.task} job`) },
  { name: 'Last', class: 'st', cell: (s) => html`<${Last} of=${s} />` },
]

export function Schedules({ can }) {
  const pages = usePages('/schedules', {}, 'name')
  const make = can('write') && html`<a class="button" href="#/schedules/new!">New schedule</a>`
  return html`<${Loaded} of=${pages}>${pages.rows.length === 0 && !pages.cursor
    ? html`<${Empty} title="No schedules yet.">${make}<//>`
    : html`<div class="row">
        <span class="mute">${plural(pages.rows.length, 'schedule')}${pages.cursor && ' so far'}</span>
        <span class="push"></span>${make}</div>
      <${Pages} caption="Schedules" of=${pages} columns=${columns} id=${(s) => s.name} more="More schedules" />`}<//>`
}

// Jobs, newest first, by filters that the address keeps; any number of rows.
import { html } from '../core/html.js'
import { seg } from '../core/api.js'
import { usePages } from '../core/live.js'
import { Empty, Id, Loaded, Status, Time, from, length, plural } from '../core/form.js'
import { Field } from '../core/ask.js'
import { Pages } from '../core/table.js'

const Bulk = from(() => import('./bulk.js'), 'Bulk')

const statuses = ['BLOCKED', 'SCHEDULED', 'QUEUED', 'RUNNING', 'SUCCEEDED', 'DEAD', 'CANCELLED', 'SKIPPED', 'EXPIRED']

// Late shows how late a job started, and loudly what is a second or more.
export function Late({ ms }) {
  if (ms === undefined) return null
  return ms < 1000 ? html`<span class="mute">+${length(ms)}</span>` : html`<span class="late">${length(ms)} late</span>`
}

// Owner is the schedule or the node that a job was made for.
export function Owner({ of: j }) {
  if (j.schedule) return html`<a href=${`#/schedules/${j.schedule}`}>${j.schedule}</a>`
  if (j.run_id) return html`<a href=${`#/runs/${j.run_id}/${j.node}`}>${j.node}</a>`
  return html`<span class="mute">–</span>`
}

// keyed is a limit with its key, as a job waits for it.
export const keyed = (limit) => `limit ${limit.name}${limit.key === null ? '' : `/${limit.key}`}`

// held says whether a pause keeps a job from starting: its own, or one of its task, its schedule or all.
export const held = (j) => Boolean(j.paused) || j.waiting_for === 'pause'

// JobStatus is the status of a job; of one that a pause holds, that.
export const JobStatus = ({ of: j }) => html`<${Status} of=${held(j) ? 'paused' : j.status} />`

// causeOf says in words why a job ended as it did, or what keeps it from starting; '' where there is nothing to say.
export function causeOf(j) {
  if (j.paused) return j.paused.reason || `paused by ${j.paused.by || 'an unknown caller'}`
  if (j.waiting_for === 'pause') return `${j.status.toLowerCase()}, held by a pause`
  if (j.status_reason) return [j.status_reason.code, j.status_reason.message].filter(Boolean).join(': ')
  if (j.limit) return `${keyed(j.limit)} is full, ${j.limit.ahead.toLocaleString()} ahead`
  if (j.waiting_for === 'retry') return `waits for attempt ${j.attempt} of ${j.max_attempts}`
  return j.waiting_for === 'snooze' ? 'snoozed by its handler' : ''
}

// Cause is causeOf on at most two lines, all of it on hover.
const Cause = ({ of: j }) => html`<span class="name" title=${causeOf(j)}>${causeOf(j)}</span>`

export const jobColumns = [
  { name: 'Job', class: 'ids', cell: (j) => html`<${Id} of=${j.job_id} to="jobs" />` },
  { name: 'Status', class: 'st', cell: (j) => html`<${JobStatus} of=${j} />
    <span class="thin mute small"><${Cause} of=${j} /></span>` },
  { name: 'Task', cell: (j) => html`<span class="name" title=${j.task}>${j.task}</span>` },
  { name: 'Made by', class: 'wide', cell: (j) => html`<${Owner} of=${j} />` },
  { name: 'Due', class: 'when', cell: (j) => html`<${Time} at=${j.due_at} />` },
  { name: 'Reason', class: 'wide roomy', cell: (j) => html`<${Cause} of=${j} />` },
  { name: 'Lateness', class: 'wide number took', cell: (j) => html`<${Late} ms=${j.start_lateness_ms} />` },
]

// refilter returns what a field of a filter does: it changes the address, which changes the view.
export const refilter = (room, query, name) => (e) => {
  const next = new URLSearchParams(Object.entries({ ...query, [name]: e.target.value }).filter(([, v]) => v))
  location.replace(`#/${room}${next.size ? `?${next}` : ''}`)
}

// tagFilter is the filter that NAME=VALUE means; the API says what is wrong with one that has no =.
export function tagFilter(text) {
  const [name, ...value] = text.split('=')
  return text ? { [name.trim()]: value.join('=') } : undefined
}

// asQuery is a filter as lists take it; operations take its tags as an object.
export const asQuery = ({ tags, ...filter }) => ({ ...filter,
  ...Object.fromEntries(Object.entries(tags || {}).map(([name, value]) => [`tag.${name}`, value])) })

// given leaves out what a filter does not say.
export const given = (filter) => Object.fromEntries(Object.entries(filter).filter(([, v]) => v))

export function Jobs({ query, can }) {
  const after = query.after && new Date(query.after)
  const filter = given({ status: query.status, task: query.task, schedule: query.schedule, code: query.code,
    id: query.id?.toUpperCase(), tags: tagFilter(query.tag || ''),
    created_after: after && !Number.isNaN(after.getTime()) ? after.toISOString() : undefined })
  const pages = usePages('/jobs', asQuery(filter))
  const field = (name, label, more) => html`<${Field} name=${name} label=${label} value=${query[name] || ''}
    onChange=${refilter('jobs', query, name)} ...${more} />`
  const filtered = Object.values(query).some(Boolean)
  return html`
    <div class="filters" role="search" aria-label="Filter jobs">
      ${field('status', 'Status', { options: [['', 'Any'], ...statuses.map((s) => [s, s.toLowerCase()])] })}
      ${field('task', 'Task')}${field('schedule', 'Schedule')}
      ${field('tag', 'Tag, NAME=VALUE')}${field('code', 'Code of the reason')}${field('id', 'Id begins with')}
      ${field('after', 'Accepted after', { type: 'datetime-local' })}
      ${filtered && html`<a class="button" href="#/jobs">Clear filters</a>`}
      ${can('write') && html`<a class="button"
        href=${`#/jobs/new!${query.task ? `?task=${seg(query.task)}` : ''}`}>New job</a>`}
    </div>
    <${Loaded} of=${pages}>
      ${pages.rows.length === 0 && !pages.cursor
        ? html`<${Empty} title=${filtered ? 'No job matches.' : 'No jobs yet.'}>
          ${filtered ? 'What has expired is gone for good.'
            : html`Make one here, or by <code>POST /v1/jobs</code>.`}<//>`
        : html`
          <div class="row"><p class="mute small">${plural(pages.rows.length, 'job')}${
            pages.cursor && ' so far'}, newest first</p><span class="push"></span>
            ${can('write') && html`<${Bulk} kind="jobs" filter=${filter} can=${can} />`}</div>
          <${Pages} caption="Jobs" of=${pages} columns=${jobColumns} id=${(j) => j.job_id} more="Older jobs" />`}
    <//>`
}

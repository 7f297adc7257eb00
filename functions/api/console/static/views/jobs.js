// Jobs, newest first, by filters that the address keeps; any number of rows.
import { html, useEffect, useMemo, useRef, useState } from '../core/html.js'
import { get } from '../core/api.js'
import { useLive } from '../core/live.js'
import { Empty, Id, Loaded, Refused, Status, Time, length, plural } from '../core/form.js'
import { Field } from '../core/ask.js'
import { LongTable } from '../core/table.js'

const statuses = ['BLOCKED', 'SCHEDULED', 'QUEUED', 'RUNNING', 'SUCCEEDED', 'DEAD', 'CANCELLED', 'SKIPPED', 'EXPIRED']
const open = new Set(['BLOCKED', 'SCHEDULED', 'QUEUED', 'RUNNING'])

// late says how late a job started; nothing for less than a second.
export const Late = ({ ms }) => (ms === undefined ? null
  : html`<span class=${ms >= 1000 ? 'late' : 'mute'}>${ms >= 1000 ? `${length(ms)} late` : `+${length(ms)}`}</span>`)

export const jobColumns = [
  { name: 'Job', class: 'ids', cell: (j) => html`<${Id} of=${j.job_id} to="jobs" />` },
  { name: 'Status', class: 'st', cell: (j) => html`<${Status} of=${j.status} />` },
  { name: 'Task', cell: (j) => html`<span class="name">${j.task}</span>` },
  { name: 'Of', class: 'wide', cell: (j) => (j.schedule ? html`<a href=${`#/schedules/${j.schedule}`}>${j.schedule}</a>`
    : j.run_id ? html`<a href=${`#/runs/${j.run_id}/${j.node}`}>${j.node}</a>` : html`<span class="mute">–</span>`) },
  { name: 'Due', cell: (j) => html`<${Time} at=${j.due_at} />` },
  { name: 'Attempt', class: 'wide number', cell: (j) => `${j.attempt} of ${j.max_attempts}` },
  { name: 'Started', class: 'wide number', cell: (j) => html`<${Late} ms=${j.start_lateness_ms} />` },
]

export function Jobs({ query }) {
  const filter = { status: query.status, task: query.task, schedule: query.schedule,
    created_after: query.after ? new Date(query.after).toISOString() : undefined }
  const asked = JSON.stringify(filter)
  const [older, setOlder] = useState({ items: [], cursor: undefined, error: null })
  const loading = useRef(false)
  const live = useLive((signal) => get('/jobs', { ...filter, limit: 200 }, signal), [asked])
  useEffect(() => setOlder({ items: [], cursor: undefined, error: null }), [asked])
  const rows = useMemo(() => { // the newest page is live; what it pushes down stays, and is not doubled
    const all = new Map()
    for (const j of [...(live.data?.items || []), ...older.items]) if (!all.has(j.job_id)) all.set(j.job_id, j)
    return [...all.values()]
  }, [live.data, older.items])
  const cursor = older.cursor === undefined ? live.data?.next_cursor : older.cursor
  const more = async () => {
    if (loading.current || !cursor || older.error) return
    loading.current = true
    try {
      const page = await get('/jobs', { ...filter, limit: 200, cursor })
      setOlder((o) => ({ items: [...(o.cursor === undefined ? live.data.items : []), ...o.items, ...page.items],
        cursor: page.next_cursor, error: null }))
    } catch (error) { setOlder((o) => ({ ...o, error })) } finally { loading.current = false }
  }
  const change = (name) => (e) => {
    const next = new URLSearchParams(Object.entries({ ...query, [name]: e.target.value }).filter(([, v]) => v))
    location.replace(`#/jobs${next.size ? `?${next}` : ''}`)
  }
  const filtered = Object.values(query).some(Boolean)
  return html`
    <div class="filters" role="search" aria-label="Filter jobs">
      <${Field} name="status" label="Status" value=${query.status || ''} onInput=${change('status')}
        options=${[['', 'Any'], ...statuses.map((s) => [s, s.toLowerCase()])]} />
      <${Field} name="task" label="Task" value=${query.task || ''} onChange=${change('task')} pattern="[a-zA-Z0-9_\\-]{1,64}" />
      <${Field} name="schedule" label="Schedule" value=${query.schedule || ''} onChange=${change('schedule')} />
      <${Field} name="after" label="Accepted after" type="datetime-local" value=${query.after || ''} onChange=${change('after')} />
      ${filtered && html`<a class="button" href="#/jobs">All jobs</a>`}
    </div>
    <${Loaded} of=${live}>
      ${rows.length === 0 && !cursor ? html`<${Empty} title=${filtered ? 'No job matches.' : 'No jobs yet.'}>
        ${filtered ? 'Expired rows are gone for good; others may be of another tenant.' : html`Post one: <code>POST /v1/jobs</code>`}<//>`
      : html`<p class="mute small">${plural(rows.length, 'job')}${cursor ? ' so far' : ''}, newest first${
        rows.some((j) => open.has(j.status)) ? '' : ', none open'}</p>
        <${LongTable} caption="Jobs" columns=${jobColumns} rows=${rows} id=${(j) => j.job_id} onEnd=${more} />
        <${Refused} error=${older.error} />
        ${cursor && html`<p class="center"><button type="button" onClick=${() => { setOlder((o) => ({ ...o, error: null })); more() }}>Older jobs</button></p>`}`}
    <//>`
}

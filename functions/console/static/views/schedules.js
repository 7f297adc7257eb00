// Schedules with their next times; and making one, with its times shown while its calendar is typed.
import { html, useEffect, useState } from '../core/html.js'
import { call, get, put, seg } from '../core/api.js'
import { usePages, useRow } from '../core/live.js'
import { Empty, Loaded, Refused, Status, Time, localTime, plural, zone } from '../core/form.js'
import { Field, ask, say } from '../core/ask.js'
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

// usePreview asks for the next times of a calendar once its typing rests, and drops answers that come too late.
export function usePreview(calendar, count) {
  const [state, set] = useState({ items: null, error: null })
  useEffect(() => {
    set((s) => (calendar ? s : { items: null, error: null }))
    if (!calendar) return undefined
    const stop = new AbortController()
    const t = setTimeout(async () => {
      try {
        const said = await call('POST', '/schedules/preview', { body: { calendar, count }, signal: stop.signal })
        set({ ...said, error: null })
      } catch (error) {
        if (error.name !== 'AbortError') set({ items: null, error })
      }
    }, 200)
    return () => { clearTimeout(t); stop.abort() }
  }, [JSON.stringify(calendar)])
  return state
}

// elsewhere says whether the calendar's clock shows another time than the user's.
const elsewhere = (o) => {
  const at = new Date(o.nominal_at)
  return at.getTime() - at.getTimezoneOffset() * 60_000 !== Date.parse(`${o.local.slice(0, 19)}Z`)
}

// Preview lists the next times of a calendar in the zone `in`, and what is skipped.
export function Preview({ of, in: there = 'UTC' }) {
  return html`<div class="preview"><${Refused} error=${of.error} />
    ${of.items && html`
      <p class="hidden" role="status">${of.items.length > 0 && `Next: ${localTime(of.items[0].due_at)}`}</p>
      ${of.items.length === 0 && html`<p>It never fires.</p>`}
      <ol class="times">${of.items.map((o) => html`<li key=${o.nominal_at}><${Time} at=${o.due_at} />
        ${' '}${o.flags.map((f) => html`<code>${f}</code> `)}
        ${elsewhere(o) && html`<span class="mute small">${o.local.slice(11, 16)} in ${there}</span>`}</li>`)}</ol>`}
    ${of.notes?.map((n) => html`<p class="small">${n}</p>`)}
    ${of.skipped?.slice(0, 5).map((s) => html`<p class="small mute">
      ${s.local.slice(0, 16).replace('T', ' ')} is skipped: ${s.why}</p>`)}</div>`
}

// calendarOf returns the calendar that the form means, or null while there is none.
const calendarOf = (v) => (v.rule.trim()
  ? { [v.kind]: v.rule.trim(), ...(v.timezone ? { timezone: v.timezone } : {}) } : null)

const kinds = { cron: ['cron', 'Cron expression'], every: ['every', 'Every (such as 90s, 5m, 1h)'],
  rrule: ['RRULE', 'RRULE'] }

export function NewSchedule() {
  const [v, set] = useState({ name: '', kind: 'cron', rule: '0 9 * * 1-5', timezone: zone, task: 'echo',
    payload: '{}' })
  const [error, setError] = useState(null)
  const preview = usePreview(calendarOf(v), 8)
  const field = (name, label, more) => html`<${Field} name=${name} label=${label} value=${v[name]} ...${more}
    onInput=${(e) => set({ ...v, [name]: e.target.value })} />`
  const save = async (e) => {
    e.preventDefault()
    setError(null)
    try {
      const path = `/schedules/${seg(v.name)}`
      const job = { task: v.task, ...(v.payload.trim() ? { payload: JSON.parse(v.payload) } : {}) }
      const act = async () => {
        await put(path, { calendar: calendarOf(v), job })
        say(`The schedule ${v.name} is set.`)
        location.hash = `#/schedules/${v.name}`
      }
      const old = await get(path).catch((e) => (e.status === 404 ? null : Promise.reject(e)))
      if (!old) return await act()
      return await ask({ title: `Replace ${v.name}`, verb: 'Replace it', danger: true, act,
        touches: `1 schedule, ${rules(old)}`, text: 'There is a schedule of that name. Its ledger stays.' })
    } catch (refused) {
      return setError(refused)
    }
  }
  return html`<form class="halves" onSubmit=${save}>
    <div class="card"><h2>What it makes</h2>
      ${field('name', 'Name', { required: true, pattern: '[a-zA-Z0-9_\\-]{1,64}', hint: 'Letters, digits, _ and -.' })}
      ${field('task', 'Task', { required: true })}${field('payload', 'Payload, in JSON', { area: true })}</div>
    <div class="card"><h2>When</h2>
      <div class="fields">${field('kind', 'Rule', { options: Object.entries(kinds).map(([k, [name]]) => [k, name]) })}
        ${field('timezone', 'Time zone')}</div>
      ${field('rule', kinds[v.kind][1], { required: true })}
      <h3>Next times</h3><${Preview} of=${preview} in=${v.timezone} /></div>
    <div class="last"><${Refused} error=${error} />
      <div class="row end"><a class="button" href="#/schedules">Cancel</a>
        <button class="primary">Set the schedule</button></div></div></form>`
}

// Schedules with their next times; and making one, with its times shown while its calendar is typed.
import { html, useEffect, useState } from '../core/html.js'
import { call, put, seg, some } from '../core/api.js'
import { useLive } from '../core/live.js'
import { Empty, Loaded, Refused, Status, Time, plural, zone } from '../core/form.js'
import { Field, say } from '../core/ask.js'
import { LongTable } from '../core/table.js'

export const rule = (c) => c.cron || (c.every && `every ${c.every}`) || c.rrule || plural(c.dates?.length || 0, 'date')

export function Schedules({ can }) {
  const live = useLive((signal) => some('/schedules', {}, { most: 5000, pages: 25, signal }), [])
  const make = can('write') && html`<a class="button" href="#/schedules/new!">New schedule</a>`
  return html`<${Loaded} of=${live}>${live.data && (live.data.items.length === 0
    ? html`<${Empty} title="No schedules yet.">${make}<//>`
    : html`<div class="row"><span class="mute">${plural(live.data.items.length, 'schedule')}</span><span class="push"></span>${make}</div>
      <${LongTable} caption="Schedules" rows=${live.data.items} id=${(s) => s.name} columns=${[
        { name: 'Name', cell: (s) => html`<a href=${`#/schedules/${s.name}`}>${s.name}</a>` },
        { name: 'Rule', cell: (s) => html`<code>${rule(s.calendar)}</code>` },
        { name: 'Next', cell: (s) => (s.paused ? html`<${Status} of="paused" />` : s.next[0] ? html`<${Time} at=${s.next[0]} />` : html`<span class="mute">${s.ended_by ? 'ended' : 'none'}</span>`) },
        { name: 'And then', class: 'wide', cell: (s) => !s.paused && s.next.slice(1, 3).map((at, i) => html`${i > 0 && ', '}<${Time} at=${at} bare />`) },
        { name: 'Makes', class: 'wide', cell: (s) => (s.dag ? html`run of <a href=${`#/dags/${s.dag.name}`}>${s.dag.name}</a>` : `${s.job.task} job`) },
        { name: 'Last', class: 'wide', cell: (s) => (s.last ? html`<${Status} of=${s.last.status || s.last.outcome} />` : html`<span class="mute">–</span>`) },
      ]} />`)}<//>`
}

// usePreview asks for the next times of a calendar once its typing rests, and drops answers that come too late.
export function usePreview(calendar, count = 8) {
  const [state, set] = useState({ items: null, error: null })
  const text = JSON.stringify(calendar)
  useEffect(() => {
    if (!calendar) { set({ items: null, error: null }); return undefined }
    const stop = new AbortController()
    const t = setTimeout(async () => {
      try {
        set({ ...(await call('POST', '/schedules/preview', { body: { calendar, count }, signal: stop.signal })), error: null })
      } catch (error) { if (error.name !== 'AbortError') set({ items: null, error }) }
    }, 200)
    return () => { clearTimeout(t); stop.abort() }
  }, [text])
  return state
}

// elsewhere says whether the calendar's clock shows another time than the user's.
const elsewhere = (o) => {
  const at = new Date(o.nominal_at)
  return at.getTime() - at.getTimezoneOffset() * 60_000 !== Date.parse(`${o.local.slice(0, 19)}Z`)
}

export function Preview({ of, zone: there }) {
  return html`<div class="preview" aria-live="polite"><${Refused} error=${of.error} />
    ${of.items && (of.items.length === 0 ? html`<p>It never fires.</p>` : html`<ol class="times">${of.items.map((o) => html`<li key=${o.nominal_at}><${Time} at=${o.due_at} />${
      o.flags.map((f) => html` <code>${f}</code>`)}${elsewhere(o) && html` <span class="mute small">${o.local.slice(11, 16)} in ${there || 'UTC'}</span>`}</li>`)}</ol>`)}
    ${of.notes?.map((n) => html`<p class="small">${n}</p>`)}
    ${of.skipped?.slice(0, 5).map((s) => html`<p class="small mute">${s.local.slice(0, 16).replace('T', ' ')} is skipped: ${s.why}</p>`)}</div>`
}

// calendarOf returns the calendar that the form means, or null while there is none.
const calendarOf = (v) => (v.rule.trim() ? { [v.kind]: v.rule.trim(), ...(v.timezone ? { timezone: v.timezone } : {}) } : null)

export function NewSchedule() {
  const [v, set] = useState({ name: '', kind: 'cron', rule: '0 9 * * 1-5', timezone: zone, task: 'echo', payload: '{}' })
  const [error, setError] = useState(null)
  const preview = usePreview(calendarOf(v))
  const field = (name, label, more) => html`<${Field} name=${name} label=${label} value=${v[name]} onInput=${(e) => set({ ...v, [name]: e.target.value })} ...${more} />`
  const save = async (e) => {
    e.preventDefault()
    try {
      const job = { task: v.task, ...(v.payload.trim() ? { payload: JSON.parse(v.payload) } : {}) }
      await put(`/schedules/${seg(v.name)}`, { calendar: calendarOf(v), job })
      say(`The schedule ${v.name} is set.`)
      location.hash = `#/schedules/${v.name}`
    } catch (refused) { setError(refused) }
  }
  return html`<form class="halves" onSubmit=${save}>
    <div class="card"><h2>What it makes</h2>
      ${field('name', 'Name', { required: true, pattern: '[a-zA-Z0-9_\\-]{1,64}', hint: 'Letters, digits, _ and -. A schedule of that name is replaced.' })}
      ${field('task', 'Task', { required: true })}${field('payload', 'Payload, in JSON', { area: true })}
      <${Refused} error=${error} /><div class="row end"><a class="button" href="#/schedules">Leave it</a><button class="primary">Set the schedule</button></div></div>
    <div class="card"><h2>When</h2>
      <div class="fields">${field('kind', 'Rule', { options: [['cron', 'cron'], ['every', 'every'], ['rrule', 'RRULE']] })}${field('timezone', 'Time zone')}</div>
      ${field('rule', { cron: 'Cron expression', every: 'Every (such as 90s, 5m, 1h)', rrule: 'RRULE' }[v.kind], { required: true })}
      <h3>Next times</h3><${Preview} of=${preview} zone=${v.timezone} /></div></form>`
}

// Small forms of things: times, statuses, lengths, problems, JSON.
import { html, useEffect, useState } from './html.js'
import { now as serverNow } from './clock.js'
import { useClock } from './live.js'
import { shown } from './shown.js'

export const plural = (n, one, many = `${one}s`) => `${n.toLocaleString()} ${n === 1 ? one : many}`

// count says how many there are of a list that may go on.
export const count = ({ items, more }) => `${items.length.toLocaleString()}${more ? '+' : ''}`

// counted is count with what is counted.
export const counted = (list, one) => (list.more ? `${count(list)} ${one}s` : plural(list.items.length, one))

// length writes milliseconds in its two largest units.
export function length(ms) {
  if (ms === undefined || ms === null || Number.isNaN(ms)) return ''
  const sign = ms < 0 ? '−' : ''
  const n = Math.abs(ms)
  if (n < 1000) return `${sign}${Math.round(n)} ms`
  if (n < 60_000) return `${sign}${(n / 1000).toFixed(n < 10_000 ? 1 : 0)} s`
  const s = Math.round(n / 1000)
  const parts = [[Math.floor(s / 86400), 'd'], [Math.floor(s / 3600) % 24, 'h'], [Math.floor(s / 60) % 60, 'min'],
    [s % 60, 's']]
  const first = parts.findIndex(([v]) => v > 0)
  return sign + parts.slice(first, first + 2).filter(([v]) => v > 0).map(([v, unit]) => `${v} ${unit}`).join(' ')
}

// between is the time from one instant to another, in words; '' while one is missing.
export const between = (from, to) => (from && to ? length(new Date(to) - new Date(from)) : '')

const form = (options) => new Intl.DateTimeFormat(undefined, { hourCycle: 'h23', ...options })
const clockForm = form({ hour: '2-digit', minute: '2-digit', second: '2-digit' })
const minuteForm = form({ hour: '2-digit', minute: '2-digit' })
const dayForm = form({ weekday: 'short', month: 'short', day: 'numeric' })
const yearForm = form({ year: 'numeric', month: 'short', day: 'numeric' })
export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
export const minute = (at) => minuteForm.format(at)
export const day = (at) => dayForm.format(at)

// localTime leaves out the day where there is no doubt: today, and half a day around now.
export function localTime(iso, now = serverNow()) {
  const at = new Date(iso)
  const today = at.toDateString() === new Date(now).toDateString()
  if (today || Math.abs(at - now) < 43_200_000) return clockForm.format(at)
  const near = Math.abs(at - now) < 300 * 86_400_000
  return `${(near ? dayForm : yearForm).format(at)}, ${minuteForm.format(at)}`
}

export function relative(iso, now = serverNow()) {
  const ms = new Date(iso) - now
  if (Math.abs(ms) < 1000) return 'now'
  const s = Math.abs(ms) / 1000
  const [n, unit] = s < 60 ? [s, 's'] : s < 3600 ? [s / 60, 'min']
    : s < 172_800 ? [s / 3600, 'h'] : [s / 86_400, 'days']
  return ms < 0 ? `${Math.floor(n)} ${unit} ago` : `in ${Math.floor(n)} ${unit}`
}

// Time shows an instant in the user's zone, how long ago that is, and UTC on hover.
export function Time({ at, bare }) {
  const now = useClock(5000)
  if (!at) return html`<span class="mute">–</span>`
  const utc = `${at.replace('T', ' ').replace('Z', '')} UTC`
  return html`<time datetime=${at} title=${utc}><span class="clock">${localTime(at, now)} </span>
    ${!bare && html`<span class="mute">${relative(at, now)}</span>`}</time>`
}

// looks has a tone and a sign for each status: colour is never all that tells two apart.
const looks = Object.create(null)
for (const [tone, signs] of Object.entries({
  good: { SUCCEEDED: '✓', ran: '✓', succeeded: '✓', active: '●' },
  busy: { RUNNING: '▶' },
  bad: { DEAD: '✕', FAILED: '✕', failed: '✕', missed: '!', lost: '!' },
  warn: { HELD: '‖', PAUSED: '‖', paused: '‖', EXPIRED: '⏱' },
  idle: { CANCELLED: '⊘', STOPPED: '⊘', SKIPPED: '»', skipped: '»', superseded: '»', ended: '⊘' },
  wait: { SCHEDULED: '◷', QUEUED: '≡', BLOCKED: '◌', BUILDING: '◌', COUNTING: '≡', CANARY: '◷', pending: '◷',
    snoozed: '◷' },
})) for (const [status, sign] of Object.entries(signs)) looks[status] = [tone, sign]

export const look = (status) => looks[status] || ['idle', '·']

export function Status({ of, children }) {
  const [tone, sign] = look(of)
  return html`<span class=${`status ${tone}`}>
    <span aria-hidden="true">${sign}</span>${of.toLowerCase()}${children}</span>`
}

// endsHere says whether error is the end of the session, which the page tells once, above its view.
export const endsHere = (error) => error?.status === 401 && shown.ended

// Refused shows what the API said, with its code and each mistake's place. Alone it tells of an ended session, too.
export function Refused({ error, alone }) {
  if (!error || (!alone && endsHere(error))) return null
  return html`<div class="refused" role="alert">
    <p><strong>${error.message}</strong> ${error.code && html`<code>${error.code}</code>`}</p>
    ${error.errors?.length > 0 && html`<ul>${error.errors.map((e) => html`
      <li><code>${e.pointer || '/'}</code> ${e.detail} <span class="mute">${e.allowed && `Allowed: ${e.allowed}`}</span>
      </li>`)}</ul>`}
    ${error.requestId && html`<p class="mute small">Request ${error.requestId}</p>`}
  </div>`
}

// Id shows a job's or run's id; where there is no room, its end, which differs most.
export const Id = ({ of, to }) => html`<a class="id" href=${`#/${to}/${of}`} title=${of}>
  <span class="wide">${of.slice(0, 18)}</span>${of.slice(18)}</a>`

// short is the end of a job's or run's id, in which two of one minute differ.
export const short = (id) => id.slice(-8)

// jobTitle names a job by its task, and runTitle a run by its dag and when it began.
export const jobTitle = (job) => job && `${job.task} …${short(job.job_id)}`
export function runTitle(run) {
  if (!run) return ''
  const at = new Date(run.started_at || run.due_at || run.created_at)
  return `${run.dag || 'Inline DAG'}, ${day(at)}, ${minute(at)}`
}

export const Empty = ({ title, children }) => html`<div class="empty">
  <p class="lead">${title}</p>${children && html`<p>${children}</p>`}</div>`

// Loaded shows its children once there is data, and the error above whatever is there.
export function Loaded({ of, children }) {
  return html`<${Refused} error=${of.error} />
    ${of.data ? children : !of.error && html`<p class="mute" aria-busy="true">Loading…</p>`}`
}

// from is a component of a module that is read when it is first shown, which keeps the first load small.
export const from = (module, name) => function Later(props) {
  const [{ View, error }, set] = useState({})
  useEffect(() => { module().then((m) => set({ View: m[name] }), (refused) => set({ error: refused })) }, [])
  if (error) return html`<${Refused} error=${error} />`
  return View ? html`<${View} ...${props} />` : html`<p class="mute" aria-busy="true">Loading…</p>`
}

// Folded draws what children() returns once it is opened.
export function Folded({ label, children }) {
  const [open, set] = useState(false)
  return html`<details onToggle=${(e) => set(e.target.open)}><summary>${label}</summary>${open && children()}</details>`
}

export function Json({ value, label }) {
  if (value === undefined) return null
  return html`<figure class="json"><figcaption>${label}</figcaption>
    <pre tabindex="0" aria-label=${label}>${JSON.stringify(value, null, 2)}</pre></figure>`
}

const there = (v) => v !== undefined && v !== null && v !== '' && v !== false

// Facts lists pairs of a name and what it is; those without a value are left out.
export const Facts = ({ of }) => html`<dl class="facts">
  ${of.filter(([, v]) => there(v)).map(([k, v]) => html`<div><dt>${k}</dt><dd>${v}</dd></div>`)}</dl>`

export function Reason({ of }) {
  if (!of) return null
  return html`<span class="reason"><code>${of.code}</code>${of.message ? ` ${of.message}` : ''}</span>`
}

// Counts says how many nodes of a run are of each status.
export function Counts({ of }) {
  if (!of) return null
  const text = Object.entries(of).filter(([k, n]) => k !== 'total' && n > 0).map(([k, n]) => `${n} ${k}`).join(', ')
  return html`<span title=${text}>${text}</span>`
}

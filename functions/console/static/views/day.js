// The last 24 hours and the next ones, hour by hour; the workers, and how full their queues are.
import { html } from '../core/html.js'
import { get } from '../core/api.js'
import { now } from '../core/clock.js'
import { useLive } from '../core/live.js'
import { Folded, Loaded, Time, length, minute, plural, zone } from '../core/form.js'
import { Table } from '../core/table.js'
import { Axis, Bars, quarters } from '../core/chart.js'

const hour = 3_600_000
const hours = 24
const every = 60_000 // milliseconds between two readings of counts, which change by the hour

const sum = (bins) => bins.reduce((a, b) => a + b, 0)
const most = (bins) => bins.indexOf(Math.max(...bins))
const thisHour = () => Math.floor(now() / hour) * hour

// series are the rows of the chart: those that are `rare` are shown only where there is something to show.
const series = [
  { name: 'made', key: 'created' },
  { name: 'succeeded', key: 'succeeded', tone: 'good' },
  { name: 'failed for good', key: 'dead', tone: 'bad' },
  { name: 'expired', key: 'expired', tone: 'warn', rare: true },
  { name: 'skipped', key: 'skipped', tone: 'idle', rare: true },
]

// pastOf says in words what the hours of `of` had in them.
export function pastOf(of, at) {
  const { created, lateness_p99_ms: late } = of
  const shown = series.filter((s) => s.key !== 'created' && (!s.rare || sum(of[s.key]) > 0))
  const slow = late.map((ms) => ms ?? 0)
  return [`${plural(sum(created), 'job')} made, ${
    shown.map((s) => `${sum(of[s.key]).toLocaleString()} ${s.name}`).join(', ')}`,
  sum(created) > 0 && `Most were made from ${at(most(created))}, with ${Math.max(...created).toLocaleString()}`,
  late.some((ms) => ms !== null) && `Starts were latest from ${at(most(slow))}, when 99% were at most ${
    length(Math.max(...slow))} late`].filter(Boolean).map((s) => `${s}.`)
}

const Row = ({ name, value, tone, ...bars }) => html`<div class="series"><span class="small">
  <b class=${tone || ''}>${value}</b> ${name}</span><${Bars} tone=${tone} ...${bars} /></div>`

const few = (n, name) => n > 0 && `${n.toLocaleString()} ${name}`

// hourly is a column of a number, and of a few words below it.
const hourly = (name, of) => ({ name, class: 'number', cell: (i) => {
  const [n, more] = of(i)
  return html`${n.toLocaleString()}${more && html`<div class="mute small">${more}</div>`}`
} })

function Became({ of }) {
  const { from, series: all } = of
  const at = (i) => minute(new Date(from).getTime() + i * hour)
  const [made, failed] = [all.created, all.dead]
  const late = all.lateness_p99_ms
  if (series.every((s) => sum(all[s.key]) === 0) && late.every((ms) => ms === null)) {
    return html`<p class="mute">No job was made, started or ended in the last ${hours} hours.</p>`
  }
  const text = pastOf(all, at)
  const rows = made.map((_, i) => i)
  const shown = series.filter((s) => !s.rare || sum(all[s.key]) > 0)
  const lateText = (ms) => (ms === null ? '–' : length(ms))
  return html`<div class="days24">
      ${shown.map((s) => html`<${Row} name=${s.name} tone=${s.tone} bins=${all[s.key]}
        value=${sum(all[s.key]).toLocaleString()} label=${`Jobs ${s.name} in each of the last ${hours} hours`}
        says=${(i) => `${at(i)}: ${all[s.key][i].toLocaleString()} ${s.name}`} />`)}
      <${Row} name="late, the slowest 1%" tone=${Math.max(...late) < 1000 ? '' : 'warn'} bins=${late}
        value=${late.every((ms) => ms === null) ? '–' : length(Math.max(...late))}
        label=${`Lateness of starts in each of the last ${hours} hours`}
        says=${(i) => `${at(i)}: half at most ${lateText(all.lateness_p50_ms[i])}, 99% at most ${
          lateText(late[i])} late`} />
      <${Axis} ticks=${quarters(made.length, at)} /></div>
    <p class="small mute">${text.join(' ')}</p>
    ${sum(failed) > 0 && html`<p class="small"><a href="#/dead-letters">What they died of</a></p>`}
    <${Folded} label="As a table">${() => html`<${Table} caption="The last 24 hours" rows=${rows.reverse()}
      id=${(i) => i} columns=${[{ name: 'From', cell: at },
        hourly('made', (i) => [made[i], few(all.skipped[i], 'skipped')]),
        hourly('succeeded', (i) => [all.succeeded[i]]),
        hourly('failed', (i) => [failed[i], few(all.expired[i], 'expired')]),
        hourly('late, 99%', (i) => [lateText(late[i]), late[i] !== null && `half ${lateText(all.lateness_p50_ms[i])}`]),
      ]} />`}<//>`
}

function Expected({ of }) {
  const all = sum(of.starts)
  if (!all) return html`<p class="mute">No start is expected in the next ${hours} hours.</p>`
  const at = (i) => minute(new Date(of.from).getTime() + i * hour)
  const text = `${plural(all, 'start')} expected; most from ${minute(new Date(of.peak.at))}, with ${
    of.peak.starts.toLocaleString()}.`
  const rows = of.starts.map((_, i) => i)
  return html`<div class="days24"><${Row} name="starts" value=${all.toLocaleString()} bins=${of.starts} label=${text}
      says=${(i) => `${at(i)}: ${of.starts[i].toLocaleString()}`} />
    <${Axis} ticks=${quarters(of.starts.length, at)} /></div><p class="small mute">${text}</p>
    <${Folded} label="As a table">${() => html`<${Table} caption="Expected starts" rows=${rows} id=${(i) => i}
      columns=${[{ name: 'From', cell: at }, hourly('starts', (i) => [of.starts[i]])]} />`}<//>`
}

// Known is Loaded, but says quietly that a deployment does not have what it would show.
const Known = ({ of, children }) => (of.error?.code === 'not_indexed'
  ? html`<p class="mute">${of.error.message}</p>` : html`<${Loaded} of=${of}>${of.data && children(of.data)}<//>`)

// Past shows what became of jobs in the last 24 hours.
export function Past() {
  const live = useLive((signal) => get('/stats', { step: '1h',
    from: new Date(thisHour() - (hours - 1) * hour).toISOString() }, signal), [], every)
  return html`<section class="card" aria-labelledby="past"><h2 id="past">The last 24 hours</h2>
    <${Known} of=${live}>${(d) => html`<${Became} of=${d} />`}<//></section>`
}

// Calm lists the minutes of the next day in which the fewest starts are expected.
function Calm() {
  const live = useLive((signal) => get('/forecast/calm', { timezone: zone }, signal), [], every)
  return html`<${Known} of=${live}>${({ items }) => html`<${Table} caption="Calm minutes" rows=${items}
    id=${(m) => m.at} columns=${[{ name: 'Minute', cell: (m) => html`<${Time} at=${m.at} />` },
      { name: 'Starts', class: 'number', cell: (m) => m.load.toLocaleString() }]} />`}<//>`
}

// Next shows the starts that are expected in the next 24 hours.
export function Next() {
  const live = useLive((signal) => get('/forecast', { to: new Date(thisHour() + hours * hour).toISOString() }, signal),
    [], every)
  return html`<section class="card" aria-labelledby="next"><h2 id="next">The next 24 hours</h2>
    <${Known} of=${live}>${(d) => html`<${Expected} of=${d} />
      <${Folded} label="Calm minutes">${() => html`<${Calm} />`}<//>`}<//></section>`
}

// poolsOf returns {pool, workers, slots, busy, draining} of the workers of each pool.
export function poolsOf(items) {
  const pools = new Map()
  for (const w of items) {
    const p = pools.get(w.pool) || { pool: w.pool, workers: 0, slots: 0, busy: 0, draining: 0 }
    pools.set(w.pool, { ...p, workers: p.workers + 1, slots: p.slots + w.slots, busy: p.busy + w.busy,
      draining: p.draining + (w.draining ? 1 : 0) })
  }
  return [...pools.values()]
}

function Queue({ of: q }) {
  if (!q || (q.waiting === 0 && q.delayed === 0)) return html`<span class="mute">empty</span>`
  return [q.waiting > 0 && `${q.waiting.toLocaleString()} waiting`,
    q.oldest_s !== null && q.waiting > 0 && `oldest ${length(1000 * q.oldest_s)}`,
    q.delayed > 0 && `${q.delayed.toLocaleString()} for later`].filter(Boolean).join(', ')
}

const busy = (w) => html`<progress value=${w.busy} max=${Math.max(w.slots, 1)}
  aria-label=${`Slots of ${w.worker || `the pool ${w.pool}`} in use`}></progress>${
  ` ${w.busy.toLocaleString()} of ${w.slots.toLocaleString()}`}`

function Fleet({ of: { items, queues } }) {
  const pools = [...new Set(queues.map((q) => q.pool))]
  const priorities = [...new Set(queues.map((q) => q.priority))]
  return html`${items.length === 0
    ? html`<p class="note">No worker has been seen in the last minutes: nothing starts.</p>`
    : html`<${Table} caption="Pools" rows=${poolsOf(items)} id=${(p) => p.pool} columns=${[
        { name: 'Pool', cell: (p) => p.pool },
        { name: 'Workers', cell: (p) => `${p.workers.toLocaleString()}${
          p.draining ? `, ${p.draining.toLocaleString()} about to end` : ''}` },
        { name: 'Slots in use', cell: busy }]} />`}
    <${Table} caption="Queues" rows=${priorities} id=${(p) => p} columns=${[
      { name: 'Queue', cell: (p) => p }, ...pools.map((pool) => ({ name: pool, cell: (p) => html`<${Queue}
        of=${queues.find((q) => q.pool === pool && q.priority === p)} />` }))]} />
    ${items.length > 0 && html`<${Folded} label="Each worker">${() => html`<${Table} caption="Workers" rows=${items}
      id=${(w) => `${w.worker} ${w.pool}`} columns=${[
        { name: 'Worker', cell: (w) => html`<span class="name">${w.worker}</span> <span class="mute small">${w.pool}${
          w.version && `, ${w.version}`}${w.draining && ', about to end'}</span>` },
        { name: 'Slots in use', cell: busy }, { name: 'Seen', cell: (w) => html`<${Time} at=${w.seen_at} />` },
      ]} />`}<//>`}`
}

// Workers shows the pools with their slots, and the queues by priority.
export function Workers() {
  const live = useLive((signal) => get('/workers', {}, signal), [], 8_000)
  return html`<section class="card" aria-labelledby="workers"><h2 id="workers">Workers and queues</h2>
    <${Known} of=${live}>${(d) => html`<${Fleet} of=${d} />`}<//></section>`
}

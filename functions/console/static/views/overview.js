// What runs, waits and fails; the last day and the next one; how far the passes have come.
import { html } from '../core/html.js'
import { get, ready, seg, some } from '../core/api.js'
import { now } from '../core/clock.js'
import { useLive } from '../core/live.js'
import { Counts, Empty, Facts, Loaded, Status, Time, minute, plural } from '../core/form.js'
import { Table } from '../core/table.js'
import { groupsOf } from '../core/cause.js'
import { Next, Past, Workers } from './day.js'
import { jobColumns } from './jobs.js'

const hour = 3_600_000
const every = 30_000 // milliseconds between two readings of what takes many pages
const mostJobs = 2000 // waiting jobs that are read, and
const mostSchedules = 40 // schedules whose times are asked for; the chart says when there are more

// firingsOf returns the times at which s fires up to `until`, and whether that is all of them.
async function firingsOf(s, until, signal) {
  if (s.next.length < 3 || new Date(s.next[2]) >= until) return { times: s.next, whole: true }
  const times = []
  let after
  for (let page = 0; page < 4; page++) { // once a second is 3,600 times
    const { items } = await get(`/schedules/${seg(s.name)}/preview`, { count: 1000, after }, signal)
    times.push(...items.map((o) => o.due_at))
    after = items.at(-1)?.nominal_at
    if (items.length < 1000 || new Date(after) >= until) return { times, whole: true }
  }
  return { times, whole: false }
}

// limitsOf says in words what the chart leaves out; nothing where it leaves out nothing.
export const limitsOf = (scheduled, schedules, unread) => [
  scheduled.more && `Only the ${plural(scheduled.items.length, 'job')} accepted last are counted: every minute may
    have more.`,
  schedules.more && `Only the first ${plural(schedules.items.length, 'schedule')} are counted.`,
  unread > 0 && `Not all times of ${plural(unread, 'schedule')} are counted.`,
].filter(Boolean).map((s) => s.replace(/\s+/g, ' '))

// ahead returns the firings of each of the next 60 minutes: one-off jobs that wait, and what the calendars of
// schedules say. limits says what is left out; scheduled and dead count what the tiles count only to 200.
async function ahead(signal) {
  const began = Date.now()
  const [scheduled, schedules, dead] = await Promise.all([
    some('/jobs', { status: 'SCHEDULED' }, { most: mostJobs, pages: 15, signal }),
    some('/schedules', {}, { most: 1000, pages: 8, signal }),
    some('/dead-letters', {}, { most: 1000, pages: 8, signal })])
  const from = Math.floor(now() / 60_000) * 60_000
  const bins = new Array(60).fill(0)
  const note = (iso) => {
    const i = Math.floor((new Date(iso) - from) / 60_000)
    if (i >= 0 && i < 60) bins[i]++
  }
  scheduled.items.filter((j) => !j.schedule || j.manual).forEach((j) => note(j.due_at))
  const near = schedules.items.filter((s) => !s.paused && s.next.length && new Date(s.next[0]) - from < hour)
  const firings = await Promise.all(near.slice(0, mostSchedules).map((s) => firingsOf(s, from + hour, signal)))
  firings.forEach((f) => f.times.forEach(note))
  const unread = near.length - firings.filter((f) => f.whole).length
  const told = { from, bins, limits: limitsOf(scheduled, schedules, unread),
    scheduled: { n: scheduled.items.length, more: scheduled.more },
    dead: { n: dead.items.filter(waits).length, more: dead.more }, causes: causesOf(dead) }
  kept = { began, told }
  return told
}

// causesOf returns what died in the last day, by cause, most first; whole says whether that is all of it.
export function causesOf({ items, more }) {
  const since = now() - 24 * hour
  const letters = items.filter((d) => new Date(d.dead_at) >= since)
  return { groups: groupsOf(letters), n: letters.length, whole: !more || letters.length < items.length }
}

const waits = (letter) => !letter.redriven_by
let kept = null // what ahead has told, for who comes back soon
const aheadOnce = (signal) => (kept && Date.now() - kept.began < every ? kept.told : ahead(signal))

function Firings({ of }) {
  const most = Math.max(...of.bins)
  const sum = of.bins.reduce((a, b) => a + b, 0)
  const limits = of.limits.map((text) => html`<p class="note small">${text}</p>`)
  if (!sum) return html`${limits}<p class="mute">Nothing is due in the next hour.</p>`
  const at = (i) => minute(of.from + i * 60_000)
  const text = `${plural(sum, 'firing')}${of.limits.length ? ' at least' : ''} in the next hour; most at ${
    at(of.bins.indexOf(most))}, with ${most.toLocaleString()}`
  const tall = (n) => ({ height: `${n && Math.max(2, (100 * n) / most)}%` })
  return html`${limits}<div class="chart" role="img" aria-label=${[text, ...of.limits].join('. ')}>
      <div class="scale"><span>${most.toLocaleString()}</span><span>0</span></div>
      <div class="bars">${of.bins.map((n, i) => html`
        <span title=${`${at(i)}: ${n}`}><i style=${tall(n)}></i></span>`)}</div>
      <div class="axis">${[0, 15, 30, 45, 60].map((i) => html`<span>${at(i)}</span>`)}</div>
    </div><p class="small mute">${text}.</p>`
}

// Tile shows how many there are of a list. further is a count that went further than the list, maybe some time ago.
function Tile({ to, name, of, tone = '', further }) {
  const short = { n: of.items.length, more: of.more }
  const { n, more } = of.more && further?.n > short.n ? further : short
  const text = n.toLocaleString()
  return html`<a class=${`tile ${n ? tone : ''}`} href=${to}><b title=${more ? `${text} or more` : undefined}>${text}${
    more && html`<span aria-hidden="true">+</span><span class="hidden"> or more</span>`}</b> ${name}</a>`
}

// Causes shows what most of the last day's dead letters died of.
function Causes({ of }) {
  if (of.n === 0) return html`<${Empty} title="No job has failed for good in the last 24 hours." />`
  return html`<${Table} caption="What jobs died of in the last 24 hours" id=${(g) => g.key}
      rows=${of.groups.slice(0, 6)} columns=${[
        { name: 'Task and cause', cell: (g) => html`<a href="#/dead-letters">${g.task}: <code>${g.code}</code></a>${' '}
          <span class="mute small reason">${g.example}</span>` },
        { name: 'Jobs', class: 'number', cell: (g) => `${g.letters.length.toLocaleString()}${of.whole ? '' : '+'}` },
        { name: 'Last', cell: (g) => html`<${Time} at=${g.letters[0].dead_at} />` }]} />
    ${of.groups.length > 6 && html`<p class="small">And of ${plural(of.groups.length - 6, 'other cause')}.</p>`}`
}

const paused = (p) => (p.name ? html`schedule <a href=${`#/schedules/${p.name}`}>${p.name}</a>`
  : p.scope === 'all' ? html`<a href="#/pauses">everything</a>`
  : html`task <a href=${`#/tasks/${p.scope.slice('task:'.length)}`}>${p.scope.slice('task:'.length)}</a>`)

// Held shows what is paused, why and since when; a schedule has its pause in itself.
function Held({ of }) {
  if (of.items.length === 0) return null
  const said = (p) => p.paused || p
  return html`<h2>Paused</h2><${Table} caption="Paused" rows=${of.items.slice(0, 6)} id=${(p) => p.scope || p.name}
      columns=${[{ name: 'What', cell: paused },
        { name: 'Reason', cell: (p) => said(p).reason || 'no reason given' },
        { name: 'Who', class: 'wide', cell: (p) => said(p).by || '–' },
        { name: 'Since', cell: (p) => html`<${Time} at=${said(p).since} />` }]} />
    ${of.items.length > 6 && html`<p class="small"><a href="#/pauses">All pauses</a></p>`}`
}

export function Overview({ can }) {
  const live = useLive(async (signal) => {
    const jobs = (status) => some('/jobs', { status }, { signal })
    const runs = (status) => some('/runs', { status }, { most: status === 'FAILED' ? 8 : 200, signal })
    const [running, queued, scheduled, blocked] = await Promise.all(
      ['RUNNING', 'QUEUED', 'SCHEDULED', 'BLOCKED'].map(jobs))
    const [going, held, failed] = await Promise.all(['RUNNING', 'HELD', 'FAILED'].map(runs))
    const [dead, schedules, pauses, passes] = await Promise.all([some('/dead-letters', {}, { signal }),
      some('/schedules', {}, { signal }), get('/pauses', {}, signal), ready(signal)])
    dead.items = dead.items.filter(waits)
    return { running, queued, scheduled, blocked, dead, going, held, failed, passes,
      pauses: { ...schedules, items: [...pauses.items, ...schedules.items.filter((s) => s.paused)] } }
  }, [], 4_000)
  const next = useLive(aheadOnce, [], every)
  const d = live.data
  return html`<${Loaded} of=${live}>${d && html`
    ${d.passes.held?.length > 0 && html`<div class="refused" role="alert"><p>Tables were restored: ${
      html`<code>${d.passes.held.join(', ')}</code>`}. No job starts until an operator lets them run.</p></div>`}
    <div class="tiles">
      <${Tile} to="#/jobs?status=RUNNING" name="running" of=${d.running} tone="busy" />
      <${Tile} to="#/jobs?status=QUEUED" name="queued" of=${d.queued} />
      <${Tile} to="#/jobs?status=SCHEDULED" name="scheduled" of=${d.scheduled} further=${next.data?.scheduled} />
      <${Tile} to="#/jobs?status=BLOCKED" name="blocked" of=${d.blocked} />
      <${Tile} to="#/dead-letters" name="dead letters" of=${d.dead} tone="bad" further=${next.data?.dead} />
      <${Tile} to="#/dags?status=RUNNING" name="runs running" of=${d.going} tone="busy" />
      <${Tile} to="#/dags?status=HELD" name="runs held" of=${d.held} tone="warn" />
      <${Tile} to="#/pauses" name="paused" of=${d.pauses} tone="warn" />
    </div>
    <div class="halves"><${Past} /><div><${Next} />
      <section class="card" aria-labelledby="hour"><h2 id="hour">Firings of the next hour, per minute</h2>
        <${Loaded} of=${next}>${next.data && html`<${Firings} of=${next.data} />`}<//></section></div></div>
    ${can('admin') && html`<${Workers} />`}
    <div class="halves">
      <section><h2>Running now</h2>${d.running.items.length === 0 ? html`<${Empty} title="Nothing runs right now." />`
        : html`<${Table} caption="Running now" rows=${d.running.items.slice(0, 8)} id=${(j) => j.job_id} columns=${[
          jobColumns[0], jobColumns[2], { name: 'Was due', cell: (j) => html`<${Time} at=${j.due_at} />` },
          { name: 'Attempt', class: 'number', cell: (j) => `${j.attempt} of ${j.max_attempts}` }]} />`}
        <h2>Passes</h2><${Facts} of=${[['Promoted through', html`<${Time} at=${d.passes.promoted_through} />`],
          ['Swept through', html`<${Time} at=${d.passes.swept_through} />`]]} />
        <p class="mute small">Promoted half an hour ahead, and swept some minutes behind, is as it should be.</p>
      </section>
      <section><${Held} of=${d.pauses} />
        <h2>Died in the last 24 hours</h2>
        <${Loaded} of=${next}>${next.data && html`<${Causes} of=${next.data.causes} />`}<//>
        <h2>Runs that failed</h2>${d.failed.items.length === 0 ? html`<${Empty} title="No run has failed." />`
        : html`<${Table} caption="Runs that failed" rows=${d.failed.items} id=${(r) => r.run_id} columns=${[
          { name: 'Run', cell: (r) => html`<a href=${`#/runs/${r.run_id}`}>${r.dag || 'inline'}</a>
            ${' '}<${Status} of=${r.status} />` },
          { name: 'Ended', cell: (r) => html`<${Time} at=${r.finished_at} />` },
          { name: 'Nodes', class: 'wide', cell: (r) => html`<${Counts} of=${r.counts} />` }]} />`}</section>
    </div>`}<//>`
}

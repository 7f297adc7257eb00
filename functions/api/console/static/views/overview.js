// What runs, waits and fails; the firings of the next hour; how far the passes have come.
import { html } from '../core/html.js'
import { get, seg, some } from '../core/api.js'
import { useLive } from '../core/live.js'
import { Empty, Facts, Loaded, Status, Time, count, length, minute, plural } from '../core/form.js'
import { Table } from '../core/table.js'
import { jobColumns } from './jobs.js'
import { Counts } from './run.js'

const hour = 3_600_000
const mostSchedules = 40 // whose times are asked for; the chart says when there are more

// ahead returns the firings of each of the next 60 minutes: one-off jobs that wait, and what the calendars of
// schedules say. cut says that there are more than were read.
async function ahead(signal) {
  const [scheduled, schedules] = await Promise.all([
    some('/jobs', { status: 'SCHEDULED' }, { most: 1000, signal }), some('/schedules', {}, { signal })])
  const from = Math.floor(Date.now() / 60_000) * 60_000
  const bins = new Array(60).fill(0)
  const note = (iso) => {
    const i = Math.floor((new Date(iso) - from) / 60_000)
    if (i >= 0 && i < 60) bins[i]++
  }
  scheduled.items.filter((j) => !j.schedule || j.manual).forEach((j) => note(j.due_at))
  const near = schedules.items.filter((s) => !s.paused && s.next.length && new Date(s.next[0]) - from < hour)
  const whole = await Promise.all(near.slice(0, mostSchedules).map(async (s) => {
    if (s.next.length < 3 || new Date(s.next[2]) - from >= hour) {
      s.next.forEach(note)
      return true
    }
    let after
    for (let page = 0; page < 4; page++) { // once a second is 3,600 times
      const { items } = await get(`/schedules/${seg(s.name)}/preview`, { count: 1000, after }, signal)
      items.forEach((o) => note(o.due_at))
      after = items.at(-1)?.nominal_at
      if (items.length < 1000 || new Date(after) - from >= hour) return true
    }
    return false
  }))
  return { from, bins, cut: scheduled.more || schedules.more || near.length > mostSchedules || whole.includes(false) }
}

function Firings({ of }) {
  const most = Math.max(...of.bins)
  const sum = of.bins.reduce((a, b) => a + b, 0)
  if (!sum) return html`<p class="mute">Nothing is due in the next hour.</p>`
  const at = (i) => minute(of.from + i * 60_000)
  const text = `${plural(sum, 'firing')}${of.cut ? ' at least' : ''} in the next hour; most at ${
    at(of.bins.indexOf(most))}, with ${most}`
  const tall = (n) => ({ height: `${n && Math.max(2, (100 * n) / most)}%` })
  return html`<div class="chart" role="img" aria-label=${text}>
      <div class="bars">${of.bins.map((n, i) => html`
        <span title=${`${at(i)}: ${n}`}><i style=${tall(n)}></i></span>`)}</div>
      <div class="axis">${[0, 15, 30, 45, 60].map((i) => html`<span>${at(i)}</span>`)}</div>
    </div><p class="small mute">${text}.</p>`
}

export function Overview() {
  const live = useLive(async (signal) => {
    const jobs = (status) => some('/jobs', { status }, { signal })
    const runs = (status) => some('/runs', { status }, { most: status === 'FAILED' ? 8 : 200, signal })
    const [running, queued, scheduled, blocked] = await Promise.all(
      ['RUNNING', 'QUEUED', 'SCHEDULED', 'BLOCKED'].map(jobs))
    const [going, held, failed] = await Promise.all(['RUNNING', 'HELD', 'FAILED'].map(runs))
    const [dead, schedules, pauses, ready] = await Promise.all([some('/dead-letters', {}, { signal }),
      some('/schedules', {}, { signal }), get('/pauses', {}, signal), get('/ready', {}, signal)])
    dead.items = dead.items.filter((d) => !d.redriven_by)
    return { running, queued, scheduled, blocked, dead, going, held, failed, ready,
      pauses: { items: [...pauses.items, ...schedules.items.filter((s) => s.paused)] } }
  }, [], 4_000)
  const next = useLive(ahead, [], 30_000)
  const d = live.data
  const worst = d?.running.items.length > 0 && Math.max(...d.running.items.map((j) => j.start_lateness_ms || 0))
  const tile = (to, name, of, tone) => html`<a class=${of.items.length ? `tile ${tone}` : 'tile'} href=${to}>
    <b>${count(of)}</b>${name}</a>`
  return html`<${Loaded} of=${live}>${d && html`
    ${d.ready.held?.length > 0 && html`<div class="refused" role="alert"><p>Tables were restored: ${
      html`<code>${d.ready.held.join(', ')}</code>`}. No job starts until an operator lets them run.</p></div>`}
    <div class="tiles">
      ${tile('#/jobs?status=RUNNING', 'running', d.running, 'busy')}
      ${tile('#/jobs?status=QUEUED', 'queued', d.queued, '')}
      ${tile('#/jobs?status=SCHEDULED', 'scheduled', d.scheduled, '')}
      ${tile('#/jobs?status=BLOCKED', 'blocked', d.blocked, '')}
      ${tile('#/dead-letters', 'dead letters', d.dead, 'bad')}
      ${tile('#/dags?status=RUNNING', 'runs go on', d.going, 'busy')}
      ${tile('#/dags?status=HELD', 'runs held', d.held, 'warn')}
      ${tile('#/pauses', 'paused', d.pauses, 'warn')}
    </div>
    <section class="card" aria-labelledby="hour"><h2 id="hour">Firings of the next hour, per minute</h2>
      <${Loaded} of=${next}>${next.data && html`<${Firings} of=${next.data} />`}<//></section>
    <div class="halves">
      <section><h2>Running now</h2>${d.running.items.length === 0 ? html`<${Empty} title="Nothing runs right now." />`
        : html`<${Table} caption="Running now" rows=${d.running.items.slice(0, 8)} id=${(j) => j.job_id} columns=${[
          jobColumns[0], jobColumns[2], { name: 'Started', cell: (j) => html`<${Time} at=${j.started_at} />` }]} />`}
        <h2>Passes</h2><${Facts} of=${[['Promoted through', html`<${Time} at=${d.ready.promoted_through} />`],
          ['Swept through', html`<${Time} at=${d.ready.swept_through} />`], 
          ['Worst lateness of what runs', worst !== false && length(worst)]]} />
        <p class="mute small">Promoted half an hour ahead, and swept some minutes behind, is as it should be.</p>
      </section>
      <section><h2>Runs that failed</h2>${d.failed.items.length === 0 ? html`<${Empty} title="No run has failed." />`
        : html`<${Table} caption="Runs that failed" rows=${d.failed.items} id=${(r) => r.run_id} columns=${[
          { name: 'Run', cell: (r) => html`<a href=${`#/runs/${r.run_id}`}>${r.dag || 'inline'}</a>
            ${' '}<${Status} of=${r.status} />` },
          { name: 'Ended', cell: (r) => html`<${Time} at=${r.finished_at} />` },
          { name: 'Nodes', class: 'wide', cell: (r) => html`<${Counts} of=${r.counts} />` }]} />`}</section>
    </div>`}<//>`
}

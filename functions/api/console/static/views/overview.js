// What runs, waits and fails; the firings of the next hour; how far the passes have come.
import { html } from '../core/html.js'
import { call, get, seg, some } from '../core/api.js'
import { useLive } from '../core/live.js'
import { Empty, Facts, Loaded, Status, Time, count, length, minute, plural } from '../core/form.js'
import { Table } from '../core/table.js'
import { jobColumns } from './jobs.js'
import { Counts } from './run.js'

const hour = 3_600_000

// ahead returns the firings of each of the next 60 minutes: one-off jobs that wait, and what the calendars of
// schedules say. cut says that there are more schedules or times than were read.
async function ahead(scheduled, schedules, signal) {
  const from = Math.floor(Date.now() / 60_000) * 60_000
  const bins = new Array(60).fill(0)
  const note = (iso) => { const i = Math.floor((new Date(iso) - from) / 60_000); if (i >= 0 && i < 60) bins[i]++ }
  scheduled.items.filter((j) => !j.schedule || j.manual).forEach((j) => note(j.due_at))
  let cut = scheduled.more || schedules.more
  const near = schedules.items.filter((s) => !s.paused && s.next.length && new Date(s.next[0]) - from < hour)
  if (near.length > 40) cut = true
  await Promise.all(near.slice(0, 40).map(async (s) => {
    if (s.next.length < 3 || new Date(s.next[2]) - from >= hour) return s.next.forEach(note)
    let after
    for (let page = 0; page < 4; page++) { // once a second is 3,600 times
      const { items } = await get(`/schedules/${seg(s.name)}/preview`, { count: 1000, after }, signal)
      items.forEach((o) => note(o.due_at))
      after = items.at(-1)?.nominal_at
      if (items.length < 1000 || new Date(after) - from >= hour) return undefined
    }
    cut = true
    return undefined
  }))
  return { from, bins, cut }
}

export function Firings({ of }) {
  const most = Math.max(...of.bins)
  const sum = of.bins.reduce((a, b) => a + b, 0)
  if (!sum) return html`<p class="mute">Nothing is due in the next hour.</p>`
  const peak = of.bins.indexOf(most)
  const at = (i) => minute(of.from + i * 60_000)
  const text = `${plural(sum, 'firing')}${of.cut ? ' at least' : ''} in the next hour; most at ${at(peak)}, with ${most}`
  return html`<div class="chart" role="img" aria-label=${text}>
      <div class="bars">${of.bins.map((n, i) => html`<span title=${`${at(i)}: ${n}`}><i style=${{ height: `${n && Math.max(2, (100 * n) / most)}%` }}></i></span>`)}</div>
      <div class="axis">${[0, 15, 30, 45, 60].map((i) => html`<span>${at(i)}</span>`)}</div></div><p class="small mute">${text}.</p>`
}

// Watermark says how far a pass is behind or ahead of now.
const Watermark = ({ at }) => (at ? html`<${Time} at=${at} />` : html`<span class="mute">no pass yet</span>`)

export function Overview() {
  const live = useLive(async (signal) => {
    const jobs = (status) => some('/jobs', { status }, { signal })
    const [running, queued, scheduled, blocked, dead, runs, held, failed, schedules, pauses, ready] = await Promise.all([
      jobs('RUNNING'), jobs('QUEUED'), jobs('SCHEDULED'), jobs('BLOCKED'), some('/dead-letters', {}, { signal }),
      some('/runs', { status: 'RUNNING' }, { signal }), some('/runs', { status: 'HELD' }, { signal }), some('/runs', { status: 'FAILED', limit: 20 }, { most: 20, signal }),
      some('/schedules', {}, { signal }), get('/pauses', {}, signal), call('GET', '/ready', { signal })])
    return { running, queued, scheduled, blocked, dead: { ...dead, items: dead.items.filter((d) => !d.redriven_by) }, runs, held, failed, schedules,
      pauses: pauses.items.length + schedules.items.filter((s) => s.paused).length, ready, hour: await ahead(scheduled, schedules, signal) }
  }, [])
  const d = live.data
  const tile = (to, name, of, tone) => html`<a class=${`tile ${of.items.length ? tone || '' : ''}`} href=${to}><b>${count(of)}</b>${name}</a>`
  return html`<${Loaded} of=${live}>${d && html`
    ${d.ready.held?.length > 0 && html`<div class="refused" role="alert"><p>Tables were restored: <code>${d.ready.held.join(', ')}</code>. No job starts until an operator lets them run.</p></div>`}
    <div class="tiles">
      ${tile('#/jobs?status=RUNNING', 'running', d.running, 'busy')}${tile('#/jobs?status=QUEUED', 'queued', d.queued)}
      ${tile('#/jobs?status=SCHEDULED', 'scheduled', d.scheduled)}${tile('#/jobs?status=BLOCKED', 'blocked', d.blocked)}
      ${tile('#/dead-letters', 'dead letters', d.dead, 'bad')}${tile('#/runs?status=RUNNING', 'runs go on', d.runs, 'busy')}
      ${tile('#/runs?status=HELD', 'runs held', d.held, 'warn')}
      <a class=${`tile ${d.pauses ? 'warn' : ''}`} href="#/pauses"><b>${d.pauses}</b>${d.pauses === 1 ? 'pause' : 'pauses'}</a>
    </div>
    <section class="card" aria-labelledby="hour"><h2 id="hour">Firings of the next hour, per minute</h2><${Firings} of=${d.hour} /></section>
    <div class="halves">
      <section><h2>Running now</h2>${d.running.items.length === 0 ? html`<${Empty} title="Nothing runs right now." />`
        : html`<${Table} caption="Running now" rows=${d.running.items.slice(0, 8)} id=${(j) => j.job_id} columns=${[jobColumns[0], jobColumns[2],
          { name: 'Started', cell: (j) => html`<${Time} at=${j.started_at} />` }]} />`}
        <h2>Passes</h2><${Facts} of=${[['Promoted through', html`<${Watermark} at=${d.ready.promoted_through} />`], ['Swept through', html`<${Watermark} at=${d.ready.swept_through} />`],
          ['Lateness of what runs', d.running.items.length > 0 && length(Math.max(...d.running.items.map((j) => j.start_lateness_ms || 0)))]]} /></section>
      <section><h2>Runs that failed</h2>${d.failed.items.length === 0 ? html`<${Empty} title="No run has failed." />`
        : html`<${Table} caption="Runs that failed" rows=${d.failed.items.slice(0, 8)} id=${(r) => r.run_id} columns=${[
          { name: 'Run', cell: (r) => html`<a href=${`#/runs/${r.run_id}`}>${r.dag || 'inline'}</a> <${Status} of=${r.status} />` },
          { name: 'Ended', cell: (r) => html`<${Time} at=${r.finished_at} />` }, { name: 'Nodes', class: 'wide', cell: (r) => html`<${Counts} of=${r.counts} />` }]} />`}</section>
    </div>`}<//>`
}

// One schedule: its next times, its ledger by days, and what may be done to it.
import { html, useState } from '../core/html.js'
import { call, get, post, remove, seg, some } from '../core/api.js'
import { useLive } from '../core/live.js'
import { Empty, Facts, Json, Loaded, Status, Time, day, length, localTime, look, plural } from '../core/form.js'
import { Act, Field, ask, say, why } from '../core/ask.js'
import { LongTable } from '../core/table.js'
import { missed, pauseBody, until } from './pauses.js'
import { Preview, rule, usePreview } from './schedules.js'

const outcomes = ['ran', 'skipped', 'missed', 'superseded']

// daysOf groups occurrences by the user's days, newest day first, and in a day in their order.
export function daysOf(items) {
  const days = new Map()
  for (const o of items) {
    const name = day(new Date(o.nominal_at))
    if (!days.has(name)) days.set(name, [])
    days.get(name).unshift(o)
  }
  return [...days].map(([name, all]) => ({ name, all }))
}

const told = (all) => outcomes.map((what) => [all.filter((o) => o.outcome === what).reduce((n, o) => n + (o.count || 1), 0), what])
  .filter(([n]) => n).map(([n, what]) => `${n} ${what}`).join(', ')

// toneOf: what ran and then failed is not good.
const toneOf = (o) => look(o.outcome === 'ran' && ['DEAD', 'FAILED', 'EXPIRED'].includes(o.status) ? o.status : o.outcome)[0]

function Ledger({ items, more }) {
  const [only, setOnly] = useState('')
  const days = daysOf(items)
  const rows = only ? days.find((d) => d.name === only)?.all.toReversed() || [] : items
  if (items.length === 0) return html`<${Empty} title="No time has come yet.">Each nominal time will be here: ran, skipped or missed, and why.<//>`
  return html`<ul class="days" aria-label="Days of the ledger">${days.slice(0, 14).map((d) => html`<li key=${d.name}>
      <button type="button" class="quiet" aria-pressed=${only === d.name} onClick=${() => setOnly(only === d.name ? '' : d.name)} aria-label=${`${d.name}: ${told(d.all)}`}>${d.name}</button>
      <div class="strip" aria-hidden="true">${d.all.slice(-150).map((o) => html`<span key=${o.nominal_at} class=${`cell ${toneOf(o)}`}
        title=${`${localTime(o.nominal_at)} ${o.outcome}${o.count > 1 ? ` × ${o.count}` : ''}${o.why ? `: ${o.why}` : ''}`}></span>`)}</div></li>`)}</ul>
    <p class="key"><span><i class="cell good"></i>ran</span><span><i class="cell idle"></i>skipped</span><span><i class="cell bad"></i>missed, or it failed</span>
      <span>${told(items)}${more ? ' of the newest' : ''}</span></p>
    <${LongTable} caption=${only ? `Ledger of ${only}` : 'Ledger'} rows=${rows} id=${(o) => o.nominal_at + (o.job_id || '')} columns=${[
      { name: 'Nominal time', cell: (o) => html`<${Time} at=${o.nominal_at} />` },
      { name: 'Outcome', class: 'st', cell: (o) => html`<${Status} of=${o.outcome}>${o.count > 1 ? ` × ${o.count}` : ''}<//>` },
      { name: 'Why', class: 'wide', cell: (o) => html`<span title=${o.why}>${o.why || (o.manual ? 'run by hand' : '')}</span>` },
      { name: 'Became', cell: (o) => (o.job_id ? html`<a href=${`#/jobs/${o.job_id}`}>${(o.status || 'job').toLowerCase()}</a>` : o.run_id ? html`<a href=${`#/runs/${o.run_id}`}>${(o.status || 'run').toLowerCase()}</a>` : html`<span class="mute">–</span>`) },
      { name: 'Late', class: 'wide number', cell: (o) => (o.start_lateness_ms === undefined ? '' : `+${length(o.start_lateness_ms)}`) }]} />`
}

export function Schedule({ name, can }) {
  const path = `/schedules/${seg(name)}`
  const live = useLive(async (signal) => {
    const [schedule, past, ahead] = await Promise.all([get(path, {}, signal), some(`${path}/occurrences`, {}, { most: 600, pages: 3, signal }), get(`${path}/preview`, { count: 8 }, signal)])
    return { schedule, past, ahead }
  }, [name])
  const { schedule: s, past, ahead } = live.data || {}
  const then = (act, text) => async (v) => { const said = await act(v); await live.again(); say(text); return said }
  const resume = () => ask({ title: `Resume ${name}`, verb: 'Resume', touches: '1 schedule', fields: [{ ...missed, value: s.paused.missed || 'last' }], act: then((v) => post(`${path}/resume`, { missed: v.missed }), 'It goes on.') })
  return html`<${Loaded} of=${live}>${s && html`
    <div class="row">${s.paused ? html`<${Status} of="paused" /> <span>${s.paused.reason || 'no reason given'} – ${s.paused.by || 'somebody'}, <${Time} at=${s.paused.since} /></span>`
      : s.next.length ? html`<${Status} of="active" />` : html`<${Status} of="ended" /> ${s.ended_by || ''}`}<span class="push"></span>
      ${can('write') && html`<${Act} label="Run now" on=${() => ask({ title: `Run ${name} now`, verb: 'Run now', touches: '1 new job or run', act: then(() => post(`${path}/run-now`), 'It is accepted.') })} />
        ${s.paused ? html`<${Act} primary label="Resume" on=${resume} />`
        : html`<${Act} label="Pause" on=${() => ask({ title: `Pause ${name}`, verb: 'Pause', danger: true, touches: `1 schedule, whose next time is ${s.next[0] ? localTime(s.next[0]) : 'none'}`, fields: [why, until, missed], act: then((v) => post(`${path}/pause`, pauseBody(v)), 'It is paused.') })} />`}
        <${Act} danger label="Delete" on=${() => ask({ title: `Delete ${name}`, verb: 'Delete the schedule', danger: true, text: 'Jobs that it has made and that wait are skipped; what runs goes on. Its ledger goes, too.',
          touches: `1 schedule and ${plural((s.in_flight || []).length, 'job')} in flight`, done_text: 'The schedule is deleted.', act: async () => { await remove(path); location.hash = '#/schedules' } })} />`}</div>
    <div class="halves"><section><h2>What it is</h2>
        <${Facts} of=${[['Rule', html`<code>${rule(s.calendar)}</code>`], ['Time zone', s.calendar.timezone || 'UTC'], ['Makes', s.dag ? html`run of <a href=${`#/dags/${s.dag.name}`}>${s.dag.name}</a>` : `${s.job.task} job`],
          ['Overlap', s.overlap.replace('_', ' ')], ['Catch-up', `${s.catch_up.policy}, within ${s.catch_up.window}`], ['Spread', s.calendar.spread], ['Excludes', s.calendar.exclude?.join(', ')],
          ['From', s.calendar.start_at && html`<${Time} at=${s.calendar.start_at} />`], ['Until', s.calendar.end_at && html`<${Time} at=${s.calendar.end_at} />`],
          ['Failures in a row', s.failures_in_a_row], ['Jobs', html`<a href=${`#/jobs?schedule=${name}`}>all of its jobs</a>`], ['Version', s.version]]} />
        <${Json} label="Payload" value=${s.job?.payload} /></section>
      <section><h2>Next times</h2>${s.paused && html`<p class="mute">It is paused: these are its calendar's times.</p>`}<${Preview} of=${ahead} zone=${s.calendar.timezone} />
        ${can('write') && s.calendar.cron && html`<${Recron} key=${s.calendar.cron} path=${path} schedule=${s} live=${live} />`}</section></div>
    <h2>Ledger</h2><${Ledger} items=${past.items} more=${past.more} />`}<//>`
}

// Recron changes the cron: its times are shown while it is typed, and what it would change is asked first.
function Recron({ path, schedule, live }) {
  const [cron, set] = useState(schedule.calendar.cron)
  const changed = cron.trim() !== schedule.calendar.cron
  const preview = usePreview(changed && cron.trim() ? { ...schedule.calendar, cron: cron.trim() } : null, 5)
  const apply = async () => {
    const body = { calendar: { cron: cron.trim() } }
    const d = await call('PATCH', path, { query: { dry_run: true }, body })
    await ask({ title: `Change the cron of ${schedule.name}`, verb: 'Change it', danger: true, text: `In the next 30 days: ${d.added.length} added, ${d.lost.length} lost, ${d.moved.length} moved${d.cut ? ' (cut)' : ''}.`,
      touches: plural(d.added.length + d.lost.length + d.moved.length, 'time'), done_text: 'The cron is changed.', act: async () => { await call('PATCH', path, { body }); await live.again() } })
  }
  return html`<${Field} name="recron" label="Try another cron" value=${cron} onInput=${(e) => set(e.target.value)} />
    ${changed && html`<${Preview} of=${preview} zone=${schedule.calendar.timezone} />${preview.items && html`<${Act} label="Change it…" on=${apply} />`}`}`
}

// One schedule: its next times, its ledger by days, and what may be done to it.
import { html, useState } from '../core/html.js'
import { call, get, post, remove, seg, some } from '../core/api.js'
import { useLive } from '../core/live.js'
import { Empty, Facts, Json, Loaded, Status, Time, counted, day, localTime, look, plural } from '../core/form.js'
import { Act, Field, ask, why } from '../core/ask.js'
import { Preview, usePreview } from '../core/preview.js'
import { Table } from '../core/table.js'
import { Backfill, Backfills, backfillsOf } from './backfills.js'
import { Late } from './jobs.js'
import { missed, pauseBody, until } from './pauses.js'
import { calendars, rule } from './schedules.js'

const bad = ['DEAD', 'FAILED', 'EXPIRED']
const mostDays = 14
const mostCells = 150 // of a day, its newest

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

// told counts occurrences by outcome: 24 ran, 1 missed.
const told = (all) => ['ran', 'skipped', 'missed', 'superseded']
  .map((what) => [all.filter((o) => o.outcome === what).reduce((n, o) => n + (o.count || 1), 0), what])
  .filter(([n]) => n).map(([n, what]) => `${n} ${what}`).join(', ')

// toneOf: what ran and then failed is not good.
const toneOf = (o) => look(o.outcome === 'ran' && bad.includes(o.status) ? o.status : o.outcome)[0]

const times = (o) => (o.count > 1 ? ` × ${o.count}` : '')

function Became({ of: o }) {
  if (o.job_id) return html`<a href=${`#/jobs/${o.job_id}`}>${(o.status || 'job').toLowerCase()}</a>`
  if (o.run_id) return html`<a href=${`#/runs/${o.run_id}`}>${(o.status || 'run').toLowerCase()}</a>`
  return html`<span class="mute">–</span>`
}

// reasonOf is all that is known of why a time went as it did.
const reasonOf = (o) => o.why || o.reason?.replaceAll('_', ' ') || (o.manual ? 'run on request'
  : o.backfill ? 'made by a backfill' : '')

const columns = [
  { name: 'Nominal time', cell: (o) => html`<${Time} at=${o.nominal_at} />` },
  { name: 'Outcome', class: 'st', cell: (o) => html`<${Status} of=${o.outcome}>${times(o)}<//>
    <span class="thin mute small reason">${reasonOf(o)}</span>` },
  { name: 'Reason', class: 'wide', cell: reasonOf },
  { name: 'Job or run', cell: (o) => html`<${Became} of=${o} />` },
  { name: 'Late', class: 'wide number', cell: (o) => html`<${Late} ms=${o.start_lateness_ms} />` },
]

function Ledger({ items, more }) {
  const [only, setOnly] = useState('')
  if (items.length === 0) {
    return html`<${Empty} title="No time has come yet.">
      Each nominal time will be here: ran, skipped or missed, and why.<//>`
  }
  const days = daysOf(items)
  const rows = only ? days.find((d) => d.name === only)?.all.toReversed() || [] : items
  const title = (o) => `${localTime(o.nominal_at)} ${o.outcome}${times(o)}${o.why ? `: ${o.why}` : ''}`
  return html`<ul class="days" aria-label="Days of the ledger">
      ${days.slice(0, mostDays).map((d) => html`<li key=${d.name}>
        <button type="button" class="quiet" aria-pressed=${only === d.name} aria-label=${`${d.name}: ${told(d.all)}`}
          onClick=${() => setOnly(only === d.name ? '' : d.name)}>${d.name}</button>
        <div class="strip" aria-hidden="true">${d.all.slice(-mostCells).map((o) => html`
          <span key=${o.nominal_at} class=${`cell ${toneOf(o)}`} title=${title(o)} />`)}</div></li>`)}</ul>
    <p class="key"><span><i class="cell good"></i>ran</span><span><i class="cell idle"></i>skipped</span>
      <span><i class="cell bad"></i>missed, or it failed</span>
      <span>${told(items)}${more && ' of the newest'}</span></p>
    <${Table} caption=${only ? `Ledger of ${only}` : 'Ledger'} columns=${columns} rows=${rows}
      id=${(o) => o.nominal_at + o.job_id} />`
}

export function Schedule({ name, can }) {
  const path = `/schedules/${seg(name)}`
  const live = useLive(async (signal) => {
    const [schedule, past, ahead, backfills] = await Promise.all([get(path, {}, signal),
      some(`${path}/occurrences`, {}, { most: 400, pages: 3, signal }), get(`${path}/preview`, { count: 8 }, signal),
      backfillsOf(name, signal)])
    return { schedule, past, ahead, backfills }
  }, [name])
  const { schedule: s, past, ahead, backfills } = live.data || {}
  return html`<${Loaded} of=${live}>${s && html`
    <div class="row"><${State} s=${s} /><span class="push"></span>
      ${can('write') && html`<${Verbs} s=${s} path=${path} live=${live} />`}</div>
    <div class="halves">
      <section><h2>Details</h2><${Facts} of=${factsOf(s)} />
        <${Json} label="Payload" value=${s.job?.payload} /></section>
      <section><h2>Next times</h2>
        ${s.paused && html`<p class="mute">It is paused: these are its calendar's times.</p>`}
        <${Preview} of=${ahead} in=${s.calendar ? s.calendar.timezone : 'the zone of its calendar'} />
        ${can('write') && s.calendar?.cron && html`
          <${Recron} key=${s.calendar.cron} path=${path} s=${s} live=${live} />`}
      </section></div>
    <${Backfills} list=${backfills} can=${can} live=${live} />
    <h2>Ledger</h2><${Ledger} items=${past.items} more=${past.more} />`}<//>`
}

function State({ s }) {
  if (s.paused) {
    const { reason, by, since } = s.paused
    return html`<${Status} of="paused" /> <span>${reason || 'no reason given'} – ${by || 'an unknown caller'}, ${
      html`<${Time} at=${since} />`}</span>`
  }
  return s.next.length ? html`<${Status} of="active" />`
    : html`<${Status} of="ended" /> ${s.ended_by === 'max_runs' ? 'after all of its runs' : s.ended_by}`
}

// whenOf is what one calendar says; its rule comes first.
const whenOf = (c) => [
  ['Rule', html`<code>${rule(c)}</code>`], ['Time zone', c.timezone || 'UTC'],
  ['Spread', c.spread], ['Excludes', c.exclude?.join(', ')], ['At most', c.max_runs && `${c.max_runs} runs`],
  ['From', c.start_at && html`<${Time} at=${c.start_at} />`], ['Until', c.end_at && html`<${Time} at=${c.end_at} />`],
]

const factsOf = (s) => [
  ...(s.calendar ? whenOf(s.calendar) : calendars(s).map((c, n) => [`Calendar ${n + 1}`, html`<code>${rule(c)}</code>
    ${whenOf(c).slice(1).filter(([, value]) => value)
    .map(([name, value]) => html`; ${name.toLowerCase()} ${value}`)}`])),
  ['Makes', s.dag ? html`run of <a href=${`#/dags/${s.dag.name}`}>${s.dag.name}</a>` : `${s.job.task} job`],
  ['Overlap', s.overlap.replace('_', ' ')], ['Catch-up', `${s.catch_up.policy}, within ${s.catch_up.window}`],
  ['Failures in a row', s.failures_in_a_row], ['Version', s.version],
  ['Jobs', html`<a href=${`#/jobs?schedule=${s.name}`}>all of its jobs</a>`],
]

const runNowFields = (s) => [s.dag
  ? { name: 'input', label: 'Other params, in JSON', area: true, hint: 'The schedule\'s params of other names stay.' }
  : { name: 'input', label: 'Changes of the payload, in JSON', area: true,
    hint: 'A merge patch of the schedule\'s payload, for this job alone; null removes a field.' },
{ name: 'overlap', label: 'While an earlier run is not over', value: 'ignore',
  options: [['ignore', 'start anyway'], ['obey', `do as the schedule says: ${s.overlap.replace('_', ' ')}`]] }]

// runNowBody is the body of a run on request. Without an input it is what the schedule has.
export const runNowBody = (s, { input, overlap }) => ({ overlap,
  ...(input.trim() ? { [s.dag ? 'params' : 'payload_patch']: JSON.parse(input) } : {}) })

function Verbs({ s, path, live }) {
  const verb = (label, act, question) => () => ask({ title: `${label} ${s.name}`, verb: label, touches: '1 schedule',
    done_text: `${label}: done.`, act: async (v) => { await act(v); await live.again() }, ...question })
  const next = s.next[0] ? localTime(s.next[0]) : 'none'
  return html`
    <${Act} label="Run now" on=${verb('Run now', (v) => post(`${path}/run-now`, runNowBody(s, v)),
      { touches: s.dag ? '1 new run' : '1 new job', fields: runNowFields(s) })} />
    <a class="button" href=${`#/schedules/${s.name}/edit`}>Edit</a>
    <${Backfill} s=${s} path=${path} live=${live} />
    ${s.paused
      ? html`<${Act} primary label="Resume" on=${verb('Resume', (v) => post(`${path}/resume`, v),
        { fields: [{ ...missed, value: s.paused.missed || 'last' }] })} />`
      : html`<${Act} label="Pause" on=${verb('Pause', (v) => post(`${path}/pause`, pauseBody(v)),
        { danger: true, touches: `1 schedule, whose next time is ${next}`, fields: [why, until, missed] })} />`}
    <${Act} danger label="Delete" on=${() => ask({ title: `Delete ${s.name}`, verb: 'Delete the schedule', danger: true,
      text: 'Jobs that it has made and that wait are skipped; what runs goes on. Its ledger goes, too.',
      touches: async () => {
        const waiting = await some('/jobs', { schedule: s.name, status: 'SCHEDULED' })
        return `1 schedule and ${counted(waiting, 'waiting job')}`
      },
      done_text: 'The schedule is deleted.',
      act: async () => { await remove(path); location.hash = '#/schedules' } })} />`
}

// Recron changes the cron: its times are shown while it is typed, and what it would change is asked first.
function Recron({ path, s, live }) {
  const [cron, set] = useState(s.calendar.cron)
  const body = { calendar: { cron: cron.trim() } }
  const changed = cron.trim() && cron.trim() !== s.calendar.cron
  const preview = usePreview(changed ? { calendar: { ...s.calendar, cron: cron.trim() } } : null, 5)
  const apply = async () => {
    const d = await call('PATCH', path, { query: { dry_run: true }, body })
    const [added, lost, moved] = [d.added.length, d.lost.length, d.moved.length]
    await ask({ title: `Change the cron of ${s.name}`, verb: 'Change it', danger: true,
      text: `In the next 30 days: ${added} added, ${lost} lost, ${moved} moved${d.cut ? ' (cut)' : ''}.`,
      touches: plural(added + lost + moved, 'time'), done_text: 'The cron is changed.',
      act: async () => { await call('PATCH', path, { body }); await live.again() } })
  }
  return html`<${Field} name="recron" label="Try another cron" value=${cron} onInput=${(e) => set(e.target.value)} />
    ${changed && html`<${Preview} of=${preview} in=${s.calendar.timezone} />
      ${preview.items && html`<${Act} label="Change it…" on=${apply} />`}`}`
}

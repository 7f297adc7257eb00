// Making a schedule and changing one, with its times shown while its calendars are typed.
import { html, useMemo } from '../core/html.js'
import { call, get, put, read, some } from '../core/api.js'
import { Loaded, zone } from '../core/form.js'
import { ask, say } from '../core/ask.js'
import { Entry, More, jsonOf, linesOf, made, mergePatch, nameForm, nameOf, numberOf, pathOf, textOf, unread, useCheck,
  useEntry, useFirst, whole } from '../core/entry.js'
import { Preview, usePreview } from '../core/preview.js'
import { Labels, Settings, What, body, labelNames, pointers, priorities, settingNames, tagsOf, tagsText,
  values } from '../core/work.js'
import { calendars, rules } from './schedules.js'

const kinds = { cron: 'Cron expression', every: 'Every', rrule: 'RRULE', dates: 'Times, one a line' }
const examples = { cron: 'Five fields, or six with seconds first; also @daily.', every: 'Such as 90s, 5m, 1h or 1d.',
  rrule: 'Such as FREQ=MONTHLY;BYDAY=-1FR; it begins at the time of From.', dates: 'Such as 2027-03-28T01:00:00Z.' }
const walls = ['cron', 'rrule'] // kinds whose times are those of a clock on the wall

const plain = ['timezone', 'spread', 'phase', 'start_at', 'end_at', 'missing_hour', 'repeated_hour']
const calendarNames = [...plain, 'max_runs', 'exclude']
const calendarMore = calendarNames.filter((k) => k !== 'timezone')

const overlaps = [['allow', 'it starts while the earlier one runs'], ['skip', 'it is skipped'],
  ['buffer_one', 'one waits, a later one takes its turn'], ['buffer_all', 'all wait, in order'],
  ['cancel_running', 'the earlier one is cancelled']]
const policies = [['', 'default'], ['none', 'none runs'], ['last', 'the last one runs'], ['all', 'all run']]

// calendarValues returns what the form shows of calendar n. Of the view, was keeps what the form does not show.
function calendarValues(n, view) {
  const kind = Object.keys(kinds).find((k) => view[k] !== undefined) || 'cron'
  const { [kind]: rule, max_runs, exclude, ...rest } = view
  const was = Object.fromEntries(Object.entries(rest).filter(([k]) => !plain.includes(k)))
  return { [`${n}.kind`]: kind, [`${n}.rule`]: kind === 'dates' ? rule.join('\n') : rule, [`${n}.was`]: was,
    ...Object.fromEntries(plain.map((k) => [`${n}.${k}`, view[k] ?? ''])),
    [`${n}.max_runs`]: max_runs === undefined ? '' : String(max_runs), [`${n}.exclude`]: (exclude || []).join('\n') }
}

function calendarBody(n, v, at, refuse) {
  const kind = v[`${n}.kind`]
  const rule = kind === 'dates' ? linesOf(v[`${n}.rule`]) : v[`${n}.rule`].trim()
  if (rule.length === 0) refuse(`${at}/${kind}`, 'It is missing.')
  const text = (k) => v[`${n}.${k}`].trim()
  const exclude = linesOf(v[`${n}.exclude`])
  return whole({ ...v[`${n}.was`], [kind]: rule, ...Object.fromEntries(plain.map((k) => [k, text(k)])),
    timezone: kind === 'dates' ? '' : text('timezone'), phase: kind === 'every' ? text('phase') : '',
    missing_hour: walls.includes(kind) ? text('missing_hour') : '',
    repeated_hour: walls.includes(kind) ? text('repeated_hour') : '',
    max_runs: numberOf(text('max_runs'), `${at}/max_runs`, refuse), exclude: exclude.length ? exclude : undefined })
}

// calendarAt is where calendar n of the form is in the request: a schedule that has a list keeps it.
const calendarAt = (v, n) => (v.list.length > 1 || v.many ? `/calendars/${v.list.indexOf(n)}` : '/calendar')

const planOf = (v, refuse) => {
  const all = v.list.map((n) => calendarBody(n, v, calendarAt(v, n), refuse))
  return all.length > 1 || v.many ? { calendars: all } : { calendar: all[0] }
}

const dagTexts = ['name', 'priority', 'start_within', 'expire_after']
const dagRest = ['version', 'params', 'tags', 'allow_literals']
const dagMore = ['tags', 'start_within', 'expire_after', 'priority', 'version', 'allow_literals']

const dagValues = (d) => ({ ...Object.fromEntries(dagTexts.map((n) => [`dag.${n}`, d?.[n] ?? ''])),
  'dag.version': d?.version === undefined ? '' : String(d.version), 'dag.params': textOf(d?.params),
  'dag.tags': tagsText(d?.tags), 'dag.allow_literals': (d?.allow_literals || []).join('\n') })

function dagBody(v, refuse) {
  const literals = linesOf(v['dag.allow_literals'])
  return whole({ ...Object.fromEntries(dagTexts.map((n) => [n, v[`dag.${n}`].trim()])),
    version: numberOf(v['dag.version'], '/dag/version', refuse), params: jsonOf(v['dag.params'], '/dag/params', refuse),
    tags: tagsOf(v['dag.tags'], '/dag/tags', refuse), allow_literals: literals.length ? literals : undefined })
}

// valuesOf returns what the form shows of a schedule, or of a new one.
export function valuesOf(s) {
  const all = s ? calendars(s) : [{ cron: '0 9 * * 1-5', timezone: zone }]
  return { name: s?.name ?? '', makes: s?.dag ? 'dag' : 'job', many: Boolean(s?.calendars),
    list: all.map((_, n) => String(n)), ...Object.assign({}, ...all.map((c, n) => calendarValues(String(n), c))),
    ...values('job.', s?.job), ...(s ? {} : { 'job.task': 'echo', 'job.payload': '{}' }), ...dagValues(s?.dag),
    overlap: s?.overlap ?? 'allow', policy: s?.catch_up.policy ?? '', window: s?.catch_up.window ?? '',
    cap: s ? String(s.catch_up.cap) : '', after: s?.catch_up.after ?? '',
    pause_after_failures: s ? String(s.pause_after_failures) : '', paused: '', reason: '' }
}

// scheduleBody returns the whole schedule that the form means, as a PUT takes it.
const scheduleBody = (v, refuse) => whole({ ...planOf(v, refuse),
  ...(v.makes === 'dag' ? { dag: dagBody(v, refuse) } : { job: body('job.', v, '/job', refuse) }), overlap: v.overlap,
  catch_up: whole({ policy: v.policy, window: v.window.trim(), cap: numberOf(v.cap, '/catch_up/cap', refuse),
    after: v.after.trim() }),
  pause_after_failures: numberOf(v.pause_after_failures, '/pause_after_failures', refuse),
  paused: v.paused ? (v.reason.trim() ? { reason: v.reason.trim() } : true) : undefined })

const fromTask = ['pool', 'priority', 'timeout', 'retry', 'limits']

// patchOf returns the merge patch that makes of the schedule s what the form means, so that what the form does not
// show stays; undefined if it changes nothing. Of another task, the settings are those of the form, too.
export const patchOf = (s, v) => made((refuse) => {
  const before = scheduleBody(valuesOf(s), refuse)
  const after = scheduleBody(v, refuse)
  if (before.job && after.job && before.job.task !== after.job.task) for (const n of fromTask) delete before.job[n]
  return mergePatch(before, after, refuse)
})

const at = (v) => ({ ...pointers('job.', '/job'), name: '/name', overlap: '/overlap', policy: '/catch_up/policy',
  window: '/catch_up/window', cap: '/catch_up/cap', after: '/catch_up/after', reason: '/paused',
  pause_after_failures: '/pause_after_failures',
  ...Object.fromEntries([...dagTexts, ...dagRest].map((n) => [`dag.${n}`, `/dag/${n}`])),
  ...Object.fromEntries(v.list.flatMap((n) => [[`${n}.rule`, `${calendarAt(v, n)}/${v[`${n}.kind`]}`],
    ...calendarNames.map((k) => [`${n}.${k}`, `${calendarAt(v, n)}/${k}`])])) })

// quietly returns what make makes, or null where it refuses something: nothing is asked about a form with mistakes.
const quietly = (make) => { try { return made(make) } catch { return null } }

export function EditSchedule({ name }) {
  const first = useFirst(async (signal) => {
    const all = (path) => some(path, {}, { most: 1000, signal }).then((found) => found.items)
    const [tasks, limits, dags, exclusions, schedule] = await Promise.all([...['/tasks', '/limits', '/dags',
      '/exclusions'].map(all), name && get(pathOf('schedules', name), {}, signal)])
    return { tasks, limits, dags, exclusions, s: schedule || undefined }
  }, [name])
  return html`<${Loaded} of=${first}>${first.data && html`<${Form} ...${first.data} />`}<//>`
}

// inputOf returns the input that the API checks while it is typed, or null while there is none to check. Of a payload
// that the form does not show, changes alone are typed, which only the edit can check.
function inputOf(v, { tasks, dags, s }) {
  if (v.makes === 'job') {
    const hidden = hiddenOf(s) > 0
    if (hidden || unread(v['job.payload']) || !tasks.some((t) => t.name === v['job.task'])) return null
    return { job: whole({ task: v['job.task'], payload: v['job.payload'].trim() ? read(v['job.payload']) : undefined,
      allow_literals: linesOf(v['job.allow_literals']) }) }
  }
  if (unread(v['dag.params']) || !dags.some((d) => d.name === v['dag.name'])) return null
  return { dag: whole({ name: v['dag.name'], params: v['dag.params'].trim() ? read(v['dag.params']) : undefined,
    allow_literals: linesOf(v['dag.allow_literals']) }) }
}

// hiddenOf is the size of a payload that is too large to be shown; 0 of any other.
const hiddenOf = (s) => (s?.job && s.job.payload === undefined ? s.job.payload_size || 0 : 0)

async function add(v) {
  const path = pathOf('schedules', v.name)
  const wanted = made((refuse) => { nameOf(v.name, refuse); return scheduleBody(v, refuse) })
  const save = async () => {
    await put(path, wanted)
    say(`The schedule ${v.name} is set.`)
    location.hash = `#/schedules/${v.name}`
  }
  const old = await get(path).catch((e) => (e.status === 404 ? null : Promise.reject(e)))
  return old ? ask({ title: `Replace ${v.name}`, verb: 'Replace it', danger: true, act: save,
    touches: `1 schedule, ${rules(old)}`, text: 'There is a schedule of that name. Its ledger stays.' }) : save()
}

async function change(s, v) {
  const path = pathOf('schedules', s.name)
  const patch = patchOf(s, v)
  const back = (text) => { say(text); location.hash = `#/schedules/${s.name}` }
  if (patch === undefined) return back('Nothing has changed.')
  const edit = (query) => call('PATCH', path, { body: patch, match: s.version, query })
  const d = await edit({ dry_run: true })
  return ask({ title: `Change ${s.name}`, verb: 'Change it', danger: true, touches: '1 schedule',
    text: html`It changes ${d.changed.map((c) => html`<code>${c}</code> `)}. In the next 30 days: ${
      d.added.length} added, ${d.lost.length} lost, ${d.moved.length} moved${d.cut ? ' (cut)' : ''}.`,
    act: async () => { await edit(); back(`The schedule ${s.name} is changed.`) } })
}

function Form({ s, ...known }) {
  const f = useEntry(useMemo(() => valuesOf(s), []), at)
  const { v } = f
  const plan = quietly((refuse) => planOf(v, refuse))
  const preview = usePreview(plan, 8)
  useCheck(inputOf(v, { ...known, s }), f.setChecked, v.makes === 'job' ? '/job' : '/dag')
  const zones = v.list.length === 1 ? v[`${v.list[0]}.timezone`] || 'UTC' : 'the zone of its calendar'
  const more = () => {
    const n = String(Math.max(...v.list.map(Number)) + 1)
    f.setV((old) => ({ ...old, ...calendarValues(n, { cron: '', timezone: zone }), list: [...old.list, n] }))
  }
  return html`<${Entry} of=${f} act=${() => (s ? change(s, v) : add(v))} verb=${s ? 'Change the schedule…'
    : 'Set the schedule'} back=${s ? `#/schedules/${s.name}` : '#/schedules'}>
    <div class="card"><h2>What it makes</h2>
      ${f.field('name', 'Name', { ...nameForm, required: true, readonly: Boolean(s) })}
      ${f.field('makes', 'Each time makes', { options: [['job', 'a job'], ['dag', 'a run of a DAG']] })}
      ${v.makes === 'job' ? html`<${JobFields} of=${f} ...${known} hidden=${hiddenOf(s)} />`
        : html`<${DagFields} of=${f} ...${known} />`}
      <${Policies} of=${f} s=${s} /></div>
    <div class="card"><h2>When</h2>
      ${v.list.map((n, i) => html`<${Calendar} key=${n} of=${f} n=${n} i=${i} ...${known} />`)}
      ${v.list.length < 10 && html`<button type="button" onClick=${more}>Add a calendar</button>`}
      <h3>Next times</h3><${Preview} of=${preview} in=${zones} /></div><//>`
}

const JobFields = ({ of: f, tasks, limits, hidden }) => html`
  <${What} of=${f} p="job." tasks=${tasks} hidden=${hidden} />
  <${More} label="Tags, deadlines, unique key" open=${f.bad(labelNames('job.'))}><${Labels} of=${f} p="job." /><//>
  <${More} label="Priority, pool, retries, limits" open=${f.bad(settingNames('job.'))}>
    <${Settings} of=${f} p="job." unset="as the task says" limits=${limits}
      known=${tasks.find((t) => t.name === f.v['job.task'])} /><//>`

const DagFields = ({ of: f, dags }) => html`
  ${f.field('dag.name', 'DAG', { required: true, list: dags.map((d) => d.name), hint: 'Of those that are there.' })}
  ${f.field('dag.params', 'Params, in JSON', { json: true, hint: 'Those that are left out are as the DAG says.' })}
  <${More} label="Tags, deadlines, priority, version"
    open=${f.bad(dagMore.map((n) => `dag.${n}`))}>
    ${f.field('dag.tags', 'Tags', { area: true, rows: 2, hint: 'NAME=VALUE, one a line, at most 10.' })}
    <div class="fields">${f.field('dag.start_within', 'Starts within', { hint: 'Of its due time, or it is missed.' })}
      ${f.field('dag.expire_after', 'Ends within', { hint: 'Of its due time.' })}
      ${f.field('dag.priority', 'Priority', { options: [['', 'as the DAG says'], ...priorities.map((x) => [x, x])] })}
      ${f.field('dag.version', 'Version', { inputmode: 'numeric', placeholder: 'the newest' })}</div>
    ${f.field('dag.allow_literals', 'Strings that are no secrets', { area: true, rows: 2,
      hint: 'JSON pointers such as /params/text, one a line.' })}<//>`

const Policies = ({ of: f, s }) => html`<h3>While an earlier run goes on</h3>
  ${f.field('overlap', 'Overlap', { options: overlaps })}
  ${!s && html`${f.field('paused', 'Begins', { options: [['', 'at once'], ['yes', 'paused']] })}
    ${f.v.paused && f.field('reason', 'Reason of the pause')}`}
  <${More} label="Late times and failures" open=${f.bad(['policy', 'window', 'cap', 'after', 'pause_after_failures'])}>
    <div class="fields">${f.field('policy', 'Of late times', { options: policies })}
      ${f.field('window', 'Not older than', { placeholder: '1h' })}
      ${f.field('cap', 'At most', { inputmode: 'numeric', placeholder: '100' })}
      ${f.field('after', 'Late after', { placeholder: '1m' })}
      ${f.field('pause_after_failures', 'Pause after failures in a row', { inputmode: 'numeric',
        hint: '0 is never.' })}</div><//>`

function Calendar({ of: f, n, i, exclusions }) {
  const { v } = f
  const kind = v[`${n}.kind`]
  const field = (k, label, more) => f.field(`${n}.${k}`, label, more)
  const remove = () => f.setV((old) => ({ ...old, list: old.list.filter((o) => o !== n) }))
  const several = v.list.length > 1
  return html`<fieldset><legend class=${several ? '' : 'hidden'}>Calendar ${i + 1}</legend>
    <div class="fields">${field('kind', 'Rule', { options: Object.keys(kinds).map((k) => [k, k]) })}
      ${kind !== 'dates' && field('timezone', 'Time zone', { list: Intl.supportedValuesOf('timeZone'),
        placeholder: 'UTC' })}</div>
    ${field('rule', kinds[kind], { required: true, area: kind === 'dates', hint: examples[kind] })}
    <${More} label="Exclusions, spread, beginning and end"
      open=${Boolean(v[`${n}.exclude`]) || f.bad(calendarMore.map((k) => `${n}.${k}`))}>
      ${field('exclude', 'Exclusions', { area: true, rows: 2, hint: `Names, one a line. There ${exclusions.length
        ? `are: ${exclusions.map((e) => e.name).join(', ')}` : 'is no exclusion yet'}.` })}
      <div class="fields">${field('spread', 'Spread', { hint: 'Longest delay, such as 5m.' })}
        ${kind === 'every' && field('phase', 'Phase', { hint: 'Shift by less than a period.' })}
        ${field('max_runs', 'At most', { inputmode: 'numeric', hint: 'Runs in all.' })}
        ${field('start_at', 'From', { placeholder: '2027-03-28T01:00:00Z' })}
        ${field('end_at', 'Until', { placeholder: '2027-03-28T01:00:00Z' })}
        ${walls.includes(kind) && html`
        ${field('missing_hour', 'In an hour that is left out', { options: [['', 'default'],
          ['run_after', 'runs after it'], ['skip', 'is skipped']] })}
        ${field('repeated_hour', 'In an hour that comes twice', { options: [['', 'default'], ['first', 'the first'],
          ['last', 'the last'], ['both', 'both']] })}`}</div><//>
    ${several && html`<button type="button" class="danger" onClick=${remove}
      aria-label=${`Remove calendar ${i + 1}`}>Remove</button>`}</fieldset>`
}

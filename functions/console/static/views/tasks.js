// Tasks: the settings of their jobs; making, changing and deleting them, and pausing all jobs of one.
import { html, useMemo } from '../core/html.js'
import { get, put, remove, some } from '../core/api.js'
import { useLive } from '../core/live.js'
import { Facts, Json, Loaded, Status, Time, counted } from '../core/form.js'
import { Act, ask, say, why } from '../core/ask.js'
import { Table } from '../core/table.js'
import { Entry, More, jsonOf, made, nameForm, nameOf, pathOf, same, textOf, useEntry, useFirst,
  whole } from '../core/entry.js'
import { Settings, pointers, settingNames, settingsBody, settingsValues } from '../core/work.js'
import { keyed } from './jobs.js'
import { missed, pauseBody, until } from './pauses.js'

const executors = [['go', 'go: a handler of your workers'], ['http', 'http: calls a URL'],
  ['lambda', 'lambda: invokes a function'], ['sqs', 'sqs: sends a message'], ['echo', 'echo: answers with the payload']]

const link = (t) => html`<a href=${`#/tasks/${t.name}`}>${t.name}</a>`
const limitsOf = (t) => t.limits?.map((l) => keyed(l).slice('limit '.length)).join(', ') || '–'

const columns = (pauses) => [
  { name: 'Task', cell: (t) => html`${link(t)}${' '}
    ${pauses.has(`task:${t.name}`) && html`<${Status} of="paused" />`}` },
  { name: 'Run by', cell: (t) => t.executor },
  { name: 'Priority', class: 'wide', cell: (t) => t.priority }, { name: 'Pool', class: 'wide', cell: (t) => t.pool },
  { name: 'Timeout', class: 'wide', cell: (t) => t.timeout },
  { name: 'Attempts', class: 'number', cell: (t) => t.retry.max_attempts },
  { name: 'Limits', class: 'wide', cell: limitsOf },
  { name: 'Version', class: 'number', cell: (t) => (t.built_in ? 'built in' : t.version) },
]

export function Tasks({ can }) {
  const live = useLive(async (signal) => {
    const [tasks, pauses] = await Promise.all([some('/tasks', {}, { most: 1000, signal }),
      some('/pauses', {}, { most: 1000, signal })])
    return { tasks, pauses: pauses.items.map((p) => p.scope) }
  }, [], 8_000)
  return html`<${Loaded} of=${live}>${live.data && html`
    <div class="row"><span class="mute">${counted(live.data.tasks, 'task')}</span><span class="push"></span>
      ${can('admin') && html`<a class="button" href="#/tasks/new!">New task</a>`}</div>
    <${Table} caption="Tasks" columns=${columns(new Set(live.data.pauses))} rows=${live.data.tasks.items}
      id=${(t) => t.name} />`}<//>`
}

export function Task({ name, can }) {
  const path = pathOf('tasks', name)
  const live = useLive(async (signal) => {
    const [task, pauses, waiting, schedules] = await Promise.all([get(path, {}, signal),
      some('/pauses', {}, { most: 1000, signal }), some('/jobs', { task: name, status: 'SCHEDULED' }, { signal }),
      some('/schedules', {}, { most: 1000, pages: 8, signal })])
    return { task, pause: pauses.items.find((p) => p.scope === `task:${name}`), waiting,
      schedules: { ...schedules, items: schedules.items.filter((s) => s.job?.task === name) } }
  }, [name], 4_000)
  const { task: t, pause, schedules } = live.data || {}
  return html`<${Loaded} of=${live}>${t && html`
    <div class="row">${t.built_in && html`<span class="mute">Built in, and cannot be changed.</span>`}
      ${pause && html`<${Status} of="paused" />
        <span>${pause.reason || 'no reason given'} – ${pause.by || 'an unknown caller'}, ${
          html`<${Time} at=${pause.since} />`}${pause.until && html`, until <${Time} at=${pause.until} />`}</span>`}
      <span class="push"></span><${Verbs} of=${live.data} path=${path} can=${can} live=${live} /></div>
    ${t.notes?.map((n) => html`<p class="note">${n}</p>`)}
    <div class="halves"><section><h2>Its jobs</h2><${Facts} of=${[
      ['Run by', executors.find(([e]) => e === t.executor)?.[1] || t.executor], ['Priority', t.priority],
      ['Pool', t.pool], ['Timeout of an attempt', t.timeout], ['Attempts', `at most ${t.retry.max_attempts}`],
      ['Delays', `${t.retry.initial_delay} × ${t.retry.factor}, at most ${t.retry.max_delay}`],
      ['Jitter', t.retry.jitter],
      ['If its worker is lost', t.retry.on_worker_lost === 'rerun' ? 'started once more' : 'the attempt has failed'],
      ['Limits', t.limits?.length && t.limits.map((l) => html`<a href=${`#/limits/${l.name}`}>${
        keyed(l).slice('limit '.length)}</a> `)],
      ['Largest result', `${t.max_result}, else ${t.on_large_result === 'fail' ? 'it fails' : 'a preview'}`],
      ['Version', !t.built_in && t.version]]} /></section>
    <section><h2>Where it is used</h2>
      <p><a href=${`#/jobs?task=${t.name}`}>All of its jobs</a>${' · '}${
        html`<a href=${`#/jobs?task=${t.name}&status=DEAD`}>those that failed for good</a>`}</p>
      ${schedules.items.length === 0 ? html`<p class="mute">No schedule makes jobs of it${
        schedules.more ? ' among the first 1,000' : ''}.</p>` : html`<p>${schedules.items.map((s) => html`
        <a href=${`#/schedules/${s.name}`}>${s.name}</a> `)}</p>`}
      <${Json} label="Schema of its payloads" value=${t.payload_schema} /></section></div>`}<//>`
}

function Verbs({ of: { task: t, pause, waiting, schedules }, path, can, live }) {
  const scope = pathOf('pauses', `task:${t.name}`)
  const touched = `${counted(waiting, 'waiting job')} and ${counted(schedules, 'schedule')}`
  return html`
    ${can('write') && html`<a class="button" href=${`#/jobs/new!?task=${t.name}`}>New job</a>`}
    ${can('admin') && !t.built_in && html`<a class="button" href=${`#/tasks/${t.name}/edit`}>Edit</a>`}
    ${can('admin') && (pause ? html`<${Act} primary label="Resume" on=${() => ask({ verb: 'Lift it',
      title: `Lift the pause of ${t.name}`, text: 'What it held starts within seconds.', touches: touched,
      done_text: 'The pause is lifted.', act: async () => { await remove(scope); await live.again() } })} />`
    : html`<${Act} label="Pause" on=${() => ask({ title: `Pause ${t.name}`, verb: 'Pause the task', danger: true,
      text: 'None of its jobs starts until the pause is lifted; what runs goes on.', touches: touched,
      fields: [why, until, missed], done_text: 'It is paused.',
      act: async (v) => { await put(scope, pauseBody(v)); await live.again() } })} />`)}
    ${can('admin') && !t.built_in && html`<${Act} danger label="Delete" on=${() => ask({ title: `Delete ${t.name}`,
      verb: 'Delete the task', danger: true, touches: touched, done_text: 'The task is deleted.',
      text: 'Jobs that wait still run, as they copied its settings. New ones of it are refused.',
      act: async () => { await remove(path); location.hash = '#/tasks' } })} />`}`
}

const at = () => ({ ...pointers('', ''), name: '/name', executor: '/executor', max_result: '/max_result',
  on_large_result: '/on_large_result', payload_schema: '/payload_schema' })

const valuesOf = (t) => ({ ...settingsValues('', t), name: t?.name ?? '', executor: t?.executor ?? 'go',
  max_result: t?.max_result ?? '', on_large_result: t?.on_large_result ?? '',
  payload_schema: textOf(t?.payload_schema) })

// bodyOf returns the task that the form means. What the form does not show stays as `was`, the view of the task.
export const bodyOf = (v, was = {}) => made((refuse) => {
  nameOf(v.name, refuse)
  const { name, version, built_in, notes, ...kept } = was
  const { limits, ...settings } = settingsBody('', v, '', refuse)
  return whole({ ...kept, ...settings, limits: limits?.length ? limits : undefined, executor: v.executor,
    max_result: v.max_result.trim(), on_large_result: v.on_large_result,
    payload_schema: jsonOf(v.payload_schema, '/payload_schema', refuse) })
})

export function EditTask({ name }) {
  const first = useFirst(async (signal) => {
    const [limits, known, task] = await Promise.all([some('/limits', {}, { most: 1000, signal }),
      get(pathOf('tasks', 'echo'), {}, signal), // which is built in, and so has the defaults
      name && get(pathOf('tasks', name), {}, signal)])
    return { limits: limits.items, known, task: task || undefined }
  }, [name])
  return html`<${Loaded} of=${first}>${first.data && html`<${Form} ...${first.data} />`}<//>`
}

function Form({ task, known, limits }) {
  const f = useEntry(useMemo(() => valuesOf(task), []), at)
  const act = async (v) => {
    const body = bodyOf(v, task)
    const path = pathOf('tasks', v.name)
    const save = async () => {
      await put(path, body)
      say(`The task ${v.name} is set.`)
      location.hash = `#/tasks/${v.name}`
    }
    if (task) {
      await same(path, task.version)
      return save()
    }
    const old = await get(path).catch((e) => (e.status === 404 ? null : Promise.reject(e)))
    return old ? ask({ title: `Replace ${v.name}`, verb: 'Replace it', danger: true, act: save, touches: '1 task',
      text: 'There is a task of that name. Jobs that wait keep its former settings.' }) : save()
  }
  return html`<${Entry} of=${f} act=${act} verb="Set the task" back=${task ? `#/tasks/${task.name}` : '#/tasks'}>
    <div class="card"><h2>What it is</h2>
      ${f.field('name', 'Name', { ...nameForm, required: true, readonly: Boolean(task) })}
      ${f.field('executor', 'Run by', { options: executors })}
      <p class="small mute">Jobs copy these settings when they are accepted: those that wait do not change.</p>
      ${f.field('payload_schema', 'JSON Schema of its payloads', { json: true, rows: 10 })}</div>
    <div class="card"><h2>How its jobs run</h2>
      <${Settings} of=${f} p="" unset="default" known=${known} limits=${limits} />
      <${More} label="Results" open=${f.bad(['max_result', 'on_large_result'])}><div class="fields">
        ${f.field('max_result', 'Largest result', { hint: 'Such as 16KiB, at most 256KiB.' })}
        ${f.field('on_large_result', 'A larger one', { options: [['', 'default'], ['preview', 'is cut to a preview'],
          ['fail', 'fails the attempt']] })}</div><//></div><//>`
}

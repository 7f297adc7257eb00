// What jobs, the jobs of schedules, and tasks have in common: their fields, what a form shows of one that is there,
// and what a form means. Fields have a prefix p, so that a form can have several, and pointers begin with `at`.
import { html } from './html.js'
import { jsonOf, linesOf, numberOf, textOf, whole } from './entry.js'
import { Json } from './form.js'

export const priorities = ['critical', 'high', 'normal', 'low']
const retryFields = ['max_attempts', 'initial_delay', 'factor', 'max_delay', 'jitter', 'on_worker_lost']
const numbers = ['max_attempts', 'factor', 'jitter']

const settings = ['priority', 'pool', 'timeout']
const texts = ['task', 'start_within', 'expire_after', 'tags', 'metadata', 'allow_literals', 'payload']

// pointers returns which part of a request each field is.
export const pointers = (p, at) => Object.fromEntries([
  ...[...settings, ...texts].map((n) => [`${p}${n}`, `${at}/${n}`]),
  ...retryFields.map((n) => [`${p}${n}`, `${at}/retry/${n}`]),
  [`${p}limits`, `${at}/limits`], [`${p}unique`, `${at}/unique/key`], [`${p}until`, `${at}/unique/until`],
  [`${p}on_conflict`, `${at}/unique/on_conflict`]])

// limitText writes the use of a limit as limitOf reads it: names have no colon.
const limitText = (l) => (l.key === null || l.key === undefined ? l.name : `${l.name}:${l.key}`)
const limitOf = (line) => {
  const [name, ...key] = line.split(':')
  return key.length ? { name, key: key.join(':') } : { name }
}

// tagsText writes tags in lines, or in JSON where a name has what tagsOf reads as the end of a name.
export function tagsText(tags) {
  if (!tags) return ''
  const lines = Object.entries(tags).map(([k, v]) => `${k}=${v}`)
  const plain = (text) => text.trim() === text && !text.startsWith('{')
  return Object.keys(tags).every((k) => !k.includes('=')) && lines.every(plain) ? lines.join('\n') : textOf(tags)
}

// tagsOf reads what tagsText writes; undefined for none.
export function tagsOf(text, pointer, refuse) {
  if (text.trimStart().startsWith('{')) return jsonOf(text, pointer, refuse)
  const tags = {}
  for (const line of linesOf(text)) {
    const end = line.indexOf('=')
    const name = line.slice(0, end)
    if (end < 1) refuse(pointer, `“${line}” has no =.`, 'lines of NAME=VALUE')
    else if (Object.hasOwn(tags, name)) refuse(pointer, `The name ${name} is there twice.`)
    else Object.defineProperty(tags, name, { value: line.slice(end + 1), enumerable: true, configurable: true })
  }
  return Object.keys(tags).length ? tags : undefined
}

// settingsValues returns what a form shows of the settings of a view; without a view they are as the task says.
export const settingsValues = (p, view) => Object.fromEntries([
  ...settings.map((n) => [`${p}${n}`, view?.[n] ?? '']),
  ...retryFields.map((n) => [`${p}${n}`, view?.retry?.[n] === undefined ? '' : String(view.retry[n])]),
  [`${p}own_limits`, view ? (view.limits?.length ? 'own' : 'none') : ''],
  [`${p}limits`, (view?.limits || []).map(limitText).join('\n')]])

// values returns what a form shows of the view of a job or of a job of a schedule, of all but its time.
export const values = (p, view) => ({ ...settingsValues(p, view),
  [`${p}task`]: view?.task ?? '', [`${p}start_within`]: view?.start_within ?? '',
  [`${p}expire_after`]: view?.expire_after ?? '', [`${p}payload`]: textOf(view?.payload),
  [`${p}tags`]: tagsText(view?.tags), [`${p}metadata`]: textOf(view?.metadata),
  [`${p}allow_literals`]: (view?.allow_literals || []).join('\n'), [`${p}unique`]: view?.unique?.key ?? '',
  [`${p}until`]: view?.unique?.until ?? 'done', [`${p}on_conflict`]: view?.unique?.on_conflict ?? 'return' })

// settingsBody returns the settings that the fields mean.
export function settingsBody(p, v, at, refuse) {
  const text = (n) => v[p + n].trim()
  const retry = (n) => (numbers.includes(n) ? numberOf(text(n), `${at}/retry/${n}`, refuse) : text(n))
  const limits = { none: () => [], own: () => linesOf(v[`${p}limits`]).map(limitOf) }[v[`${p}own_limits`]]?.()
  return { ...Object.fromEntries(settings.map((n) => [n, text(n)])), limits,
    retry: whole(Object.fromEntries(retryFields.map((n) => [n, retry(n)]))) }
}

// body returns the job that the fields mean, of all but its time.
export function body(p, v, at, refuse) {
  const text = (n) => v[p + n].trim()
  const literals = linesOf(v[`${p}allow_literals`])
  return whole({ task: text('task'), payload: jsonOf(v[`${p}payload`], `${at}/payload`, refuse),
    ...settingsBody(p, v, at, refuse), start_within: text('start_within'), expire_after: text('expire_after'),
    unique: v[`${p}unique`] ? { key: v[`${p}unique`], until: v[`${p}until`], on_conflict: v[`${p}on_conflict`] }
      : undefined,
    tags: tagsOf(v[`${p}tags`], `${at}/tags`, refuse), metadata: jsonOf(v[`${p}metadata`], `${at}/metadata`, refuse),
    allow_literals: literals.length ? literals : undefined })
}

const none = (label) => ['', label]
const example = { hint: 'Such as 90s, 5m, 1h30m or 2d.' }

// Settings are the fields of priority, pool, timeout, limits and retries. unset says what an empty one means, and
// known are the settings that it then has.
export function Settings({ of: f, p, unset, known = {}, limits = [] }) {
  const was = (n) => (known[n] === undefined ? unset : `${unset}: ${known[n]}`)
  const f_ = (n, label, more) => f.field(p + n, label, more)
  const retry = (n) => (known.retry ? String(known.retry[n]) : undefined)
  return html`<div class="fields">
      ${f_('priority', 'Priority', { options: [none(was('priority')), ...priorities.map((x) => [x, x])] })}
      ${f_('pool', 'Pool', { options: [none(was('pool')), ['short', 'short'], ['long', 'long']] })}
      ${f_('timeout', 'Timeout of an attempt', { placeholder: known.timeout, ...example })}</div>
    <h3>Attempts</h3><div class="fields">
      ${f_('max_attempts', 'At most', { inputmode: 'numeric', placeholder: retry('max_attempts') })}
      ${f_('initial_delay', 'First delay', { placeholder: retry('initial_delay') })}
      ${f_('factor', 'Factor', { inputmode: 'decimal', placeholder: retry('factor') })}
      ${f_('max_delay', 'Longest delay', { placeholder: retry('max_delay') })}
      ${f_('jitter', 'Jitter, 0 to 1', { inputmode: 'decimal', placeholder: retry('jitter') })}
      ${f_('on_worker_lost', 'If its worker is lost', { options: [none(unset), ['rerun', 'start it once more'],
        ['fail', 'the attempt has failed']] })}</div>
    <h3>Limits of work</h3>
    ${f_('own_limits', 'Counts under', { options: [none(unset), ['none', 'no limit'], ['own', 'these limits']] })}
    ${f.v[`${p}own_limits`] === 'own' && f_('limits', 'Limits and keys', { area: true, rows: 2,
      hint: `NAME or NAME:KEY, one a line, at most 3. There ${limits.length ? `are: ${
        limits.map((l) => l.name).join(', ')}` : 'is no limit yet'}.` })}`
}

const inputs = { http: 'Needs url; may have method, headers, body, auth and sign_with.',
  lambda: 'Needs the function to invoke.', echo: 'Any value, which becomes the result.',
  sqs: 'Needs the queue and the message.' }

// What are the fields of the task and its input; tasks are the views of all that are known, and hidden the size of an
// input that is too large to be shown.
export function What({ of: f, p, tasks, hidden }) {
  const task = tasks.find((t) => t.name === f.v[`${p}task`])
  return html`${f.field(`${p}task`, 'Task', { required: true, list: tasks.map((t) => t.name),
      hint: task ? `Run by ${task.executor}.` : 'Of those that are there.' })}
    ${f.field(`${p}payload`, hidden ? 'Changes of the payload, in JSON' : 'Payload, in JSON', { json: true,
      hint: hidden ? `It has ${hidden.toLocaleString()} bytes and is not shown. What is typed here is merged into it.`
        : inputs[task?.executor] })}
    ${task?.payload_schema && html`<details><summary>Schema of the payload</summary>
      <${Json} label=${`Schema of ${task.name}`} value=${task.payload_schema} /></details>`}`
}

// Labels are the fields of tags, deadlines, the unique key and metadata.
export const Labels = ({ of: f, p }) => html`
  ${f.field(`${p}tags`, 'Tags', { area: true, rows: 2, hint: 'NAME=VALUE, one a line, at most 10.' })}
  <div class="fields">${f.field(`${p}start_within`, 'Starts within', { hint: 'Of its due time, or not at all.' })}
    ${f.field(`${p}expire_after`, 'Ends within', { hint: 'Of its due time, or it expires.' })}</div>
  <h3>Unique key</h3><div class="fields">
    ${f.field(`${p}unique`, 'Key', { hint: 'One open job has it at a time.' })}
    ${f.v[`${p}unique`] && html`${f.field(`${p}until`, 'Held until',
      { options: [['done', 'the job has ended'], ['started', 'the job has started']] })}
    ${f.field(`${p}on_conflict`, 'If another job has it', { options: [['return', 'that one is returned'],
      ['reject', 'the new one is refused'], ['replace', 'that one becomes the new one']] })}`}</div>
  ${f.field(`${p}metadata`, 'Metadata, in JSON', { json: true, rows: 2, hint: 'Shown with the job; has no effect.' })}
  ${f.field(`${p}allow_literals`, 'Strings that are no secrets', { area: true, rows: 2,
    hint: 'JSON pointers such as /payload/text, one a line.' })}`

export const labelNames = (p) => ['tags', 'start_within', 'expire_after', 'unique', 'until', 'on_conflict', 'metadata',
  'allow_literals'].map((n) => p + n)
export const settingNames = (p) => [...settings, ...retryFields, 'limits'].map((n) => p + n)

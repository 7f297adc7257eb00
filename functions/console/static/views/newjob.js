// A new job, of its own or like another one.
import { html, useMemo, useRef } from '../core/html.js'
import { get, read, seg, send, some } from '../core/api.js'
import { Loaded, short } from '../core/form.js'
import { say } from '../core/ask.js'
import { Entry, More, linesOf, made, unread, useCheck, useEntry, useFirst, whole } from '../core/entry.js'
import { Labels, Settings, What, body, labelNames, pointers, settingNames, values } from '../core/work.js'

const rules = [['all_succeeded', 'all have succeeded'], ['all_done', 'all have ended'],
  ['all_failed', 'all have failed'], ['one_succeeded', 'one has succeeded'], ['one_failed', 'one has failed'],
  ['none_failed', 'none has failed'], ['none_failed_one_succeeded', 'none has failed and one has succeeded']]

const at = () => ({ ...pointers('', ''), run_at: '/run_at', delay: '/delay', after: '/after', run_if: '/run_if' })

// instantOf reads a time in the user's zone; null if it is none.
const instantOf = (text) => (Number.isNaN(Date.parse(text)) ? null : new Date(text).toISOString())

// valuesOf returns what the form shows of a job that the new one is like: all but its time and what it comes after.
export const valuesOf = (job) => ({ ...values('', job), when: 'now', run_at: '', delay: '', after: '',
  run_if: 'all_succeeded' })

// bodyOf returns the job that the form means.
export const bodyOf = (v) => made((refuse) => {
  const after = linesOf(v.after)
  const due = v.when === 'at' ? instantOf(v.run_at) : undefined
  if (due === null) refuse('/run_at', 'A time is missing.')
  return whole({ ...body('', v, '', refuse),
    run_at: due || undefined,
    delay: v.when === 'in' ? v.delay.trim() || refuse('/delay', 'A length of time is missing.', 'such as 90s or 2h')
      : undefined,
    ...(after.length ? { after, run_if: v.run_if } : {}) })
})

// accepted says in words what became of the request: of one whose key another job holds, that job is the answer.
const accepted = ({ status, said }) => (status === 200 ? `This job has the unique key ${said.unique?.key}.`
  : `The job ${said.task} …${short(said.job_id)} is accepted.`)

export function NewJob({ like, task }) {
  const first = useFirst(async (signal) => {
    const [tasks, limits, job] = await Promise.all([some('/tasks', {}, { most: 1000, signal }),
      some('/limits', {}, { most: 1000, signal }), like && get(`/jobs/${seg(like)}`, {}, signal)])
    return { tasks: tasks.items, limits: limits.items, job }
  }, [like])
  const job = first.data?.job
  return html`<${Loaded} of=${first}>${first.data && html`
    ${job && html`<p>Like <a href=${`#/jobs/${job.job_id}`}>${job.task} …${short(job.job_id)}</a>, but for its time${
      job.after ? ' and the jobs before it' : ''}.</p>`}
    ${job?.payload_size > 0 && job.payload === undefined && html`<p class="note">Its payload of ${
      job.payload_size.toLocaleString()} bytes is too large to be shown: give the new one a payload.</p>`}
    <${Form} ...${first.data} task=${task} />`}<//>`
}

function Form({ job, task, tasks, limits }) {
  const f = useEntry(useMemo(() => ({ ...valuesOf(job), ...(task ? { task } : {}) }), []), at)
  const { v } = f
  const known = tasks.find((t) => t.name === v.task)
  const key = useRef({}) // the Idempotency-Key of what was sent last, which an answer that was lost does not double
  useCheck(known && !unread(v.payload)
    ? { job: whole({ task: v.task, payload: v.payload.trim() ? read(v.payload) : undefined,
      allow_literals: linesOf(v.allow_literals) }) } : null, f.setChecked, '')
  const act = async () => {
    const sent = bodyOf(v)
    const text = JSON.stringify(sent)
    if (key.current.text !== text) key.current = { text, key: crypto.randomUUID() }
    const answer = await send('POST', '/jobs', { body: sent, key: key.current.key })
    say(accepted(answer))
    location.hash = `#/jobs/${answer.said.job_id}`
  }
  const when = [['now', 'now'], ['at', 'at a time'], ['in', 'after a delay']]
  return html`<${Entry} of=${f} act=${act} verb="Make the job" back="#/jobs">
    <div class="card"><h2>What it does</h2><${What} of=${f} p="" tasks=${tasks} /></div>
    <div class="card"><h2>When</h2>
      <div class="fields">${f.field('when', 'Due', { options: when })}
        ${v.when === 'at' && f.field('run_at', 'At', { type: 'datetime-local', step: 1 })}
        ${v.when === 'in' && f.field('delay', 'In', { hint: 'Such as 90s, 5m or 1h30m.' })}</div>
      ${f.field('after', 'After the jobs', { area: true, rows: 2, hint: 'Identifiers, one a line, at most 10.' })}
      ${v.after.trim() && f.field('run_if', 'If', { options: rules })}
      <${More} label="Tags, deadlines, unique key" open=${f.bad(labelNames('')) || Boolean(v.tags || v.unique)}>
        <${Labels} of=${f} p="" /><//>
      <${More} label="Priority, pool, retries, limits" open=${f.bad(settingNames(''))}>
        <${Settings} of=${f} p="" unset="as the task says" known=${known} limits=${limits} /><//></div>
  <//>`
}

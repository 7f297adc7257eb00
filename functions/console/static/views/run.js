// One run: its picture, live, each node with what may be done to it, and who did what.
import { html } from '../core/html.js'
import { get, post, remove, seg, some } from '../core/api.js'
import { useLive, useOnce } from '../core/live.js'
import { Counts, Facts, Json, Loaded, Reason, Status, Time, between, length, plural, runTitle } from '../core/form.js'
import { useTitle } from '../core/shown.js'
import { Act, ask, why } from '../core/ask.js'
import { Graph } from '../core/graph.js'
import { LongTable, Table } from '../core/table.js'

const over = new Set(['SUCCEEDED', 'FAILED', 'CANCELLED'])
const failed = new Set(['DEAD', 'EXPIRED', 'CANCELLED'])
const waits = new Set(['BLOCKED', 'SCHEDULED', 'QUEUED'])
const fell = new Set(['CANCELLED', 'SKIPPED', 'BLOCKED'])

// belowOf returns all nodes that come after name, however far.
export function belowOf(nodes, name) {
  const found = new Set()
  const visit = (parent) => Object.entries(nodes).forEach(([n, v]) => {
    if (!v.depends_on.includes(parent) || found.has(n)) return
    found.add(n)
    visit(n)
  })
  visit(name)
  return [...found]
}

// touched counts a node and what was cancelled or skipped below it, or waits for it: what a verb brings on its way.
const touched = (nodes, name) => plural(
  1 + belowOf(nodes, name).filter((n) => fell.has(nodes[n].status)).length, 'node')

export function Run({ id, node, can }) {
  const path = `/runs/${seg(id)}`
  const live = useLive(async (signal) => {
    const [run, events] = await Promise.all([get(path, {}, signal), some(`${path}/events`, {}, { signal })])
    return { run, events: events.items }
  }, [id])
  const { run, events } = live.data || {}
  useTitle(runTitle(run))
  // act asks for a reason, and does a verb of the run or a node; read makes the rest of the body of other fields.
  const act = (verb, { read = (more) => more, ...question }) => () => ask({ verb: question.title, fields: [why],
    done_text: `${question.title}: done.`, ...question,
    act: async ({ reason, ...more }) => {
      await post(`${path}/${verb}`, { ...(reason ? { reason } : {}), ...read(more) })
      await live.again()
    } })
  return html`<${Loaded} of=${live}>${run && html`
    <div class="row"><${Status} of=${run.status} /> <${Reason} of=${run.status_reason} /><span class="push"></span>
      ${can('write') && html`<${Verbs} run=${run} path=${path} act=${act} />`}</div>
    <${Facts} of=${factsOf(run)} />
    <${Graph} nodes=${run.nodes} label="Nodes of the run" chosen=${node} link=${(n) => `#/runs/${id}/${n}`} />
    <div class="halves">
      <section aria-labelledby="node-title">${Object.hasOwn(run.nodes, node)
        ? html`<${Node} key=${node} path=${path} id=${id} name=${node} nodes=${run.nodes} can=${can} act=${act} />`
        : html`<h2 id="node-title">Node</h2><p class="mute">Choose a node in the picture.</p>`}</section>
      <section><h2>Who did what</h2>
        <${Table} caption="Who did what" rows=${events} id=${(e) => e.at + e.action + e.node} columns=${[
          { name: 'When', cell: (e) => html`<${Time} at=${e.at} />` },
          { name: 'What', cell: (e) => html`${e.action} ${e.node}
            ${e.reason && html`<br /><span class="mute">“${e.reason}”</span>`}` },
          { name: 'Who', cell: (e) => e.by }]} />
        <${Json} label="Parameters" value=${run.params} /></section>
    </div>`}<//>`
}

const factsOf = (run) => [
  ['Run', html`<code>${run.run_id}</code>`],
  ['DAG', run.dag && html`<a href=${`#/dags/${run.dag}`}>${run.dag}</a> version ${run.dag_version}`],
  ['Nodes', html`<${Counts} of=${run.counts} />`],
  ['Started', run.started_at && html`<${Time} at=${run.started_at} />`],
  ['Asked to stop', run.cancel_requested_at && html`<${Time} at=${run.cancel_requested_at} />`],
  ['Ended', run.finished_at && html`<${Time} at=${run.finished_at} />`],
  ['Took', between(run.started_at, run.finished_at)],
  ['Longest chain', run.critical_path?.join(' → ')],
  ['Backfill', run.backfill && html`<code>${run.backfill}</code>`],
  ['Schedule', run.schedule && html`<a href=${`#/schedules/${run.schedule}`}>${run.schedule}</a>`],
]

function Verbs({ run, path, act }) {
  const { blocked, waiting, running, failed: dead, cancelled, total } = run.counts
  const open = plural(blocked + waiting + running, 'node')
  const stopping = run.cancel_requested_at && !over.has(run.status) // only nodes that run always go on
  const forget = () => ask({ title: 'Delete the run', verb: 'Delete the run', danger: true,
    text: 'It is forgotten, with its jobs.', touches: `1 run and ${plural(total, 'node')}`,
    done_text: 'The run is deleted.', act: async () => { await remove(path); location.hash = '#/dags' } })
  return html`
    ${!stopping && ['BUILDING', 'RUNNING', 'HELD'].includes(run.status) && html`<${Act} label="Pause"
      on=${act('pause', { title: 'Pause the run', text: 'Nothing new starts; what runs goes on to its end.',
        touches: plural(blocked + waiting, 'node') })} />`}
    ${run.status === 'PAUSED' && html`<${Act} primary label="Resume"
      on=${act('resume', { title: 'Resume the run', touches: open })} />`}
    ${!stopping && dead + cancelled > 0 && html`<${Act} primary label="Retry what failed" on=${act('retry', {
      title: 'Retry what failed', text: 'What succeeded does not run again.',
      touches: `at least ${plural(dead + cancelled, 'node')}` })} />`}
    ${over.has(run.status) ? html`<${Act} danger label="Delete" on=${forget} />`
      : html`<${Act} danger label="Cancel" on=${act('cancel', { title: 'Cancel the run', danger: true, touches: open,
        no: 'Keep it', text: stopping ? 'The run is being stopped. Its nodes that run always are stopped, too.'
          : 'What has not started is cancelled; what runs is asked to stop.' })} />`}`
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text)

// Payload is what an item's job was given, which is made of the item.
function Payload({ of: i }) {
  const job = useOnce(i.job_id && `/jobs/${seg(i.job_id)}`)
  if (!i.job_id) return html`<span class="mute">not yet made</span>`
  if (!job) return html`<span class="mute">…</span>`
  if (job.payload === undefined) return html`<span class="mute">${job.payload_size ? 'large' : 'none'}</span>`
  const text = JSON.stringify(job.payload)
  return html`<code title=${cut(text, 1000)}>${cut(text, 200)}</code>`
}

// ItemError is why an item's newest attempt failed, or why the item did not run.
function ItemError({ of: i }) {
  const reason = i.status === 'SUCCEEDED' ? null : i.error || i.status_reason
  if (!reason) return null
  const text = [reason.code, reason.message].filter(Boolean).join(': ')
  return html`<div class="mute small" title=${text}>${text}</div>`
}

const few = 40 // items that are shown in full; of more, each has a line for its payload and one for its error

const itemColumns = [
  { name: 'Item', class: 'index',
    cell: (i) => (i.job_id ? html`<a href=${`#/jobs/${i.job_id}`}>${i.item}</a>` : i.item) },
  { name: 'Payload, and error', class: 'reason', cell: (i) => html`<${Payload} of=${i} /><${ItemError} of=${i} />` },
  { name: 'Status', class: 'st', cell: (i) => html`<${Status} of=${i.status} />` },
  { name: 'Took', class: 'wide took', cell: (i) => length(i.duration_ms) },
]

function Node({ path, id, name, nodes, can, act }) {
  const n = nodes[name]
  const at = `nodes/${seg(name)}`
  const live = useLive(async (signal) => {
    const found = await get(`${path}/${at}`, { limit: 200 }, signal)
    for (let cursor = found.items?.next_cursor; cursor;) { // at most a thousand items
      const { items } = await get(`${path}/${at}`, { limit: 200, cursor }, signal)
      found.items.items.push(...items.items)
      cursor = items.next_cursor
    }
    return found
  }, [path, name, n.status, n.generation, n.attempt])
  const detail = live.data
  const may = can('write') && (failed.has(n.status) || waits.has(n.status))
  const touches = touched(nodes, name)
  return html`<div class="row"><h2 id="node-title">${name}</h2>
      <${Status} of=${n.waiting_for === 'pause' ? 'paused' : n.status}>${n.forced && ' by an operator'}<//></div>
    ${n.why && html`<p>${n.why}</p>`}
    <div class="row">
      ${may && failed.has(n.status) && html`<${Act} primary label="Retry node" on=${act(`${at}/retry`, {
        title: `Retry ${name}`, text: 'It runs again, and what fell with it.', touches })} />`}
      ${may && html`<${Act} label="Skip node" on=${act(`${at}/skip`, { title: `Skip ${name}`, danger: true, touches,
        text: 'It will not run.', fields: [{ name: 'children', label: 'Nodes after it', value: 'run',
          options: [['run', 'run, with its result null'], ['skip', 'are skipped, too']] }, why] })} />
        <${Act} label="Complete node" on=${act(`${at}/complete`, { title: `Complete ${name}`, danger: true, touches,
          text: 'It counts as succeeded, with this result; what comes after it goes on.',
          fields: [{ name: 'result', label: 'Result, in JSON (may be empty)', area: true }, why],
          read: ({ result }) => (result.trim() ? { result: JSON.parse(result) } : {}) })} />`}
      ${n.job_id && html`<a class="button" href=${`#/jobs/${n.job_id}`}>Its job</a>`}
      <a class="button" href=${`#/runs/${id}`}>Close</a></div>
    <${Facts} of=${[['Attempt', n.attempt], ['Generation', n.generation > 1 && n.generation],
      ['Started', n.started_at && html`<${Time} at=${n.started_at} />`],
      ['Took', n.finished_at && length(n.duration_ms)],
      ['Reason', n.status_reason && html`<${Reason} of=${n.status_reason} />`],
      ['Parents', n.parents > 0 && `${n.parents_done} of ${n.parents} done`], ['After', n.depends_on.join(', ')]]} />
    <${Loaded} of=${live}>${detail && html`
      <${Json} label="Payload" value=${detail.payload} /><${Json} label="Result" value=${detail.result} />
      ${detail.items && html`<h3>${plural(detail.items.items.length, 'item')}</h3>
        <${detail.items.items.length > few ? LongTable : Table} caption="Items" rows=${detail.items.items}
          id=${(i) => i.item} columns=${itemColumns} />`}`}<//>`
}

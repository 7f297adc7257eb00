// DAGs, and the runs of all or one of them.
import { html } from '../core/html.js'
import { get, post, remove, seg, some } from '../core/api.js'
import { useLive, usePages } from '../core/live.js'
import { Counts, Empty, Facts, Id, Json, Loaded, Status, Time, between, plural } from '../core/form.js'
import { Act, Field, ask } from '../core/ask.js'
import { Graph } from '../core/graph.js'
import { Pages, Table } from '../core/table.js'
import { Bulk } from './bulk.js'
import { asQuery, given, refilter, tagFilter } from './jobs.js'

const statuses = ['BUILDING', 'RUNNING', 'PAUSED', 'HELD', 'SUCCEEDED', 'FAILED', 'CANCELLED']

const runColumns = [
  { name: 'Run', class: 'ids', cell: (r) => html`<${Id} of=${r.run_id} to="runs" />` },
  { name: 'Status', class: 'st', cell: (r) => html`<${Status} of=${r.status} />` },
  { name: 'DAG', cell: (r) => (r.dag ? html`<a href=${`#/dags/${r.dag}`}>${r.dag}</a>`
    : html`<span class="mute">inline</span>`) },
  { name: 'Started', class: 'when', cell: (r) => html`<${Time} at=${r.started_at || r.due_at} />` },
  { name: 'Took', class: 'wide', cell: (r) => between(r.started_at, r.finished_at) },
  { name: 'Nodes', class: 'wide roomy', cell: (r) => html`<${Counts} of=${r.counts} />` },
]

function Runs({ filter, none, can }) {
  const pages = usePages('/runs', asQuery(filter), 'run_id')
  return html`<${Loaded} of=${pages}>${pages.rows.length === 0 && !pages.cursor ? html`<${Empty} title=${none} />`
    : html`<div class="row"><p class="mute small">${plural(pages.rows.length, 'run')}${
        pages.cursor && ' so far'}, newest first</p><span class="push"></span>
        <${Bulk} kind="runs" filter=${filter} can=${can} /></div>
      <${Pages} caption="Runs, newest first" of=${pages} columns=${runColumns} id=${(r) => r.run_id}
      more="Older runs" />`}<//>`
}

export function Dags({ query, can }) {
  const live = useLive((signal) => some('/dags', {}, { most: 1000, signal }), [], 5_000)
  const dags = live.data?.items || []
  const field = (name, label, options) => html`<${Field} name=${name} label=${label} value=${query[name] || ''}
    onChange=${refilter('dags', query, name)} options=${options && [['', 'Any'], ...options]} />`
  const filter = given({ status: query.status, dag: query.dag, tags: tagFilter(query.tag || '') })
  return html`<h2>Definitions</h2><${Loaded} of=${live}>${dags.length === 0
    ? html`<${Empty} title="No DAGs yet.">Put one: <code>PUT /v1/dags/NAME</code><//>`
    : html`<${Table} caption="DAGs" rows=${dags} id=${(g) => g.name} columns=${[
      { name: 'Name', cell: (g) => html`<a href=${`#/dags/${g.name}`}>${g.name}</a>` },
      { name: 'Version', class: 'number', cell: (g) => g.version },
      { name: 'Changed', cell: (g) => html`<${Time} at=${g.updated_at} />` }]} />`}<//>
    <h2>Runs</h2>
    <div class="filters" role="search" aria-label="Filter runs">
      ${field('status', 'Status', statuses.map((s) => [s, s.toLowerCase()]))}
      ${live.data && field('dag', 'DAG', dags.map((g) => [g.name, g.name]))}
      ${field('tag', 'Tag, NAME=VALUE')}
    </div>
    <${Runs} filter=${filter} can=${can} none=${Object.keys(filter).length ? 'No run matches.' : 'No runs yet.'} />`
}

export function Dag({ name, node, can }) {
  const path = `/dags/${seg(name)}`
  const live = useLive((signal) => get(path, {}, signal), [name], 5_000)
  const dag = live.data
  const start = () => ask({ title: `Start a run of ${name}`, verb: 'Start', done_text: 'The run is accepted.',
    touches: plural(Object.keys(dag.nodes).length, 'node'), fields: [{ name: 'params', label: 'Parameters, in JSON',
      area: true, value: JSON.stringify(dag.params || {}, null, 2) }],
    act: async (v) => {
      location.hash = `#/runs/${(await post(`${path}/runs`, { params: JSON.parse(v.params || '{}') })).run_id}`
    } })
  const forget = () => ask({ title: `Delete ${name}`, verb: 'Delete the DAG', danger: true,
    text: 'What runs of it goes on; schedules that use it keep it from being deleted.',
    done_text: 'The DAG is deleted.', touches: `1 DAG with ${plural(Object.keys(dag.nodes).length, 'node')}`,
    act: async () => { await remove(path); location.hash = '#/dags' } })
  return html`<${Loaded} of=${live}>${dag && html`
    <div class="row"><span>Version ${dag.version}</span><span class="push"></span>
      ${can('write') && html`<${Act} primary label="Start a run" on=${start} />
        <${Act} danger label="Delete" on=${forget} />`}</div>
    <${Facts} of=${[['Nodes', Object.keys(dag.nodes).length], ['When one fails', dag.on_failure.replace('_', ' ')],
      ['At once', dag.max_concurrency], ['Expires after', dag.expire_after],
      ['Changed', html`<${Time} at=${dag.updated_at} />`]]} />
    <${Graph} nodes=${dag.nodes} label=${`Nodes of ${name}`} chosen=${node} link=${(n) => `#/dags/${name}/${n}`} />
    ${Object.hasOwn(dag.nodes, node) && html`<${Json} label=${`Node ${node}`} value=${dag.nodes[node]} />`}
    <h2>Runs</h2><${Runs} filter=${{ dag: name }} can=${can} none="It has not run yet." />
    <${Json} label="Definition" value=${{ params: dag.params, nodes: dag.nodes }} />`}<//>`
}

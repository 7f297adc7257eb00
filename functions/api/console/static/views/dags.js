// DAGs, and the runs of all or one of them.
import { html } from '../core/html.js'
import { get, post, remove, seg, some } from '../core/api.js'
import { useLive } from '../core/live.js'
import { Empty, Facts, Id, Json, Loaded, Status, Time, length, plural } from '../core/form.js'
import { Act, Field, ask } from '../core/ask.js'
import { Graph } from '../core/graph.js'
import { Table } from '../core/table.js'
import { Counts } from './run.js'

const statuses = ['BUILDING', 'RUNNING', 'PAUSED', 'HELD', 'SUCCEEDED', 'FAILED', 'CANCELLED']

const runColumns = [
  { name: 'Run', class: 'ids', cell: (r) => html`<${Id} of=${r.run_id} to="runs" />` },
  { name: 'Status', class: 'st', cell: (r) => html`<${Status} of=${r.status} />` },
  { name: 'DAG', cell: (r) => (r.dag ? html`<a href=${`#/dags/${r.dag}`}>${r.dag}</a>` : html`<span class="mute">inline</span>`) },
  { name: 'Started', cell: (r) => html`<${Time} at=${r.started_at || r.due_at} />` },
  { name: 'Took', class: 'wide', cell: (r) => (r.finished_at && r.started_at ? length(new Date(r.finished_at) - new Date(r.started_at)) : '') },
  { name: 'Nodes', class: 'wide', cell: (r) => html`<${Counts} of=${r.counts} />` },
]

const startRun = (name, params) => ask({ title: `Start a run of ${name}`, verb: 'Start', done_text: 'The run is accepted.',
  fields: [{ name: 'params', label: 'Parameters, in JSON', area: true, value: JSON.stringify(params || {}, null, 2) }],
  act: async (v) => { location.hash = `#/runs/${(await post(`/dags/${seg(name)}/runs`, { params: JSON.parse(v.params || '{}') })).run_id}` } })

function Runs({ of, none }) {
  return of.items.length === 0 ? html`<${Empty} title=${none} />`
    : html`<${Table} caption="Runs, newest first" columns=${runColumns} rows=${of.items} id=${(r) => r.run_id} />
      ${of.more && html`<p class="mute small">The newest ${of.items.length} are shown; older ones by <code>GET /v1/runs</code>.</p>`}`
}

export function Dags({ query }) {
  const filter = { status: query.status, dag: query.dag }
  const live = useLive(async (signal) => {
    const [dags, runs] = await Promise.all([some('/dags', {}, { signal }), some('/runs', filter, { signal })])
    return { dags, runs }
  }, [JSON.stringify(filter)])
  const change = (name) => (e) => {
    const next = new URLSearchParams(Object.entries({ ...query, [name]: e.target.value }).filter(([, v]) => v))
    location.replace(`#/dags${next.size ? `?${next}` : ''}`)
  }
  const d = live.data
  return html`<${Loaded} of=${live}>${d && html`
    <h2>Definitions</h2>${d.dags.items.length === 0 ? html`<${Empty} title="No DAGs yet.">Put one: <code>PUT /v1/dags/NAME</code><//>`
    : html`<${Table} caption="DAGs" rows=${d.dags.items} id=${(g) => g.name} columns=${[
      { name: 'Name', cell: (g) => html`<a href=${`#/dags/${g.name}`}>${g.name}</a>` }, { name: 'Version', class: 'number', cell: (g) => g.version },
      { name: 'Changed', cell: (g) => html`<${Time} at=${g.updated_at} />` }]} />`}
    <h2>Runs</h2>
    <div class="filters" role="search" aria-label="Filter runs">
      <${Field} name="status" label="Status" value=${query.status || ''} onInput=${change('status')} options=${[['', 'Any'], ...statuses.map((s) => [s, s.toLowerCase()])]} />
      <${Field} name="dag" label="DAG" value=${query.dag || ''} onInput=${change('dag')} options=${[['', 'Any'], ...d.dags.items.map((g) => [g.name, g.name])]} />
    </div>
    <${Runs} of=${d.runs} none=${query.status || query.dag ? 'No run matches.' : 'No runs yet.'} />`}<//>`
}

export function Dag({ name, node, can }) {
  const live = useLive(async (signal) => {
    const [dag, runs] = await Promise.all([get(`/dags/${seg(name)}`, {}, signal), some('/runs', { dag: name }, { most: 50, signal })])
    return { dag, runs }
  }, [name])
  const { dag, runs } = live.data || {}
  return html`<${Loaded} of=${live}>${dag && html`
    <div class="row"><span>Version ${dag.version}</span><span class="push"></span>
      ${can('write') && html`<${Act} primary label="Start a run" on=${() => startRun(name, dag.params)} />
        <${Act} danger label="Delete" on=${() => ask({ title: `Delete ${name}`, verb: 'Delete the DAG', danger: true, text: 'Its runs go on; schedules that use it keep it from being deleted.',
          touches: `1 DAG with ${plural(Object.keys(dag.nodes).length, 'node')}`, done_text: 'The DAG is deleted.', act: async () => { await remove(`/dags/${seg(name)}`); location.hash = '#/dags' } })} />`}</div>
    <${Facts} of=${[['Nodes', Object.keys(dag.nodes).length], ['When one fails', dag.on_failure], ['At once', dag.max_concurrency], ['Expires after', dag.expire_after],
      ['Changed', html`<${Time} at=${dag.updated_at} />`]]} />
    <${Graph} nodes=${dag.nodes} label=${`Nodes of ${name}`} chosen=${node} link=${(n) => `#/dags/${name}/${n}`} />
    ${node && dag.nodes[node] && html`<${Json} label=${`Node ${node}`} value=${dag.nodes[node]} />`}
    <h2>Runs</h2><${Runs} of=${runs} none="It has not run yet." />
    <${Json} label="Definition" value=${{ params: dag.params, nodes: dag.nodes }} />`}<//>`
}

// Limits of work, and how much of each key is used.
import { html } from '../core/html.js'
import { get, seg, some } from '../core/api.js'
import { useLive } from '../core/live.js'
import { Empty, Facts, Loaded, Time, plural } from '../core/form.js'
import { Table } from '../core/table.js'

const policies = { wait: 'waits', skip: 'is skipped', cancel_oldest: 'waits while the longest-running one is stopped' }

const Rate = ({ of: l }) => (l.rate ? `${l.rate.count.toLocaleString()} in ${l.rate.per}` : '–')

export function Limits() {
  const live = useLive((signal) => some('/limits', {}, { most: 1000, signal }), [], 10_000)
  return html`<${Loaded} of=${live}>${live.data && html`
    <p>${plural(live.data.items.length, 'limit')}</p>
    ${live.data.items.length === 0
      ? html`<${Empty} title="There are no limits of work.">
        One bounds how many jobs of a key run, or start: <code>PUT /v1/limits/NAME</code><//>`
      : html`<${Table} caption="Limits" rows=${live.data.items} id=${(l) => l.name} columns=${[
        { name: 'Limit', cell: (l) => html`<a href=${`#/limits/${l.name}`}>${l.name}</a>` },
        { name: 'Running', class: 'number', cell: (l) => l.max_running?.toLocaleString() || '–' },
        { name: 'Starts', class: 'number', cell: (l) => html`<${Rate} of=${l} />` },
        { name: 'When full', class: 'wide', cell: (l) => `a job ${policies[l.when_full]}` },
      ]} />`}`}<//>`
}

export function Limit({ name }) {
  const path = `/limits/${seg(name)}`
  const live = useLive(async (signal) => {
    const [limit, keys] = await Promise.all([get(path, {}, signal), some(`${path}/keys`, {}, { signal })])
    return { limit, keys: keys.items, more: keys.more }
  }, [name], 4_000)
  const { limit, keys, more } = live.data || {}
  return html`<${Loaded} of=${live}>${limit && html`
    <${Facts} of=${[
      ['At a time', limit.max_running && plural(limit.max_running, 'job')],
      ['Starts', limit.rate && html`<${Rate} of=${limit} />`],
      ['When full', `a job ${policies[limit.when_full]}`],
      ['Changed', html`<${Time} at=${limit.updated_at} />`],
    ]} />
    <h2>Keys</h2>
    ${keys.length === 0
      ? html`<${Empty} title="No job has used it in the last two days." />`
      : html`<${Table} caption="Keys" rows=${keys} id=${(k) => k.key ?? ''} columns=${[
        { name: 'Key', cell: (k) => k.key ?? html`<span class="mute">without a key</span>` },
        { name: 'Running', class: 'number', cell: (k) => k.running.toLocaleString() },
        { name: 'Waiting', class: 'number', cell: (k) => k.waiting.toLocaleString() },
        { name: 'Starts', class: 'wide number', cell: (k) => k.starts_in_window?.toLocaleString() ?? '–' },
        { name: 'Next start', class: 'wide', cell: (k) => html`<${Time} at=${k.next_start_at} />` },
      ]} />`}
    ${more && html`<p class="mute small">The ${keys.length} that are used most are shown.</p>`}`}<//>`
}

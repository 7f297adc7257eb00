// Who changed what, newest first, by filters that the address keeps.
import { html, useEffect } from '../core/html.js'
import { usePages } from '../core/live.js'
import { Empty, Loaded, Refused, Time, plural } from '../core/form.js'
import { Field } from '../core/ask.js'
import { Table } from '../core/table.js'
import { refilter } from './jobs.js'

const views = { job: 'jobs', run: 'runs', schedule: 'schedules', dag: 'dags', task: 'tasks', limit: 'limits',
  operation: 'operations', webhook: 'webhooks' }

// Resource is what was changed, with a link to where the console shows it.
export function Resource({ of }) {
  const [kind, ...name] = of.split('/')
  if (kind === 'pause') return html`<a href="#/pauses">${of}</a>`
  return views[kind] && name.length ? html`<a href=${`#/${views[kind]}/${name.join('/')}`}>${of}</a>` : of
}

// written writes one value of a change; what is long is cut, and whole on hover.
const written = (v) => (v === undefined ? 'nothing' : JSON.stringify(v))

function Change({ of: c }) {
  const text = c.omitted ? 'not kept' : `${written(c.from)} → ${written(c.to)}`
  return html`<div class="reason" title=${text}><code>${c.pointer || '/'}</code>${' '}<span class="mute small">${
    text.length > 160 ? `${text.slice(0, 159)}…` : text}</span></div>`
}

const full = 200 // entries of a page
const shown = 5 // changes of one entry
const every = 10_000 // milliseconds between two readings: each is of many days

const Changes = ({ of: e }) => html`${e.changes.slice(0, shown).map((c) => html`<${Change} of=${c} />`)}
  ${e.changes.length > shown && html`<details><summary>${
    plural(e.changes.length - shown, 'more change')}</summary>${
    e.changes.slice(shown).map((c) => html`<${Change} of=${c} />`)}</details>`}
  ${e.more_changes > 0 && html`<p class="mute small">And ${plural(e.more_changes, 'change')} that are not kept.</p>`}`

const keyOf = (e) => [e.at, e.request_id, e.action, e.resource].join(' ')

const Who = ({ of: e }) => html`<span class="name" title=${`by ${e.actor.via}, request ${e.request_id}`}>${
  e.actor.sub || 'an unknown caller'}</span>`

const columns = [
  { name: 'When', cell: (e) => html`<${Time} at=${e.at} /><div class="thin small"><${Who} of=${e} /></div>` },
  { name: 'Who', class: 'wide', cell: (e) => html`<${Who} of=${e} />` },
  { name: 'What', cell: (e) => html`${e.action} <span class="name"><${Resource} of=${e.resource} /></span>
    ${e.reason && html`<div class="reason mute">“${e.reason}”</div>`}
    <div class="thin small"><${Changes} of=${e} /></div>` },
  { name: 'Changes', class: 'wide', cell: (e) => html`<${Changes} of=${e} />` },
]

export function Audit({ query }) {
  const after = query.after && new Date(query.after)
  const pages = usePages('/audit', { actor: query.actor, action: query.action, resource: query.resource,
    after: after && !Number.isNaN(after.getTime()) ? after.toISOString() : undefined }, keyOf, every)
  const field = (name, label, more) => html`<${Field} name=${name} label=${label} value=${query[name] || ''}
    onChange=${refilter('audit', query, name)} ...${more} />`
  const filtered = Object.values(query).some(Boolean)
  const { rows, cursor, more, error, stuck } = pages
  useEffect(() => { // a page that is not full has read its number of days: what is older is read as well, once
    if (cursor && rows.length < full && !error && !stuck) more()
  }, [cursor, rows.length])
  return html`<div class="filters" role="search" aria-label="Filter changes">
      ${field('actor', 'Who')}${field('action', 'Action, such as schedule.put')}
      ${field('resource', 'Resource, such as schedule/morning')}
      ${field('after', 'After', { type: 'datetime-local' })}
      ${filtered && html`<a class="button" href="#/audit">Clear filters</a>`}</div>
    <${Loaded} of=${pages}>${pages.rows.length === 0
      ? html`<${Empty} title=${filtered ? 'No change matches.' : 'Nothing has been changed yet.'}>
        ${pages.cursor ? 'Older ones are being read.' : 'Making jobs and runs is no change.'}<//>`
      : html`<p class="mute small">${plural(pages.rows.length, 'change')}${pages.cursor && ' so far'}, newest first</p>
        <${Table} caption="Changes" columns=${columns} rows=${pages.rows} id=${keyOf} />`}
      <${Refused} error=${pages.stuck} />
      ${pages.cursor && html`<p class="center"><button type="button" onClick=${pages.more}>Older changes</button></p>`}
    <//>`
}

// What jobs used, and what that costs about: by task, schedule, dag or tag, of some days.
import { html } from '../core/html.js'
import { seg, some } from '../core/api.js'
import { now } from '../core/clock.js'
import { useLive } from '../core/live.js'
import { Empty, Facts, Loaded, length, plural } from '../core/form.js'
import { Field } from '../core/ask.js'
import { Table } from '../core/table.js'
import { refilter } from './jobs.js'

const most = 1000 // keys that are read
const aDay = 86_400_000
const ranges = [['1', 'Today'], ['7', '7 days'], ['30', '30 days'], ['month', 'This month']]
const kinds = ['task', 'schedule', 'dag']

// startOf is the first instant of a range, whose days are those of UTC.
export function startOf(range, at) {
  const today = Math.floor(at / aDay) * aDay
  const day = new Date(today)
  const start = range === 'month' ? Date.UTC(day.getUTCFullYear(), day.getUTCMonth()) : today - (range - 1) * aDay
  return new Date(start).toISOString()
}

// sumOf adds up what all keys used.
export const sumOf = (items) => items.reduce((sum, u) => ({ dollars: sum.dollars + u.dollars, jobs: sum.jobs + u.jobs,
  running: sum.running + u.running_s }), { dollars: 0, jobs: 0, running: 0 })

// moneyOf writes dollars with as many digits as the whole sum needs.
export const moneyOf = (n, whole) => `$${n.toLocaleString('en-US', { minimumFractionDigits: whole < 1 ? 6 : 2,
  maximumFractionDigits: whole < 1 ? 6 : 2 })}`

// bytesOf writes bytes in their largest unit.
export function bytesOf(n) {
  const at = n < 1 ? 0 : Math.min(4, Math.floor(Math.log2(n) / 10))
  return `${(n / 1024 ** at).toFixed(at && n / 1024 ** at < 10 ? 1 : 0)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][at]}`
}

// Key is what used it, with where the console shows it.
function Key({ by, of: key }) {
  const to = by.startsWith('tag.') ? `jobs?tag=${seg(`${by.slice(4)}=${key}`)}` : `${by}s/${seg(key)}`
  return key === 'other' ? key : html`<a href=${`#/${to}`}>${key}</a>`
}

export function Usage({ query }) {
  const by = query.by || 'task'
  const range = ranges.some(([r]) => r === query.range) ? query.range : '30'
  const live = useLive((signal) => some('/usage', { by, from: startOf(range, now()) }, { most, pages: 8, signal }),
    [by, range], 10_000)
  const field = (name, label, value, more) => html`<${Field} name=${name} label=${label} value=${value}
    onChange=${refilter('usage', query, name)} ...${more} />`
  const items = live.data?.items || []
  const sum = sumOf(items)
  return html`<div class="filters" role="search" aria-label="Choose what is shown">
      ${field('by', 'By task, schedule, dag or tag.NAME', by, { list: kinds })}
      ${field('range', 'Days, of UTC', range, { options: ranges })}</div>
    <${Loaded} of=${live}>${live.data && (items.length === 0
      ? html`<${Empty} title="Nothing was used.">${by === 'task' ? 'Jobs count once they have ended.'
        : `Jobs without a ${by.replace('tag.', 'tag ')} are not in this list.`}<//>`
      : html`<${Facts} of=${[['Dollars, estimated', moneyOf(sum.dollars, sum.dollars)],
          ['Jobs', sum.jobs.toLocaleString()], ['Running', length(1000 * sum.running)]]} />
        <${Table} caption="Use, what costs most first" rows=${items} id=${(u) => u.key} columns=${[
          { name: by.startsWith('tag.') ? by.slice(4) : by[0].toUpperCase() + by.slice(1),
            cell: (u) => html`<span class="name"><${Key} by=${by} of=${u.key} /></span>` },
          { name: 'Dollars', class: 'number', cell: (u) => moneyOf(u.dollars, sum.dollars) },
          { name: 'Share', class: 'number', cell: (u) => `${Math.round((100 * u.dollars) / (sum.dollars || 1))} %` },
          { name: 'Jobs', class: 'number', cell: (u) => u.jobs.toLocaleString() },
          { name: 'Attempts', class: 'wide number', cell: (u) => u.attempts.toLocaleString() },
          { name: 'Running', class: 'wide number', cell: (u) => length(1000 * u.running_s) },
          { name: 'Stored', class: 'wide number', cell: (u) => bytesOf(u.bytes) },
          { name: 'Requests', class: 'wide number', cell: (u) => u.requests.toLocaleString() }]} />
        ${live.data.more && html`<p class="note">Only the first ${plural(items.length, by)} are read and added up.</p>`}
        <p class="mute small">An estimate at list prices of us-east-1, without what a deployment costs while nothing
          happens; no basis of an invoice.</p>`)}<//>`
}

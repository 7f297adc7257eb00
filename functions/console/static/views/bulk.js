// What may be done to all jobs or runs of a filtered list: it is counted, asked about, and begun as an operation.
import { html, useRef, useState } from '../core/html.js'
import { call, post } from '../core/api.js'
import { plural } from '../core/form.js'
import { Act, ask, say, why } from '../core/ask.js'
import { priorities } from '../core/work.js'
import { whole } from '../core/entry.js'

const waiting = ['BLOCKED', 'SCHEDULED', 'QUEUED']
const ended = ['SUCCEEDED', 'DEAD', 'CANCELLED', 'SKIPPED', 'EXPIRED']

const rate = { name: 'rate', label: 'At most so many a second', type: 'number', min: 1, max: 100_000, value: '',
  hint: 'Empty: as fast as it can.' }
const spread = { name: 'spread', label: 'Deal their due times out over', hint: 'Such as 10m. Excludes a rate.' }
const first = (value) => ({ name: 'first', label: 'How many first, the oldest', type: 'number', min: 0, max: 100, value,
  hint: '0: all at once, without waiting for the first ones.' })
const share = { name: 'share', label: 'Of those have to succeed, in %', type: 'number', min: 1, max: 100, value: 90,
  required: true }
const priority = { name: 'priority', label: 'Priority', value: 'high', options: priorities.map((p) => [p, p]) }
const delay = { name: 'delay', label: 'Due in', hint: 'Such as 90s, 5m or 2d, from when the operation comes to a job.' }
const runAt = { name: 'run_at', label: 'Or due at', type: 'datetime-local' }

export const redriveFields = [first(10), share, rate, why]

const canaryText = 'The others wait until the first ones have ended, for 10 minutes at most; if too few of those ' +
  'succeed, the others stay as they are.'

// actions of each kind of list, by their names in the API: on are the statuses that it changes, fields what is asked.
const actions = {
  jobs: {
    cancel: { label: 'Cancel', on: [...waiting, 'RUNNING'], danger: true, fields: [rate, why],
      text: 'What runs is asked to stop; what waits does not start.' },
    pause: { label: 'Pause', on: waiting, fields: [rate, why],
      text: 'They do not start until they are resumed. Their start_within and expire_after go on.' },
    resume: { label: 'Resume', on: waiting, fields: [rate, why],
      text: 'Each starts when it is due, unless something else holds it.' },
    run_now: { label: 'Run now', on: ['SCHEDULED', 'QUEUED'], fields: [first(0), share, rate, spread, why],
      text: `Each is due at once, and does not wait for its time. ${canaryText}` },
    reschedule: { label: 'Reschedule', on: waiting, fields: [delay, runAt, spread, why],
      text: 'Each is due at the new time.' },
    reprioritize: { label: 'Give a priority', on: waiting, fields: [priority, rate, why],
      text: 'Jobs of a higher priority start before others that are due.' },
    redrive: { label: 'Redrive', on: ['DEAD'], scope: 'admin', danger: true, fields: redriveFields,
      text: `Each comes back as a new job of the same work. ${canaryText}` },
    purge: { label: 'Purge', on: ['DEAD'], scope: 'admin', danger: true, fields: [rate, why],
      text: 'The dead letters are deleted for good, with their payloads.' },
    delete: { label: 'Delete', on: ended, scope: 'admin', danger: true, fields: [rate, why],
      text: 'They are forgotten, with their payloads, results and attempts.' },
  },
  runs: {
    retry_runs: { label: 'Retry', on: ['FAILED', 'HELD', 'CANCELLED'], fields: [first(0), share, rate, why],
      text: `Their failed nodes, and what was cancelled by them, run once more. ${canaryText}` },
    cancel_runs: { label: 'Cancel', on: ['BUILDING', 'RUNNING', 'PAUSED', 'HELD'], danger: true, fields: [rate, why],
      text: 'Nodes that run are asked to stop; no further node starts.' },
  },
}

// offered are the actions on a list of one status, or of any, that the scopes allow.
export const offered = (kind, status, can) => Object.entries(actions[kind])
  .filter(([, a]) => can(a.scope || 'write') && (!status || a.on.includes(status)))

// bodyOf is the request for an action on what a filter matches, with what the dialog asked for.
export function bodyOf(action, filter, v) {
  const { priority: to, delay: by, run_at: at } = v
  return whole({ action, ...(Object.keys(filter).length ? { filter } : { all: true }),
    set: whole({ priority: to, delay: by, run_at: at && new Date(at).toISOString() }), reason: v.reason,
    canary: Number(v.first) > 0
      ? { count: Number(v.first), min_succeeded: Number(v.share) / 100, within: '10m' } : undefined,
    rate: Number(v.rate) > 0 ? { count: Number(v.rate), per: '1s' } : undefined, spread: v.spread })
}

// countOf asks how many an action would change: {n, sure}, where n is the least if it is not sure.
export async function countOf({ reason, ...body }) {
  const set = body.action === 'reschedule' ? { delay: '1m' } : body.set // any time: it does not change the count
  const said = await post('/operations', whole({ ...body, set, spread: undefined, dry_run: true }))
  return { sure: said.matched !== undefined, n: (said.matched ?? said.matched_at_least) - said.skipped }
}

// touched says in words what a count is of.
export const touched = ({ n, sure }, one) => `${sure ? '' : 'at least '}${plural(n, one)}`

// useBegin returns what begins an operation by its body. After an answer that was lost, the same body is sent with the
// same key, which begins nothing twice.
export function useBegin() {
  const sent = useRef({})
  return async (body) => {
    const text = JSON.stringify(body)
    if (sent.current.text !== text) sent.current = { text, key: crypto.randomUUID() }
    const made = await call('POST', '/operations', { body, key: sent.current.key })
    sent.current = {}
    say('The operation has begun.')
    return made
  }
}

// wordsOf says which jobs or runs a filter matches.
export function wordsOf(kind, { tags, ...filter }) {
  const words = Object.entries(filter).map(([name, value]) => `${name.replace('_', ' ')} ${value}`)
  for (const [name, value] of Object.entries(tags || {})) words.push(`tag ${name}=${value}`)
  return words.length ? `All ${kind} of ${words.join(', ')}.` : `All ${kind}: no filter is set.`
}

// Bulk offers the actions on all that a list's filter matches, of which the list may show the first page only.
export function Bulk({ kind, filter, can }) {
  const [open, setOpen] = useState(false)
  const begin = useBegin()
  const one = kind.slice(0, -1)
  const press = (action, a) => async () => {
    const counted = (v) => countOf(bodyOf(action, filter, v))
    const known = Object.fromEntries(a.fields.map((f) => [f.name, f.value]))
    const found = await counted(known)
    const depends = a.fields.includes(priority) // on a value, how many are changed
    if (found.n === 0 && found.sure && !depends) return say(`${a.label}: no ${one} that matches allows it.`)
    return ask({ title: `${a.label} all that match`, verb: `${a.label}: begin`, danger: a.danger, no: 'Leave them',
      text: `${wordsOf(kind, filter)} ${a.text}`, fields: a.fields,
      touches: depends ? async (v) => touched(await counted(v), one) : touched(found, one),
      act: async (v) => {
        location.hash = `#/operations/${(await begin(bodyOf(action, filter, v))).operation_id}`
      } })
  }
  const all = offered(kind, filter.status, can)
  return all.length > 0 && html`<button type="button" aria-expanded=${open} onClick=${() => setOpen(!open)}>
      Act on all that match</button>
    ${open && html`<section class="card" aria-label="Actions on all that match">
      <p class="small mute">${wordsOf(kind, filter)} Also those that are not shown here. Each is counted first, and can
        be stopped in <a href="#/operations">Operations</a>.</p>
      <div class="row">${all.map(([action, a]) => html`<${Act} key=${action} label=${`${a.label}…`} danger=${a.danger}
        on=${press(action, a)} />`)}</div></section>`}`
}

// What is paused, by whom and why; and pausing.
import { html } from '../core/html.js'
import { put, remove, seg, some } from '../core/api.js'
import { useLive } from '../core/live.js'
import { Empty, Loaded, Time, counted, plural } from '../core/form.js'
import { Act, ask, why } from '../core/ask.js'
import { Table } from '../core/table.js'

export const missed = { name: 'missed', label: 'Times of schedules that it misses', value: 'last',
  options: [['last', 'run the last one afterwards'], ['all', 'run all afterwards'], ['drop', 'drop them']] }
export const until = { name: 'until', label: 'Until (may be empty)', type: 'datetime-local' }

// afterwards says in words what becomes of the times that a pause misses.
const afterwards = (value) => missed.options.find(([v]) => v === value)?.[1] || 'as each schedule says'

// pauseBody leaves out what was not said.
export const pauseBody = (v) => ({ missed: v.missed, ...(v.reason ? { reason: v.reason } : {}),
  ...(v.until ? { until: new Date(v.until).toISOString() } : {}) })

function What({ of: p }) {
  if (p.schedule) return html`schedule <a href=${`#/schedules/${p.schedule}`}>${p.schedule}</a>`
  if (p.scope === 'all') return html`<strong>everything</strong>`
  return html`task <strong>${p.scope.replace('task:', '')}</strong>`
}

const Until = ({ of: p }) => (p.until ? html`<${Time} at=${p.until} />` : html`<span class="mute">it is lifted</span>`)

export function Pauses({ can }) {
  const live = useLive(async (signal) => {
    const [pauses, schedules] = await Promise.all([
      some('/pauses', {}, { most: 1000, signal }), some('/schedules', {}, { most: 1000, signal })])
    return [...pauses.items, ...schedules.items.filter((s) => s.paused)
      .map((s) => ({ ...s.paused, scope: `schedule:${s.name}`, schedule: s.name }))]
  }, [], 4_000)
  const touches = async ({ scope }) => {
    const task = scope.startsWith('task:') ? scope.slice(5) : ''
    const [waiting, schedules] = await Promise.all([
      some('/jobs', { status: 'SCHEDULED', task }), some('/schedules', {}, { most: 1000 })])
    const of = schedules.items.filter((s) => !task || s.job?.task === task)
    return `${counted(waiting, 'waiting job')} and ${counted({ ...schedules, items: of }, 'schedule')}`
  }
  const pause = async () => {
    const tasks = await some('/tasks', {}, { most: 1000 })
    await ask({ title: 'Pause', verb: 'Pause', danger: true, done_text: 'It is paused.',
      text: 'Nothing of it starts until the pause is lifted; what runs goes on.',
      touches, fields: [{ name: 'scope', label: 'What', value: 'all', options: [['all', 'everything'],
        ...tasks.items.map((t) => [`task:${t.name}`, `the task ${t.name}`])] }, why, until, missed],
      act: async ({ scope, ...v }) => { await put(`/pauses/${seg(scope)}`, pauseBody(v)); await live.again() } })
  }
  const lift = (p) => ask({ title: `Lift the pause of ${p.scope}`, verb: 'Lift it', done_text: 'The pause is lifted.',
    text: 'What it held starts within seconds.', touches: '1 pause and all that it holds',
    act: async () => { await remove(`/pauses/${seg(p.scope)}`); await live.again() } })
  return html`<${Loaded} of=${live}>${live.data && html`
    <div class="row"><span>${plural(live.data.length, 'pause')}</span><span class="push"></span>
      ${can('admin') && html`<${Act} danger label="Pause…" on=${pause} />`}</div>
    ${live.data.length === 0
      ? html`<${Empty} title="Nothing is paused.">
        A pause of everything, a task or a schedule shows here, with who and why.<//>`
      : html`<${Table} caption="Pauses" rows=${live.data} id=${(p) => p.scope} columns=${[
        { name: 'What', cell: (p) => html`<${What} of=${p} />` },
        { name: 'Reason', cell: (p) => html`${p.reason || html`<span class="mute">no reason given</span>`}
          <span class="thin mute small">${p.by || 'an unknown caller'}, <${Time} at=${p.since} />, until ${
            html`<${Until} of=${p} />`}</span>` },
        { name: 'Who', class: 'wide', cell: (p) => p.by || '–' },
        { name: 'Action', cell: (p) => (p.schedule ? html`<a class="button" href=${`#/schedules/${p.schedule}`}
            aria-label=${`Open the schedule ${p.schedule}`}>Open</a>`
          : can('admin') && html`<${Act} label="Lift" on=${() => lift(p)}
            aria-label=${`Lift the pause of ${p.scope}`} />`) },
        { name: 'Since', class: 'wide', cell: (p) => html`<${Time} at=${p.since} />` },
        { name: 'Until', class: 'wide', cell: (p) => html`<${Until} of=${p} />` },
        { name: 'Missed times', class: 'wide', cell: (p) => afterwards(p.missed) }]} />`}`}<//>`
}

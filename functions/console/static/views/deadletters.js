// Dead letters, grouped by cause, and their redrive: ten first, and the others if those succeed.
import { html, useState } from '../core/html.js'
import { seg, some } from '../core/api.js'
import { useLive, usePages, useRow } from '../core/live.js'
import { Empty, Id, Loaded, Refused, Time, plural } from '../core/form.js'
import { Act, ask, say, why } from '../core/ask.js'
import { LongTable, Pages } from '../core/table.js'
import { groupsOf } from '../core/cause.js'
import { Bars } from '../core/chart.js'
import { bodyOf, countOf, redriveFields, touched, useBegin } from './bulk.js'
import { Owner } from './jobs.js'
import { Brief, over } from './operations.js'

const most = 1000 // letters that are read where there is no index, and ids that an operation may name
const shown = 50 // causes

// causes returns {groups, more} of the dead letters, most first: those of the index, or without one, of the letters
// that are read, which then know each of their letters.
async function causes(signal) {
  try {
    const { items, more } = await some('/dead-letters/groups', {}, { most: shown, pages: 1, signal })
    return { groups: items.map((g) => ({ ...g, key: g.group, filter: { group: g.group } })), more }
  } catch (error) {
    if (error.code !== 'not_indexed') throw error
  }
  const { items, more } = await some('/dead-letters', {}, { most, pages: 8, signal })
  return { more, groups: groupsOf(items.filter((d) => !d.redriven_by)).map((g) => ({ ...g, message: g.example,
    count: g.letters.length, first_at: g.letters.at(-1).dead_at, last_at: g.letters[0].dead_at,
    example_job_id: g.letters[0].job_id, filter: { job_ids: g.letters.map((d) => d.job_id) } })) }
}

const ofLetters = (o) => o.action === 'redrive' || o.action === 'purge'

export function DeadLetters({ can }) {
  const live = useLive(causes, [], 4_000)
  const [mine, setMine] = useState([]) // operations that were begun here
  const work = useLive(async (signal) => {
    const { items } = await some('/operations', {}, { most: 50, pages: 1, signal })
    return items.filter((o) => ofLetters(o) && (mine.includes(o.operation_id) || !over(o)))
  }, [mine.join()], 1_000)
  const again = () => Promise.all([work.again(), live.again()])
  const begun = (o) => { setMine((all) => [...all, o.operation_id]); return live.again() }
  const { groups = [], more } = live.data || {}
  const ended = (work.data || []).filter(over).length
  const all = groups.reduce((n, g) => n + g.count, 0)
  return html`<${Refused} error=${work.error} />
    ${work.data?.map((o) => html`<${Brief} key=${o.operation_id} of=${o} can=${can} done=${again} />`)}
    <${Loaded} of=${live}>${live.data && (groups.length === 0
      ? html`<${Empty} title="No dead letters.">What failed for good, and was not purged, shows here.<//>`
      : html`<p class="mute">${plural(all, 'job')} failed for good, of ${plural(groups.length, 'cause')}${
        more && ', and there are more'}.</p>
        ${groups.map((g) => html`<${Group} key=${g.key} g=${g} can=${can} begun=${begun}
          ended=${ended} />`)}`)}<//>`
}

function Group({ g, can, begun, ended }) {
  const [open, setOpen] = useState(false)
  const [tried, setTried] = useState(null)
  const start = useBegin()
  const begin = async (action, v) => { await begun(await start(bodyOf(action, g.filter, v))) }
  const count = (action) => countOf(bodyOf(action, g.filter, {}))
  const act = (action, question) => async () => {
    setTried(null)
    const found = await count(action) // of what waits still: some may have been redriven
    if (found.n === 0 && found.sure) say('Nothing is left of this: all of them were redriven.')
    else await ask({ danger: true, touches: touched(found, 'dead job'), ...question })
  }
  const redrive = act('redrive', { title: 'Redrive what died of this, ten first', verb: 'Begin the redrive',
    text: 'Each comes back as a new job of the same work. The others wait until the first ones have ended, for 10 ' +
      'minutes at most; if too few of those succeed, the others stay as they are.',
    fields: redriveFields, act: (v) => begin('redrive', v) })
  const purge = act('purge', { title: 'Purge what died of this', verb: 'Begin the purge', fields: [why],
    text: 'The jobs are deleted for good, with their payloads.',
    act: (v) => begin('purge', v) })
  const dry = async () => setTried(await count('redrive').catch((error) => ({ error })))
  return html`<section class="card" aria-label=${`${g.task}: ${g.code}`}>
    <div class="row"><h2>${g.task}: <code>${g.code}</code></h2>
      <span class="status bad">${plural(g.count, 'letter')}</span>
      ${g.group && html`<${Redriven} key=${ended} group=${g.group} />`}<span class="push"></span>
      ${can('admin') && html`<${Act} label="Dry run" on=${dry} />
        <${Act} primary label="Redrive, ten first…" on=${redrive} />
        <${Act} danger label="Purge…" on=${purge} />`}</div>
    ${g.message && html`<p class="reason">${g.message}</p>`}
    <div class="row small mute"><span>Since <${Time} at=${g.first_at} />, last <${Time} at=${g.last_at} />,
      for example <${Id} of=${g.example_job_id} to="jobs" /></span>
      ${g.hourly && html`<span>The last 24 hours:</span> <${Hourly} of=${g.hourly} />`}</div>
    ${tried && (tried.error ? html`<${Refused} error=${tried.error} />`
      : html`<p class="touches" role="status">${plural(tried.n, 'job')}${tried.sure ? '' : ' or more'} would be
        redriven.</p>`)}
    <button type="button" aria-expanded=${open} onClick=${() => setOpen(!open)}>
      ${open ? 'Hide the jobs' : 'Show the jobs'}</button>
    ${open && html`<div class="inside">${g.letters ? html`<${LongTable} rows=${g.letters} ...${table(g)} />`
      : html`<${Letters} g=${g} />`}</div>`}
  </section>`
}

// Redriven says that the newest letters of a cause were redriven: a cause that is mended stays in the list.
function Redriven({ group }) {
  const { data } = useRow(`/dead-letters?limit=5&group=${seg(group)}`)
  return data?.items.length > 0 && data.items.every((d) => d.redriven_by)
    && html`<span class="status good"><span aria-hidden="true">✓</span>the newest were redriven</span>`
}

const Hourly = ({ of }) => html`<${Bars} tone="bad spark" bins=${of} label=${`Died in each of the last 24 hours: ${
  of.join(', ')}`} says=${(i) => `${of.length - i} h ago: ${of[i].toLocaleString()}`} />`

const table = (g) => ({ caption: `Jobs of ${g.task} that died of ${g.code}`, id: (d) => d.job_id, columns: [
  { name: 'Job', class: 'ids', cell: (d) => html`<${Id} of=${d.job_id} to="jobs" />` },
  { name: 'Died', cell: (d) => html`<${Time} at=${d.dead_at} />` },
  { name: 'Redriven by', cell: (d) => (d.redriven_by ? html`<${Id} of=${d.redriven_by} to="jobs" />`
    : html`<span class="mute">–</span>`) },
  { name: 'Attempts', class: 'wide number', cell: (d) => d.attempt },
  { name: 'Made by', class: 'wide', cell: (d) => html`<${Owner} of=${d} />` }] })

function Letters({ g }) {
  const pages = usePages('/dead-letters', g.filter)
  return html`<${Loaded} of=${pages}><${Pages} of=${pages} more="Older ones" ...${table(g)} /><//>`
}

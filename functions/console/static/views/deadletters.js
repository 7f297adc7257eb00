// Dead letters, grouped by cause, and their redrive.
import { html, useState } from '../core/html.js'
import { post, some } from '../core/api.js'
import { useLive } from '../core/live.js'
import { Empty, Id, Loaded, Refused, Time, plural } from '../core/form.js'
import { Act, ask, say } from '../core/ask.js'
import { LongTable } from '../core/table.js'
import { groupsOf } from '../core/cause.js'
import { Owner } from './jobs.js'

const most = 1000 // letters that are read, and what the API takes of ids in one request

export function DeadLetters({ can }) {
  const live = useLive((signal) => some('/dead-letters', {}, { most, pages: 8, signal }), [], 4_000)
  const letters = (live.data?.items || []).filter((d) => !d.redriven_by)
  const groups = groupsOf(letters)
  const [done, setDone] = useState(null) // the newest redrive or purge, whose group may be gone
  return html`<${Loaded} of=${live}>${done && html`<div class="row"><${Outcome} ...${done} /><span class="push"></span>
      <button type="button" onClick=${() => setDone(null)}>Close</button></div>`}${live.data && (groups.length === 0
    ? html`<${Empty} title="No dead letters.">
      What failed for good, and was neither brought back nor purged, shows here.<//>`
    : html`<p class="mute">${plural(letters.length, 'job')}${live.data.more && ' (the newest; there are more)'
      } failed for good, of ${plural(groups.length, 'cause')}.</p>
      ${groups.map((g) => html`<${Group} key=${g.key} g=${g} can=${can} live=${live} setDone=${setDone} />`)}`)}<//>`
}

function Group({ g, can, live, setDone }) {
  const [open, setOpen] = useState(false)
  const [tried, setTried] = useState(null)
  const ids = g.letters.map((d) => d.job_id)
  const send = (verb, dry) => post(`/dead-letters/${verb}`, { job_ids: ids, ...(dry ? { dry_run: true } : {}) })
  const dryRun = async () => setTried(await send('redrive', true).catch((error) => ({ error })))
  const act = (verb, title, text) => async () => {
    setTried(null)
    setDone(null)
    const { matched } = await send(verb, true) // how many of them are dead still
    await ask({ title, text, danger: true, touches: plural(matched, 'dead job'),
      verb: `${title.split(' ')[0]} ${plural(matched, 'job')}`,
      act: async () => {
        const of = await send(verb)
        setDone({ of, verb, what: `${g.task}: ${g.code}` })
        say(summaryOf(of, verb))
        await live.again()
      } })
  }
  return html`<section class="card" aria-label=${`${g.task}: ${g.code}`}>
    <div class="row"><h2>${g.task}: <code>${g.code}</code></h2>
      <span class="status bad">${plural(g.letters.length, 'letter')}</span><span class="push"></span>
      ${can('admin') && html`<${Act} label="Dry run" on=${dryRun} /><${Act} primary label="Redrive" on=${act('redrive',
        'Redrive what died of this', 'Each comes back as a new job of the same work, due now.')} />
        <${Act} danger label="Purge" on=${act('purge',
          'Purge what died of this', 'The jobs are deleted for good, with their payloads.')} />`}</div>
    ${g.example && html`<p class="reason">${g.example}</p>`}
    <p class="small mute">Newest <${Time} at=${g.letters[0].dead_at} /> · oldest ${
      html`<${Time} at=${g.letters.at(-1).dead_at} />`}</p>
    ${tried && html`<${Outcome} of=${tried} verb="dry" />`}
    <button type="button" aria-expanded=${open} onClick=${() => setOpen(!open)}>
      ${open ? 'Hide the jobs' : 'Show the jobs'}</button>
    ${open && html`<div class="inside"><${LongTable} caption=${`Jobs of ${g.task} that died of ${g.code}`}
      rows=${g.letters} id=${(d) => d.job_id} columns=${[
        { name: 'Job', class: 'ids', cell: (d) => html`<${Id} of=${d.job_id} to="jobs" />` },
        { name: 'Died', cell: (d) => html`<${Time} at=${d.dead_at} />` },
        { name: 'Attempts', class: 'wide number', cell: (d) => d.attempt },
        { name: 'Made by', class: 'wide', cell: (d) => html`<${Owner} of=${d} />` }]} /></div>`}
  </section>`
}

// summaryOf says in words what a redrive or a purge did, or a dry run would do.
export function summaryOf({ items, matched }, verb) {
  const refused = items.filter((i) => i.problem)
  const done = items.length - refused.length
  return [verb === 'dry' ? `${plural(matched, 'job')} would be touched.`
    : verb === 'purge' ? `${plural(done, 'job')} deleted.` : `${plural(done, 'new job')} made.`,
  refused.length > 0 && `${plural(refused.length, 'job')} refused: ${refused[0].problem.detail}`]
    .filter(Boolean).join(' ')
}

// Outcome shows summaryOf, with what was acted on and the first of the new jobs.
function Outcome({ of, verb, what }) {
  if (of.error) return html`<${Refused} error=${of.error} />`
  const made = verb === 'redrive' ? of.items.filter((i) => i.new_job_id) : []
  return html`<div class="touches" role="status"><p>${what && html`<code>${what}</code> – `}${summaryOf(of, verb)}</p>
    ${made.slice(0, 5).map((i) => html`<a class="id" href=${`#/jobs/${i.new_job_id}`}>${i.new_job_id}</a> `)}
    ${made.length > 5 && `and ${(made.length - 5).toLocaleString()} more`}</div>`
}

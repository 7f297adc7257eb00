// Dead letters, grouped by cause, and their redrive.
import { html, useState } from '../core/html.js'
import { post, some } from '../core/api.js'
import { useLive } from '../core/live.js'
import { Empty, Id, Loaded, Time, plural } from '../core/form.js'
import { Act, ask } from '../core/ask.js'
import { LongTable } from '../core/table.js'

const atOnce = 1000 // the API takes no more in one request

// groupsOf returns {key, task, code, example, letters} of what died of the same, most first. Ids and numbers
// in a message make no cause of their own, but the statuses of HTTP do.
export function groupsOf(letters) {
  const groups = new Map()
  for (const d of letters) {
    const reason = d.status_reason || d.attempts?.at(-1)?.error || { code: 'unknown' }
    const cause = (reason.message || '').replace(/[0-9A-HJKMNP-TV-Z]{26}|[0-9a-f-]{32,36}|(?<!\d)(?![45]\d\d(?!\d))\d+/g, '#')
    const key = [d.task, reason.code, cause].join(' ')
    if (!groups.has(key)) groups.set(key, { key, task: d.task, code: reason.code, example: reason.message, letters: [] })
    groups.get(key).letters.push(d)
  }
  return [...groups.values()].sort((a, b) => b.letters.length - a.letters.length)
}

export function DeadLetters({ can }) {
  const live = useLive((signal) => some('/dead-letters', {}, { most: 1000, pages: 8, signal }), [])
  const [open, setOpen] = useState('')
  const [tried, setTried] = useState({})
  const letters = (live.data?.items || []).filter((d) => !d.redriven_by)
  const groups = groupsOf(letters)
  const redo = (verb, ids, dry) => post(`/dead-letters/${verb}`, { job_ids: ids.slice(0, atOnce), ...(dry ? { dry_run: true } : {}) })
  const dryRun = async (g) => {
    const said = await redo('redrive', g.letters.map((d) => d.job_id), true).catch((error) => ({ error }))
    setTried((t) => ({ ...t, [g.key]: said }))
  }
  const act = (verb, g, title, text) => async () => {
    const ids = g.letters.map((d) => d.job_id)
    const { matched } = await redo(verb, ids, true)
    await ask({ title, text, danger: true, touches: plural(matched, 'dead job'), verb: `${title.split(' ')[0]} ${plural(matched, 'job')}`,
      act: async () => {
        const said = await redo(verb, ids)
        setTried((t) => ({ ...t, [g.key]: said }))
        await live.again()
      } })
  }
  return html`<${Loaded} of=${live}>${live.data && (groups.length === 0
    ? html`<${Empty} title="No dead letters.">Every job that failed for good was brought back or purged, or none did.<//>`
    : html`<p class="mute">${plural(letters.length, 'job')}${live.data.more ? ' (the newest; there are more)' : ''} failed for good, of ${plural(groups.length, 'cause')}.</p>
      ${groups.map((g) => html`<section class="card" key=${g.key} aria-label=${`${g.task}: ${g.code}`}>
        <div class="row"><h2>${g.task}: <code>${g.code}</code></h2><span class="status bad">${plural(g.letters.length, 'letter')}</span><span class="push"></span>
          ${can('admin') && html`<${Act} label="Dry run" on=${() => dryRun(g)} />
            <${Act} primary label="Redrive" on=${act('redrive', g, 'Redrive what died of this', 'Each comes back as a new job of the same work, due now.')} />
            <${Act} danger label="Purge" on=${act('purge', g, 'Purge what died of this', 'The jobs are deleted for good, with their payloads.')} />`}</div>
        ${g.example && html`<p class="reason">${g.example}</p>`}
        <p class="small mute">Newest <${Time} at=${g.letters[0].dead_at} /> · oldest <${Time} at=${g.letters.at(-1).dead_at} /></p>
        ${tried[g.key] && html`<${Outcome} of=${tried[g.key]} />`}
        <button type="button" aria-expanded=${open === g.key} onClick=${() => setOpen(open === g.key ? '' : g.key)}>${open === g.key ? 'Hide' : 'Show'} the jobs</button>
        ${open === g.key && html`<div class="inside"><${LongTable} caption=${`Jobs of ${g.task} that died of ${g.code}`} rows=${g.letters} id=${(d) => d.job_id} columns=${[
          { name: 'Job', class: 'ids', cell: (d) => html`<${Id} of=${d.job_id} to="jobs" />` },
          { name: 'Died', cell: (d) => html`<${Time} at=${d.dead_at} />` },
          { name: 'Attempts', class: 'wide number', cell: (d) => d.attempt },
          { name: 'Of', class: 'wide', cell: (d) => (d.run_id ? html`<a href=${`#/runs/${d.run_id}/${d.node}`}>${d.node}</a>` : d.schedule || html`<span class="mute">–</span>`) }]} /></div>`}
      </section>`)}`)}<//>`
}

// Outcome says what a redrive did or would do.
function Outcome({ of }) {
  if (of.error) return html`<p class="refused" role="alert">${of.error.message} <code>${of.error.code}</code></p>`
  const made = of.items.filter((i) => i.new_job_id)
  const refused = of.items.filter((i) => i.problem)
  return html`<div class="touches" role="status"><p>${made.length ? `${plural(made.length, 'new job')} made.` : `${plural(of.matched, 'job')} would be touched.`}
      ${refused.length > 0 && ` ${plural(refused.length, 'job')} refused: ${refused[0].problem.detail}`}</p>
    ${made.slice(0, 5).map((i) => html`<a class="id" href=${`#/jobs/${i.new_job_id}`}>${i.new_job_id}</a> `)}</div>`
}

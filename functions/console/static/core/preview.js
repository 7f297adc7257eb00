// The next times of calendars.
import { html, useEffect, useState } from './html.js'
import { call } from './api.js'
import { Refused, Time, localTime, plural } from './form.js'

// usePreview asks for the next times of {calendar} or {calendars} once their typing rests, and drops answers that come
// too late.
export function usePreview(plan, count) {
  const [state, set] = useState({ items: null, error: null })
  useEffect(() => {
    set((s) => (plan ? s : { items: null, error: null }))
    if (!plan) return undefined
    const stop = new AbortController()
    const t = setTimeout(async () => {
      try {
        const said = await call('POST', '/schedules/preview', { body: { ...plan, count }, signal: stop.signal })
        set({ ...said, error: null })
      } catch (error) {
        if (error.name !== 'AbortError') set({ items: null, error })
      }
    }, 200)
    return () => { clearTimeout(t); stop.abort() }
  }, [JSON.stringify(plan)])
  return state
}

// elsewhere says whether the calendar's clock shows another time than the user's.
const elsewhere = (o) => {
  const at = new Date(o.nominal_at)
  return at.getTime() - at.getTimezoneOffset() * 60_000 !== Date.parse(`${o.local.slice(0, 19)}Z`)
}

// Preview lists the next times of a calendar in the zone `in`, and what is skipped.
export function Preview({ of, in: there = 'UTC' }) {
  return html`<div class="preview"><${Refused} error=${of.error} />
    ${of.items && html`
      <p class="hidden" role="status">${of.items.length > 0 && `Next: ${localTime(of.items[0].due_at)}`}</p>
      ${of.items.length === 0 && html`<p>It never fires.</p>`}
      <ol class="times">${of.items.map((o) => html`<li key=${o.nominal_at}><${Time} at=${o.due_at} />
        ${' '}${o.flags.map((f) => html`<code>${f}</code> `)}
        ${o.load > 1 && html`<span class="mute small">${plural(o.load, 'start')} in this minute</span> `}
        ${elsewhere(o) && html`<span class="mute small">${o.local.slice(11, 16)} in ${there}</span>`}</li>`)}</ol>`}
    ${of.notes?.map((n) => html`<p class="small">${n}</p>`)}
    ${of.skipped?.slice(0, 5).map((s) => html`<p class="small mute">
      ${s.local.slice(0, 16).replace('T', ' ')} is skipped: ${s.why}</p>`)}</div>`
}

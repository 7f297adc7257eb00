// What the header says of the page as a whole: how fresh it is, and whether the session has ended.
import { useEffect, useState } from './html.js'

const watchers = new Set()

// shown: at is when something was answered last (0: nothing yet), failing that the API is down or out of reach, off
// that refreshing is paused, ended that the API no longer takes the token.
export const shown = { at: 0, failing: false, off: false, ended: false }

export function tell(change) {
  if (Object.entries(change).every(([k, v]) => shown[k] === v)) return
  Object.assign(shown, change)
  for (const w of watchers) w()
}

export function useShown() {
  const [, again] = useState(0)
  useEffect(() => {
    const w = () => again((n) => n + 1)
    watchers.add(w)
    return () => watchers.delete(w)
  }, [])
  return shown
}

let retitle = () => {}

// titled gives the function that changes the title of what is shown, once a view knows more than its address says.
export const titled = (change) => { retitle = change }

// useTitle sets the title of the view that calls it, from when text is there until the view goes.
export function useTitle(text) {
  useEffect(() => {
    if (text) retitle(text)
    return () => retitle('')
  }, [text])
}

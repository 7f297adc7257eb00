// Keeps what is shown fresh: loads again and again, more slowly while nothing changes or the API fails,
// and not at all in a hidden tab.
import { useEffect, useMemo, useRef, useState } from './html.js'
import { get } from './api.js'
import { now } from './clock.js'
import { shown, tell } from './shown.js'

const latest = 30_000 // milliseconds between two rounds while nothing changes

const loops = new Set()
const wake = () => { for (const l of loops) l() }
document.addEventListener('visibilitychange', () => { if (!document.hidden && !shown.off) wake() })

// setLive turns refreshing on and off for the whole page.
export function setLive(on) { tell({ off: !on }); if (on) wake() }

// useLive calls load(signal) now, whenever deps change, and then for ever, at most once in `soonest`
// milliseconds. It returns what was loaded last (null before; of other deps until theirs is there), the error if
// the last time failed, and again(), which loads at once.
export function useLive(load, deps, soonest = 2_000) {
  const [state, set] = useState({ data: null, error: null })
  const latestLoad = useRef(load)
  latestLoad.current = load
  const again = useRef(() => Promise.resolve())
  useEffect(() => {
    let timer
    let stopped = false
    let wait = soonest
    let before
    let stop = new AbortController()
    const round = async () => {
      clearTimeout(timer)
      stop.abort()
      const mine = (stop = new AbortController())
      try {
        const data = await latestLoad.current(mine.signal)
        if (stopped || mine !== stop) return
        const text = JSON.stringify(data)
        wait = text === before ? Math.max(soonest, Math.min(latest, wait * 1.5)) : soonest
        if (text !== before) set({ data, error: null })
        else set((s) => (s.error ? { data: s.data, error: null } : s))
        before = text
        tell({ at: Date.now(), failing: false })
      } catch (error) {
        if (stopped || mine !== stop || error.name === 'AbortError') return
        wait = Math.max(Math.min(2 * latest, wait * 2), 1000 * (error.retryAfter || 0))
        set((s) => ({ data: s.data, error }))
        if (error.status === 0 || error.status >= 500) tell({ failing: true })
        else if (error.status) tell({ at: Date.now(), failing: false }) // a refusal is an answer
      }
      if (!shown.off) timer = setTimeout(() => { if (!document.hidden && !shown.off) round() }, wait)
    }
    const resume = () => { wait = soonest; return round() }
    again.current = resume
    loops.add(resume)
    round()
    return () => {
      stopped = true
      clearTimeout(timer)
      stop.abort()
      loops.delete(resume)
      if (!loops.size) tell({ at: 0, failing: false }) // nobody asks any more
    }
  }, deps)
  return { ...state, again: () => again.current() }
}

// usePages reads a list by its cursors: the newest page is live, and more() adds the next one. What the newest
// page pushes down stays, and is not doubled: id is the field in which rows differ, or makes what they differ in. It
// returns rows, cursor (null at the end), and what useLive does.
export function usePages(path, filter, id = 'job_id', soonest = undefined) {
  const key = `${path} ${JSON.stringify(filter)}`
  const asked = useRef(key)
  asked.current = key
  const none = { key, items: [], cursor: undefined, error: null }
  const [read, setRead] = useState(none)
  const older = read.key === key ? read : none
  const loading = useRef(null)
  const live = useLive(async (signal) => ({ ...await get(path, { ...filter, limit: 200 }, signal), key }), [key],
    soonest)
  const rows = useMemo(() => {
    const all = new Map()
    for (const row of [...(live.data?.items || []), ...older.items]) {
      const name = typeof id === 'function' ? id(row) : row[id]
      if (!all.has(name)) all.set(name, row)
    }
    return [...all.values()]
  }, [live.data, read, key])
  const first = live.data?.key === key ? live.data.next_cursor : null // that of another filter leads nowhere
  const cursor = (older.cursor === undefined ? first : older.cursor) || null
  const more = async () => {
    if (loading.current === key || !cursor) return
    loading.current = key
    const add = (change) => asked.current === key && setRead((r) => ({ ...(r.key === key ? r : none), ...change(r) }))
    try {
      const page = await get(path, { ...filter, limit: 200, cursor })
      add((r) => ({ error: null, cursor: page.next_cursor, items: [
        ...(r.key === key && r.cursor !== undefined ? r.items : live.data.items), ...page.items] }))
    } catch (error) {
      add(() => ({ error }))
    } finally {
      if (loading.current === key) loading.current = null
    }
  }
  return { ...live, rows, cursor, more, stuck: older.error }
}

const atOnce = 4 // requests that rows have under way
const queue = []
let under = 0

// turn runs load() once fewer than atOnce others run, in the order of the calls: a table of many rows neither holds
// up the rest of the page nor uses up the tenant's rate limit.
async function turn(load, signal) {
  if (under >= atOnce) await new Promise((free) => { queue.push(free) }) // which leaves its turn to this one
  else under++
  try {
    signal.throwIfAborted()
    return await load()
  } finally {
    const next = queue.shift()
    if (next) next()
    else under--
  }
}

// useRow is useLive for what one row of a table shows beyond its list: it loads path once the row is drawn.
export const useRow = (path, soonest = 15_000) => useLive((signal) => turn(() => get(path, {}, signal), signal),
  [path], soonest)

const kept = new Map() // what useOnce has read, by path

// useOnce returns what get(path) says of what never changes, for a row of a table; null until it is there.
export function useOnce(path) {
  const [said, set] = useState(kept.get(path) || null)
  useEffect(() => {
    if (!path || kept.has(path)) return undefined
    const stop = new AbortController()
    turn(() => get(path, {}, stop.signal), stop.signal).then((found) => {
      if (kept.size >= 2_000) kept.clear()
      kept.set(path, found)
      set(found)
    }, () => {}) // the row is shown without it
    return () => stop.abort()
  }, [path])
  return said
}

const clocks = new Map() // those who want to be drawn again, by their period

// useClock draws its caller again each `every` milliseconds while the tab is seen, all callers together, and
// returns the server's time.
export function useClock(every = 1000) {
  const [, again] = useState(0)
  useEffect(() => {
    if (!clocks.has(every)) {
      clocks.set(every, new Set())
      setInterval(() => { if (!document.hidden) for (const tick of clocks.get(every)) tick() }, every)
    }
    const tick = () => again((n) => n + 1)
    clocks.get(every).add(tick)
    return () => clocks.get(every).delete(tick)
  }, [every])
  return now()
}

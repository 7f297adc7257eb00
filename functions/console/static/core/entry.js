// Forms of whole resources: what is typed, and at each field what is refused of it.
import { html, useEffect, useRef, useState } from './html.js'
import { Refusal, get, post, read, seg } from './api.js'
import { Field } from './ask.js'
import { Refused, endsHere } from './form.js'

// made returns what make(refuse) makes of a form, or throws a Refusal with all that make refused, so that a mistake
// that the page finds is shown like one of the API.
export function made(make) {
  const errors = []
  const body = make((pointer, detail, allowed) => { errors.push({ pointer, code: 'invalid_value', detail, allowed }) })
  if (errors.length === 0) return body
  throw new Refusal(400, { title: 'The form has mistakes.', code: errors[0].code, errors })
}

// unread says why a text is no JSON; '' if it is some, or empty.
export function unread(text) {
  try {
    if (text.trim()) read(text)
    return ''
  } catch (error) {
    return error.message
  }
}

// jsonOf returns what a text in JSON says; undefined for an empty text, and for one that is refused.
export function jsonOf(text, pointer, refuse) {
  const why = unread(text)
  if (why) refuse(pointer, `This is no JSON: ${why}`)
  return why || !text.trim() ? undefined : read(text)
}

// textOf writes a value as jsonOf reads it.
export const textOf = (value) => (value === undefined ? '' : JSON.stringify(value, null, 2))

// numberOf returns the number that a text is; undefined for an empty text, and for one that is refused.
export function numberOf(text, pointer, refuse) {
  if (!text.trim()) return undefined
  const n = Number(text)
  if (!Number.isNaN(n)) return n
  refuse(pointer, `“${text}” is no number.`)
  return undefined
}

// linesOf returns the lines of a text that are not blank.
export const linesOf = (text) => text.split('\n').map((l) => l.trim()).filter(Boolean)

// whole leaves out what is undefined or ''; it returns undefined if nothing is left.
export function whole(object) {
  const kept = Object.entries(object).filter(([, v]) => v !== undefined && v !== '')
  return kept.length ? Object.fromEntries(kept) : undefined
}

const isObject = (v) => typeof v === 'object' && v !== null && !Array.isArray(v) && !JSON.isRawJSON?.(v)

// mergePatch returns the merge patch (RFC 7396) that makes b of a; undefined if they are the same. refuse is called
// for a null that b has in an object where a has none, which no merge patch can write.
export function mergePatch(a, b, refuse, pointer = '') {
  if (JSON.stringify(a) === JSON.stringify(b)) return undefined
  if (b === undefined) return null
  if (!isObject(b)) return b
  const before = isObject(a) ? a : {}
  const patch = {}
  for (const name of new Set([...Object.keys(before), ...Object.keys(b)])) {
    const at = `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (b[name] === null && before[name] !== null) refuse(at, 'An edit removes what is null, and cannot write one.')
    const change = mergePatch(before[name], b[name], refuse, at)
    if (change !== undefined) patch[name] = change
  }
  return patch
}

// fieldOf returns the field whose pointer, among those of at, is the longest that leads to pointer.
export function fieldOf(pointer, at) {
  const leads = Object.entries(at).filter(([, p]) => pointer === p || pointer.startsWith(`${p}/`))
  return leads.sort(([, p], [, q]) => q.length - p.length)[0]?.[0]
}

// useFirst loads once, for a form: what is typed there must not change under the hands of its user.
export function useFirst(load, deps) {
  const [state, set] = useState({ data: null, error: null })
  useEffect(() => {
    const stop = new AbortController()
    set({ data: null, error: null })
    load(stop.signal).then((data) => set({ data, error: null }),
      (error) => { if (error.name !== 'AbortError') set({ data: null, error }) })
    return () => stop.abort()
  }, deps)
  return state
}

// byField groups errors by the fields of at: {name: errors}; those of no field are at ''.
function byField(errors, at) {
  const groups = {}
  for (const e of errors) {
    const name = fieldOf(e.pointer || '', at) ?? ''
    const below = name && e.pointer.slice(at[name].length)
    ;(groups[name] ||= []).push({ ...e, below })
  }
  return groups
}

// useEntry is a form: v has what is typed, by field; at(v) says which pointer of the request each field is. field
// draws one, save(act) is what submitting does, and bad says which fields are refused.
export function useEntry(first, at) {
  const [v, setV] = useState(first)
  const [refused, setRefused] = useState(null)
  const [checked, setChecked] = useState([]) // what the API says of what is typed, before it is sent
  const [since, setSince] = useState(new Set()) // fields that have changed since the refusal
  const [busy, setBusy] = useState(false)
  const box = useRef()
  useEffect(() => { if (refused) box.current?.querySelector('[aria-invalid=true]')?.focus() }, [refused])
  const pointers = at(v)
  const groups = byField(refused?.errors || [], pointers)
  const typed = byField(checked, pointers)
  const wrong = (name) => {
    const all = [...(typed[name] || []), ...(since.has(name) ? [] : groups[name] || [])]
    return all.filter((e, i) => all.findIndex((o) => o.detail === e.detail && o.below === e.below) === i)
  }
  const change = (name, value) => {
    setV((old) => ({ ...old, [name]: value }))
    setSince((old) => new Set([...old, name]))
  }
  const field = (name, label, { json, ...more } = {}) => {
    const why = json ? unread(v[name] || '') : ''
    return html`<${Field} name=${name} label=${label} area=${json} value=${v[name] ?? ''} ...${more}
      wrong=${why ? [{ detail: `This is no JSON: ${why}` }] : wrong(name)}
      onInput=${(e) => change(name, e.target.value)} />`
  }
  const save = (act) => async (e) => {
    e.preventDefault()
    if (busy) return
    setBusy(true)
    setRefused(null)
    setSince(new Set())
    try { await act(v) } catch (error) { if (!endsHere(error)) setRefused(error) } finally { setBusy(false) }
  }
  const bad = (names) => names.some((n) => wrong(n).length > 0)
  const names = Object.keys(pointers)
  return { v, setV, change, field, save, busy, box, bad, setChecked,
    left: refused && (bad(names) || groups[''] || !refused.errors?.length)
      ? { ...refused, message: refused.message, errors: groups[''] } : null }
}

// Entry is the form of useEntry around its fields, with its end: what no field shows of a refusal, and the buttons.
export const Entry = ({ of, act, verb, back, children, more }) => html`
  <form class="halves" noValidate ref=${of.box} onSubmit=${of.save(act)}>${children}
    <div class="last"><${Refused} error=${of.left} />${more}
      <div class="row end"><a class="button" href=${back}>Cancel</a>
        <button class="primary" aria-disabled=${of.busy}>${verb}</button></div></div></form>`

// More holds fields that few need, and opens when one of them is refused.
export function More({ label, open, children }) {
  const box = useRef()
  useEffect(() => { if (open) box.current.open = true }, [open])
  return html`<details ref=${box}><summary>${label}</summary>${children}</details>`
}

const input = /^\/(job\/payload|dag\/params)(\/|$)/

// inputErrors are those of an input, with `at` in place of the first part of their pointers.
const inputErrors = (errors, at) => errors.filter((e) => input.test(e.pointer || ''))
  .map((e) => ({ ...e, pointer: at + e.pointer.slice('/job'.length) }))

// useCheck has the API check the input of a job or a run while it is typed: makes is {job} or {dag}, and found gets
// what is refused of its payload or params, with pointers that begin with `at` in place of '/job' or '/dag'. The dry
// run of a schedule checks them as those of a new job or run, and makes nothing; these have no dry run of their own.
export function useCheck(makes, found, at) {
  const asked = JSON.stringify(makes)
  useEffect(() => {
    if (!makes) return found([])
    const stop = new AbortController()
    const t = setTimeout(() => {
      post('/schedules/check/dry-run', { calendar: { every: '1d' }, ...makes }, stop.signal).then(() => found([]),
        (error) => { if (error.name !== 'AbortError') found(inputErrors(error.errors || [], at)) })
    }, 400)
    return () => { clearTimeout(t); stop.abort() }
  }, [asked])
}

// same asks the API whether a resource is still of the version that a form shows; it throws a Refusal if not.
export async function same(path, version) {
  const now = await get(path)
  if (now.version === version) return
  throw new Refusal(412, { title: 'It has changed meanwhile: load the page again.', code: 'stale_version' })
}

export const pathOf = (kind, name) => `/${kind}/${seg(name)}`
export const nameForm = { pattern: '[a-zA-Z0-9_\\-]{1,64}', hint: 'Letters, digits, _ and -, at most 64.' }

// nameOf refuses what cannot be the name of a resource.
export function nameOf(name, refuse) {
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) refuse('/name', 'This is no name.', 'letters, digits, _ and -, at most 64')
}

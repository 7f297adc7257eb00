// Asks before something is done, in a modal dialog, and says afterwards how it went.
import { html, useEffect, useLayoutEffect, useRef, useState } from './html.js'
import { Refused, endsHere } from './form.js'

let show = () => {}
let note = () => {}

// say tells the user, aloud too, what has happened.
export const say = (text) => note(text)

// ask opens a dialog and does act(values) when it is confirmed. The dialog stays open with what the API
// refused. touches says in words and numbers what will be touched, or is a function that finds it out of the
// values so far; no is what the button says that does nothing, 'Cancel' without it; fields are inputs {name, label,
// value, hint, options, area, required}. It returns what act returned, or undefined.
export const ask = (question) => new Promise((done) => show({ ...question, done }))

export function Asking() {
  const [question, set] = useState(null)
  const [said, setSaid] = useState({ text: '' })
  const { text } = said
  show = set
  note = (t) => setSaid({ text: t }) // the same words again are shown for their whole time again
  useEffect(() => {
    if (!text) return undefined
    const t = setTimeout(() => setSaid({ text: '' }), 6000)
    return () => clearTimeout(t)
  }, [said])
  return html`${question && html`<${Question} key=${question} q=${question} close=${() => set(null)} />`}
    <div class="said" role="status" aria-live="polite">${text && html`<p>${text}</p>`}</div>`
}

function Question({ q, close }) {
  const box = useRef()
  const [error, setError] = useState(null)
  const [busy, setBusy] = useState(false)
  const [touches, setTouches] = useState(typeof q.touches === 'string' && q.touches)
  const values = () => Object.fromEntries(new FormData(box.current.querySelector('form')))
  const end = (value) => { box.current.close(); close(); q.done(value) }
  const refuse = (refused) => (endsHere(refused) ? end(undefined) : setError(refused))
  const count = () => typeof q.touches === 'function' && q.touches(values()).then(setTouches, refuse)
  useEffect(() => { box.current.showModal(); count() }, [])
  const confirm = async (e) => {
    e.preventDefault()
    if (busy || (q.touches && !touches)) return // nobody confirms a number that is not there yet
    setBusy(true)
    setError(null)
    try {
      end((await q.act(values())) ?? true)
      if (q.done_text) say(q.done_text)
    } catch (refused) {
      refuse(refused)
      setBusy(false)
    }
  }
  return html`<dialog ref=${box} aria-labelledby="asked" onCancel=${(e) => { e.preventDefault(); end(undefined) }}>
    <form onSubmit=${confirm} onChange=${count}>
      <h2 id="asked">${q.title}</h2>
      ${q.text && html`<p>${q.text}</p>`}
      ${touches && html`
        <p class=${q.danger ? 'touches bad' : 'touches'}>This touches <strong>${touches}</strong>.</p>`}
      ${(q.fields || []).map((f) => html`<${Field} ...${f} />`)}
      <${Refused} error=${error} />
      <div class="row end">
        <button type="button" onClick=${() => end(undefined)}>${q.no || 'Cancel'}</button>
        <button type="submit" class=${q.danger ? 'danger' : 'primary'} aria-disabled=${busy}>${q.verb}</button>
      </div>
    </form>
  </dialog>`
}

// Field is an input with its label. Without onInput it belongs to its user: what is typed stays, however often
// the view is drawn again, until another value is given. list are values to choose from, wrong what is refused of it.
export function Field({ name, label, value, hint, options, area, list, wrong = [], onInput, ...rest }) {
  const box = useRef()
  useLayoutEffect(() => {
    if (!onInput && box.current !== document.activeElement) box.current.value = value ?? ''
  }, [value])
  const about = [hint && `hint-${name}`, wrong.length > 0 && `wrong-${name}`].filter(Boolean).join(' ')
  const attributes = { ref: box, name, 'aria-describedby': about || undefined, ...rest,
    'aria-invalid': wrong.length > 0 ? 'true' : undefined, list: list && `list-${name}`,
    ...(onInput ? { value, onInput } : {}) }
  return html`<label class="field"><span>${label}</span>
    ${options ? html`<select ...${attributes}>${options.map(([v, l]) => html`
      <option value=${v} selected=${v === value}>${l}</option>`)}</select>`
    : area ? html`<textarea rows="5" spellcheck="false" ...${attributes}></textarea>`
    : html`<input autocomplete="off" spellcheck="false" ...${attributes} />`}
    ${list && html`<datalist id=${`list-${name}`}>${list.map((v) => html`<option value=${v} />`)}</datalist>`}
    ${hint && html`<span class="mute small" id=${`hint-${name}`}>${hint}</span>`}
    ${wrong.length > 0 && html`<span class="wrong small" id=${`wrong-${name}`}>${wrong.map((e) => html`
      <span>${e.below && html`<code>${e.below}</code> `}${e.detail}${e.allowed && `. Allowed: ${e.allowed}`}
      </span>`)}</span>`}
    </label>`
}

export const why = { name: 'reason', label: 'Reason', hint: 'Kept with who did it and when.' }

// Act is a button of something that takes a moment: it can't be pressed twice, and says aloud what was refused.
export function Act({ label, danger, primary, on, ...rest }) {
  const [busy, set] = useState(false)
  const press = async () => {
    set(true)
    try { await on() } catch (refused) {
      if (!endsHere(refused)) say(`${refused.message} ${refused.code || ''}`)
    } finally { set(false) }
  }
  return html`<button type="button" class=${danger ? 'danger' : primary ? 'primary' : ''} ...${rest}
    aria-disabled=${busy} onClick=${busy ? undefined : press}>${label}</button>`
}

// Tables: a plain one, and one that draws only the rows in sight, for lists of ten thousand.
import { html, useEffect, useLayoutEffect, useRef, useState } from './html.js'
import { Refused } from './form.js'

const tall = 45 // pixels of a row in a long table; style.css has the same
const spare = 8 // rows drawn beyond what is in sight

const Cells = ({ columns, row }) => columns.map((c, i) => (i === 0
  ? html`<th scope="row" class=${c.class}>${c.cell(row)}</th>`
  : html`<td class=${c.class}>${c.cell(row)}</td>`))

const Head = ({ columns }) => html`<thead><tr>
  ${columns.map((c) => html`<th scope="col" class=${c.class}>${c.name}</th>`)}</tr></thead>`

export const Table = ({ caption, columns, rows, id }) => html`
  <div class="scroll" tabindex="0" role="region" aria-label=${caption}><table>
    <caption class="hidden">${caption}</caption><${Head} columns=${columns} />
    <tbody>${rows.map((r) => html`<tr key=${id(r)}><${Cells} columns=${columns} row=${r} /></tr>`)}</tbody>
  </table></div>`

// LongTable draws the rows that are in the window. onEnd is called when the last ones come into sight.
export function LongTable({ caption, columns, rows, id, onEnd }) {
  const body = useRef()
  const [range, set] = useState([0, 40])
  useLayoutEffect(() => {
    const look = () => {
      const top = body.current.getBoundingClientRect().top
      const first = Math.max(0, Math.floor(-top / tall) - spare)
      const last = Math.ceil((innerHeight - top) / tall) + spare
      set(([a, b]) => (a === first && b === last ? [a, b] : [first, last]))
    }
    look()
    addEventListener('scroll', look, { passive: true })
    addEventListener('resize', look)
    return () => {
      removeEventListener('scroll', look)
      removeEventListener('resize', look)
    }
  }, [])
  const [first, last] = [Math.min(range[0], Math.max(0, rows.length - 1)), Math.min(rows.length, range[1])]
  useEffect(() => { if (onEnd && last >= rows.length - 5) onEnd() }, [last, rows.length])
  const gap = (n) => n > 0 && html`<tr aria-hidden="true">
    <td class="gap" style=${{ height: `${n * tall}px` }}></td></tr>`
  return html`<table class="long" aria-rowcount=${rows.length + 1}>
    <caption class="hidden">${caption}</caption><${Head} columns=${columns} />
    <tbody ref=${body}>${gap(first)}
      ${rows.slice(first, last).map((r, i) => html`<tr key=${id(r)} aria-rowindex=${first + i + 2}>
        <${Cells} columns=${columns} row=${r} /></tr>`)}
      ${gap(rows.length - last)}</tbody></table>`
}

// Pages is a long table of what usePages has; more pages come as it is scrolled, or by a button.
export const Pages = ({ of, more, ...table }) => html`
  <${LongTable} ...${table} rows=${of.rows} onEnd=${of.stuck ? undefined : of.more} />
  <${Refused} error=${of.stuck} />
  ${of.cursor && html`<p class="center"><button type="button" onClick=${of.more}>${more}</button></p>`}`

// Draws a graph of nodes from left to right, by level; each node is a link.
import { html, useMemo } from './html.js'
import { look } from './form.js'

const wide = 158, high = 46, across = 218, down = 62, edge = 16

const parentsOf = (nodes, name) => (nodes[name].depends_on || []).filter((p) => Object.hasOwn(nodes, p))

// layoutOf returns places {x, y} by node and the size. A node's level is one more than its deepest parent's;
// in a level, nodes stand in the order of their parents, which keeps lines short.
export function layoutOf(nodes) {
  const level = Object.create(null) // a node may be named as something that every object has, such as constructor
  const deep = (name) => {
    if (level[name] === undefined) {
      level[name] = 0 // the API takes no cycle; this ends even if there were one
      level[name] = Math.max(0, ...parentsOf(nodes, name).map((p) => deep(p) + 1))
    }
    return level[name]
  }
  const columns = []
  for (const name of Object.keys(nodes).sort()) (columns[deep(name)] ||= []).push(name)
  const most = Math.max(1, ...columns.map((c) => c.length))
  const at = Object.create(null)
  columns.forEach((names, x) => {
    const weight = (name) => {
      const ys = parentsOf(nodes, name).map((p) => at[p].y)
      return ys.length ? ys.reduce((a, b) => a + b) / ys.length : 0
    }
    names.sort((a, b) => weight(a) - weight(b))
    names.forEach((name, y) => {
      at[name] = { x: edge + x * across, y: edge + ((most - names.length) / 2 + y) * down }
    })
  })
  return { at, width: 2 * edge + (columns.length - 1) * across + wide, height: 2 * edge + (most - 1) * down + high }
}

const cut = (text, n) => (text.length > n ? `${text.slice(0, n - 1)}…` : text)

// below says what stands under a node's name: how it goes, or what it runs.
function below(n) {
  if (!n.status) return n.for_each ? `${n.task}, for each` : n.task
  const more = n.items ? ` ${n.items.succeeded}/${n.items.total}` : n.attempt > 1 ? `, attempt ${n.attempt}` : ''
  return n.status.toLowerCase() + more
}

export function Graph({ nodes, label, chosen, link }) {
  const shape = JSON.stringify(Object.entries(nodes).map(([k, v]) => [k, v.depends_on]))
  const { at, width, height } = useMemo(() => layoutOf(nodes), [shape])
  return html`<div class="graph" tabindex="0" role="region" aria-label=${label}>
    <svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="group" aria-label=${label}>
      <g aria-hidden="true">${Object.keys(nodes).flatMap((name) => parentsOf(nodes, name).map((p) => {
        const [x1, y1, x2, y2] = [at[p].x + wide, at[p].y + high / 2, at[name].x, at[name].y + high / 2]
        return html`<path key=${`${p}>${name}`} d=${`M${x1} ${y1}C${x1 + 32} ${y1} ${x2 - 32} ${y2} ${x2} ${y2}`} />`
      }))}</g>
      ${Object.entries(nodes).map(([name, n]) => {
        const [tone, sign] = n.status ? look(n.status) : ['', '']
        return html`<a key=${name} href=${link(name)} class=${tone} aria-current=${chosen === name ? 'true' : undefined}
          aria-label=${`${name}, ${below(n)}`} transform=${`translate(${at[name].x} ${at[name].y})`}>
          <title>${name}${n.why ? `: ${n.why}` : ''}</title>
          <rect class="box" width=${wide} height=${high} rx="7" />
          <text x="12" y="20">${cut(name, 19)}</text> ${
            html`<text class="below" x="12" y="36">${sign} ${cut(below(n), 24)}</text>`}</a>`
      })}
    </svg></div>`
}

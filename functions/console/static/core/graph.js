// Draws a graph of nodes from left to right, by level; each node is a link.
import { html, useMemo } from './html.js'
import { look } from './form.js'

const wide = 158, high = 46, across = 218, gap = 16, lane = 14, edge = 16

const parentsOf = (nodes, name) => (nodes[name].depends_on || []).filter((p) => Object.hasOwn(nodes, p))

// levelsOf returns the level of each node, which is one more than its deepest parent's.
function levelsOf(nodes) {
  const level = Object.create(null) // a node may be named as something that every object has, such as constructor
  const deep = (name) => {
    if (level[name] === undefined) {
      level[name] = 0 // the API takes no cycle; this ends even if there were one
      level[name] = Math.max(0, ...parentsOf(nodes, name).map((p) => deep(p) + 1))
    }
    return level[name]
  }
  Object.keys(nodes).forEach(deep)
  return level
}

// columnsOf returns the slots of each level: its nodes, and a lane for each node whose edges pass the level on their
// way to a later one. No node is in a lane, so that no edge lies behind a node.
function columnsOf(nodes, level) {
  const columns = []
  const add = (x, slot) => (columns[x] ||= []).push(slot)
  const far = Object.create(null) // the last level that edges of a node lead to
  for (const name of Object.keys(nodes).sort()) {
    add(level[name], { name, tall: high + gap })
    for (const p of parentsOf(nodes, name)) far[p] = Math.max(far[p] || 0, level[name])
  }
  for (const from of Object.keys(far)) {
    for (let x = level[from] + 1; x < far[from]; x++) add(x, { from, tall: lane })
  }
  return columns
}

// layoutOf returns places {x, y} by node, level by node, the heights of the lanes by node and level, and the size. In
// a level, nodes and lanes stand in the order of what comes before them, which keeps lines short.
export function layoutOf(nodes) {
  const level = levelsOf(nodes)
  const columns = columnsOf(nodes, level)
  const sum = (slots) => slots.reduce((n, s) => n + s.tall, 0)
  const most = Math.max(high + gap, ...columns.map(sum))
  const [at, lanes] = [Object.create(null), Object.create(null)]
  columns.forEach((slots, x) => {
    const before = (p) => lanes[p]?.[x - 1] ?? (at[p] ? at[p].y + high / 2 : 0)
    for (const s of slots) {
      const ys = (s.from ? [s.from] : parentsOf(nodes, s.name)).map(before)
      s.weight = ys.length ? ys.reduce((a, b) => a + b) / ys.length : 0
    }
    let y = edge + (most - sum(slots)) / 2
    for (const s of slots.sort((a, b) => a.weight - b.weight)) {
      if (s.from) (lanes[s.from] ||= {})[x] = y + (lane - gap) / 2
      else at[s.name] = { x: edge + x * across, y }
      y += s.tall
    }
  })
  return { at, level, lanes, width: 2 * edge + (columns.length - 1) * across + wide, height: 2 * edge + most - gap }
}

// lineOf returns the path of an edge: curves between two levels, straight along its lane past the levels between.
function lineOf({ at, level, lanes }, from, to) {
  let [x, y] = [at[from].x + wide, at[from].y + high / 2]
  let line = `M${x} ${y}`
  const curve = (toX, toY) => {
    line += `C${x + 32} ${y} ${toX - 32} ${toY} ${toX} ${toY}`
    ;[x, y] = [toX, toY]
  }
  for (let l = level[from] + 1; l < level[to]; l++) {
    curve(edge + l * across, lanes[from][l])
    x += wide
    line += `H${x}`
  }
  curve(at[to].x, at[to].y + high / 2)
  return line
}

const cut = (text, n) => (text.length > n ? `${text.slice(0, n - 1)}…` : text)

// below says what stands under a node's name: how it goes, or what it runs.
function below(n) {
  if (!n.status) return n.for_each ? `${n.task}, for each` : n.task
  const more = n.items ? ` ${n.items.succeeded}/${n.items.total}` : n.attempt > 1 ? `, attempt ${n.attempt}` : ''
  return (paused(n) ? 'paused' : n.status.toLowerCase()) + more
}

const paused = (n) => n.waiting_for === 'pause'

export function Graph({ nodes, label, chosen, link }) {
  const shape = JSON.stringify(Object.entries(nodes).map(([k, v]) => [k, v.depends_on]))
  const layout = useMemo(() => layoutOf(nodes), [shape])
  const { at, width, height } = layout
  return html`<div class="graph" tabindex="0" role="region" aria-label=${label}>
    <svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="group" aria-label=${label}>
      <g aria-hidden="true">${Object.keys(nodes).flatMap((name) => parentsOf(nodes, name).map((p) => html`
        <path key=${`${p}>${name}`} d=${lineOf(layout, p, name)} />`))}</g>
      ${Object.entries(nodes).map(([name, n]) => {
        const [tone, sign] = n.status ? look(paused(n) ? 'paused' : n.status) : ['', '']
        return html`<a key=${name} href=${link(name)} class=${tone} aria-current=${chosen === name ? 'true' : undefined}
          aria-label=${`${name}, ${below(n)}`} transform=${`translate(${at[name].x} ${at[name].y})`}>
          <title>${name}${n.why ? `: ${n.why}` : ''}</title>
          <rect class="box" width=${wide} height=${high} rx="7" />
          <text x="12" y="20">${cut(name, 19)}</text> ${
            html`<text class="below" x="12" y="36">${sign} ${cut(below(n), 24)}</text>`}</a>`
      })}
    </svg></div>`
}

// Bars of numbers, one for each step of time, in an SVG that is as wide as its place.
import { html } from './html.js'

// Bars draws bins; null and 0 have no bar. says(i) is what the step i shows on hover, and label is what is heard in
// place of the picture.
export function Bars({ bins, says, label, tone = '' }) {
  const most = Math.max(...bins, 1)
  const tall = (n) => (n ? Math.max(3, (100 * n) / most) : 0)
  return html`<svg class=${`plot ${tone}`} viewBox=${`0 0 ${bins.length} 100`} preserveAspectRatio="none" role="img"
    aria-label=${label}>${bins.map((n, i) => html`<g><title>${says(i)}</title>
      <rect class="step" x=${i} y="0" width="1" height="100" />
      <rect x=${i + 0.08} y=${100 - tall(n)} width="0.84" height=${tall(n)} /></g>`)}</svg>`
}

// Axis writes the times of ticks, which are spread evenly below what is drawn.
export const Axis = ({ ticks }) => html`<div class="axis" aria-hidden="true">${
  ticks.map((t) => html`<span>${t}</span>`)}</div>`

// quarters are the beginning, the quarters and the end of n steps, as at(i) names them.
export const quarters = (n, at) => [0, 1, 2, 3, 4].map((q) => at((n * q) / 4))

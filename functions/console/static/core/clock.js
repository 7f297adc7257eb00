// Tells the server's time, which decides what is due. It is another year's on a laptop with AT=….

const little = 2_000 // milliseconds that are no skew
let ahead = 0

// now is the server's time in milliseconds. What the page does itself, such as renewing a token or refreshing,
// goes by the browser's clock.
export const now = () => Date.now() + ahead

// skew is by how many milliseconds the server is ahead of the browser; 0 while that is little.
export const skew = () => ahead

// learn takes what time the server said it is, between two moments of the browser's clock. It knows no better than
// half of what lies between them.
export function learn(said, asked, heard) {
  const half = (heard - asked) / 2
  const found = Date.parse(said) - (asked + half)
  if (!Number.isNaN(found)) ahead = Math.abs(found) < Math.max(little, half) ? 0 : Math.round(found)
}

// Dead letters by what they died of.

// Ids and numbers in a message make no cause of their own, but the statuses of HTTP do.
const chance = /[0-9A-HJKMNP-TV-Z]{26}|[0-9a-f-]{32,36}|(?<!\d)(?![45]\d\d(?!\d))\d+/g

// groupsOf returns {key, task, code, example, letters} of what died of the same, most first.
export function groupsOf(letters) {
  const groups = new Map()
  for (const d of letters) {
    const reason = d.status_reason || d.attempts?.at(-1)?.error || { code: 'unknown' }
    const key = [d.task, reason.code, (reason.message || '').replace(chance, '#')].join(' ')
    const { task } = d
    if (!groups.has(key)) groups.set(key, { key, task, code: reason.code, example: reason.message, letters: [] })
    groups.get(key).letters.push(d)
  }
  return [...groups.values()].sort((a, b) => b.letters.length - a.letters.length)
}

// Calls the REST API. What it refuses is thrown as a Refusal, which carries its problem.
import { apiPath, bearer, signsIn } from './auth.js'
import { learn } from './clock.js'
import { tell } from './shown.js'

// read is JSON.parse that keeps the digits of numbers which JavaScript has no value for, where the browser can.
export const read = (text) => JSON.parse(text, (_, value, { source } = {}) => (
  typeof value === 'number' && JSON.rawJSON && (source?.length > 15 || !Number.isFinite(value))
    && String(value) !== source ? JSON.rawJSON(source) : value))

export class Refusal extends Error {
  constructor(status, problem, retryAfter) {
    super(problem.detail || problem.title || `The API answered ${status}.`)
    Object.assign(this, { status, code: problem.code || '', errors: problem.errors || [], requestId: problem.request_id,
      allowed: problem.allowed, jobId: problem.job_id, retryAfter })
  }
}

// call sends one request and returns what the answer says. query's empty values are left out; body is sent as JSON if
// it is there; key is an Idempotency-Key, match the version that may be changed, and plain takes an answer of text.
export const call = async (method, path, request) => (await send(method, path, request)).said

// send is call that returns {status, said}.
export async function send(method, path, { query, body, signal, key, match, plain } = {}) {
  const asked = new URLSearchParams()
  for (const [name, value] of Object.entries(query || {})) {
    if (value !== undefined && value !== '') asked.set(name, value)
  }
  const headers = await bearer()
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  if (key) headers['Idempotency-Key'] = key
  if (match) headers['If-Match'] = `"${match}"`
  let answer
  try {
    answer = await fetch(apiPath() + path + (asked.size ? `?${asked}` : ''), {
      method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body), cache: 'no-store',
    })
  } catch (e) {
    if (e.name === 'AbortError') throw e
    throw new Refusal(0, { title: 'The API cannot be reached.', code: 'unreachable' })
  }
  tell({ ended: answer.status === 401 && signsIn() })
  const text = await answer.text()
  const json = (answer.headers.get('Content-Type') || '').includes('json')
  const said = json && text ? read(text) : plain ? text : {}
  if (answer.ok && text && !json && !plain) throw new Refusal(answer.status, { title: 'This is no answer of the API.' })
  if (!answer.ok) throw new Refusal(answer.status, said, Number(answer.headers.get('Retry-After')) || 0)
  return { status: answer.status, said }
}

export const get = (path, query, signal) => call('GET', path, { query, signal })
export const getText = (path, signal) => call('GET', path, { signal, plain: true })
export const post = (path, body, signal) => call('POST', path, { body, signal })
export const put = (path, body) => call('PUT', path, { body })
export const remove = (path) => call('DELETE', path)
export const seg = encodeURIComponent

// ready returns what GET /ready says but for its time, by which it sets the page's clock.
export async function ready(signal) {
  const asked = Date.now()
  const { now, ...said } = await get('/ready', {}, signal)
  learn(now, asked, Date.now())
  return said
}

// some reads a list until it has `most` items, the list ends, or `pages` pages are read: pages may be
// empty and not the last. more says whether something was left.
export async function some(path, query, { most = 200, pages = 4, signal } = {}) {
  const items = []
  let cursor
  for (let page = 0; page < pages && items.length < most; page++) {
    const said = await get(path, { limit: Math.min(200, most), ...query, cursor }, signal)
    items.push(...said.items)
    cursor = said.next_cursor
    if (!cursor) break
  }
  return { items, more: Boolean(cursor), cursor: cursor || null }
}

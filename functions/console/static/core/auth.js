// Signs in by OpenID Connect: authorization code with PKCE. Tokens are in this module's variables and
// nowhere else; only the verifier and where the user was lie in sessionStorage, for one redirect, and
// that the user has signed out, for one load.

const kept = 'punctual.sign-in'
const out = 'punctual.signed-out'
const here = location.origin + location.pathname
let settings = null
let endpoints = null
let tokens = null // {access, refresh, id, endsAt}; null before sign-in and after sign-out

const text64 = (bytes) => btoa(String.fromCharCode(...bytes)).replace(/\+/g, '-').replace(/\//g, '_').replace(/=/g, '')
const random = () => text64(crypto.getRandomValues(new Uint8Array(32)))

const reach = (...request) => fetch(...request).catch(() => {
  throw new Error('The issuer cannot be reached, or it does not let this page ask (CORS).')
})

// start reads the page's settings and signs in. It returns the settings, or null when the browser is
// on its way to the issuer. It throws when the issuer refuses.
export async function start() {
  const answer = await fetch('config.json')
  if (!answer.ok) throw new Error(`config.json: ${answer.status}`)
  settings = await answer.json()
  if (settings.signed) {
    throw new Error('This deployment takes signed requests (auth=iam), which a page cannot make: use the command line.')
  }
  if (!settings.issuer) return settings
  if (!settings.client) {
    throw new Error('This deployment has no client for the console: see console_client in infra/auth.md.')
  }
  const found = await reach(settings.issuer.replace(/\/$/, '') + '/.well-known/openid-configuration')
  if (!found.ok) throw new Error(`The issuer does not describe itself: ${found.status}`)
  endpoints = await found.json()
  const said = new URLSearchParams(location.search)
  if (!said.has('state')) return leave()
  const before = JSON.parse(sessionStorage.getItem(kept) || 'null')
  sessionStorage.removeItem(kept)
  history.replaceState(null, '', here + (before ? before.hash : ''))
  if (!before || before.state !== said.get('state')) return leave() // an old tab, or a forged answer
  if (said.has('error')) throw new Error(`The issuer refused: ${said.get('error_description') || said.get('error')}`)
  await take({
    grant_type: 'authorization_code', code: said.get('code'), redirect_uri: here, code_verifier: before.verifier,
  })
  return settings
}

// leave goes to the issuer; the page is loaded again when it comes back.
export async function leave() {
  const verifier = random()
  const state = random()
  const sum = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))
  sessionStorage.setItem(kept, JSON.stringify({ verifier, state, hash: location.hash }))
  const to = new URL(endpoints.authorization_endpoint)
  const ask = { response_type: 'code', client_id: settings.client, redirect_uri: here, state,
    scope: settings.scope || 'openid', code_challenge: text64(new Uint8Array(sum)), code_challenge_method: 'S256' }
  if (settings.audience) ask.audience = settings.audience
  for (const [name, value] of Object.entries(ask)) to.searchParams.set(name, value)
  location.assign(to)
  return null
}

async function take(form) {
  const answer = await reach(endpoints.token_endpoint, {
    method: 'POST', body: new URLSearchParams({ ...form, client_id: settings.client }),
  })
  const said = await answer.json().catch(() => ({}))
  if (!answer.ok) throw new Error(`The issuer gave no token: ${said.error_description || said.error || answer.status}`)
  tokens = { access: said.access_token, refresh: said.refresh_token || tokens?.refresh, id: said.id_token || tokens?.id,
    endsAt: Date.now() + 1000 * (said.expires_in || 3600) }
}

let renewing = null

// bearer returns the header for a request; {} where nobody signs in. A token that is about to end is
// renewed before, once for all who ask meanwhile.
export async function bearer() {
  if (!tokens) return {}
  if (tokens.endsAt - Date.now() < 30_000 && tokens.refresh) {
    renewing ||= take({ grant_type: 'refresh_token', refresh_token: tokens.refresh }).finally(() => { renewing = null })
    await renewing.catch(() => {}) // the API will say 401, and the page asks the user to sign in
  }
  return { Authorization: `Bearer ${tokens.access}` }
}

// signOut forgets the tokens, here and in the other tabs, takes the refresh token back, and ends the session at
// the issuer. An issuer that tells no way to do so keeps it.
export async function signOut() {
  const had = tokens
  tokens = null
  tabs.postMessage(out)
  const ends = endpoints.end_session_endpoint
  sessionStorage.setItem(out, ends ? 'all' : 'page')
  if (had?.refresh && endpoints.revocation_endpoint) {
    const body = new URLSearchParams({ token: had.refresh, client_id: settings.client })
    await fetch(endpoints.revocation_endpoint, { method: 'POST', body, signal: AbortSignal.timeout(3_000) })
      .catch(() => {}) // it ends by itself, later
  }
  if (!ends) return location.reload()
  const to = new URL(ends)
  to.searchParams.set('client_id', settings.client)
  to.searchParams.set('post_logout_redirect_uri', here)
  to.searchParams.set('logout_uri', here) // Cognito's word for it
  if (had?.id) to.searchParams.set('id_token_hint', had.id)
  location.assign(to)
}

const tabs = new BroadcastChannel(out)
tabs.onmessage = () => {
  if (!tokens) return
  tokens = null
  sessionStorage.setItem(out, 'all')
  location.reload()
}

// signedOut says, once, that the user has just signed out: 'all', or 'page' where the issuer still knows the user.
export function signedOut() {
  const how = sessionStorage.getItem(out)
  sessionStorage.removeItem(out)
  return how
}

export const signsIn = () => Boolean(settings?.issuer)
export const apiPath = () => settings.api

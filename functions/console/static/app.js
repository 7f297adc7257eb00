// The page: signs in, shows the view that the address names, and the header above it.
import { html, render, useEffect, useRef, useState } from './core/html.js'
import { start, leave, signsIn, signOut, signedOut } from './core/auth.js'
import { get, ready } from './core/api.js'
import { skew } from './core/clock.js'
import { setLive, useClock } from './core/live.js'
import { titled, useShown } from './core/shown.js'
import { Refused, from, length, short, zone } from './core/form.js'
import { Asking } from './core/ask.js'
import { Overview } from './views/overview.js'
import { Jobs } from './views/jobs.js'
import { Job } from './views/job.js'
import { Schedules } from './views/schedules.js'

const dags = () => import('./views/dags.js')
const editSchedule = () => import('./views/editschedule.js')
const limits = () => import('./views/limits.js')
const tasks = () => import('./views/tasks.js')
const NewJob = from(() => import('./views/newjob.js'), 'NewJob')
const Schedule = from(() => import('./views/schedule.js'), 'Schedule')
const EditSchedule = from(editSchedule, 'EditSchedule')
const [Dags, Dag] = [from(dags, 'Dags'), from(dags, 'Dag')]
const Run = from(() => import('./views/run.js'), 'Run')
const [Tasks, Task, EditTask] = [from(tasks, 'Tasks'), from(tasks, 'Task'), from(tasks, 'EditTask')]
const DeadLetters = from(() => import('./views/deadletters.js'), 'DeadLetters')
const [Limits, Limit] = [from(limits, 'Limits'), from(limits, 'Limit')]
const operations = () => import('./views/operations.js')
const [Operations, Operation] = [from(operations, 'Operations'), from(operations, 'Operation')]
const webhooks = () => import('./views/webhooks.js')
const [Webhooks, Webhook, EditWebhook] = ['Webhooks', 'Webhook', 'EditWebhook'].map((n) => from(webhooks, n))
const Audit = from(() => import('./views/audit.js'), 'Audit')
const Usage = from(() => import('./views/usage.js'), 'Usage')
const Pauses = from(() => import('./views/pauses.js'), 'Pauses')

const rooms = [['', 'Overview'], ['jobs', 'Jobs'], ['schedules', 'Schedules'], ['dags', 'DAGs'],
  ['tasks', 'Tasks'], ['dead-letters', 'Dead letters'], ['operations', 'Operations'], ['limits', 'Limits'],
  ['pauses', 'Pauses'], ['webhooks', 'Webhooks'], ['usage', 'Usage'], ['audit', 'Audit']]
const scopes = { audit: 'admin' } // that a view wants

const Nowhere = () => html`<p>There is no such view. <a href="#/">To the overview</a></p>`

const plain = (text) => { try { return decodeURIComponent(text) } catch { return text } }

// viewOf returns the view of an address such as #/runs/ID/NODE?x=y, its properties, its title and its room.
function viewOf(hash) {
  const [path, search] = hash.replace(/^#\/?/, '').split('?')
  const [room, id, more] = path.split('/').map(plain)
  const query = Object.fromEntries(new URLSearchParams(search || ''))
  switch (room) {
    case '': return [Overview, {}, 'Overview', '']
    case 'jobs': return id === 'new!'
      ? [NewJob, query, query.like ? `New job like …${short(query.like)}` : 'New job', room]
      : id ? [Job, { id }, `Job …${short(id)}`, room] : [Jobs, { query }, 'Jobs', room]
    case 'schedules': return id === 'new!' ? [EditSchedule, {}, 'New schedule', room]
      : more === 'edit' ? [EditSchedule, { name: id }, `Edit schedule ${id}`, room]
      : id ? [Schedule, { name: id }, `Schedule ${id}`, room] : [Schedules, {}, 'Schedules', room]
    case 'dags': return id ? [Dag, { name: id, node: more }, `DAG ${id}`, room]
      : [Dags, { query }, 'DAGs and runs', room]
    case 'runs': return id ? [Run, { id, node: more }, `Run …${short(id)}`, 'dags'] : [Nowhere, {}, 'Not found', null]
    case 'tasks': return id === 'new!' ? [EditTask, {}, 'New task', room]
      : more === 'edit' ? [EditTask, { name: id }, `Edit task ${id}`, room]
      : id ? [Task, { name: id }, `Task ${id}`, room] : [Tasks, {}, 'Tasks', room]
    case 'dead-letters': return [DeadLetters, {}, 'Dead letters', room]
    case 'operations': return id ? [Operation, { id }, `Operation …${short(id)}`, room]
      : [Operations, {}, 'Operations', room]
    case 'limits': return id ? [Limit, { name: id }, `Limit ${id}`, room] : [Limits, {}, 'Limits', room]
    case 'webhooks': return id === 'new!' ? [EditWebhook, {}, 'New webhook', room]
      : more === 'edit' ? [EditWebhook, { name: id }, `Edit webhook ${id}`, room]
      : id ? [Webhook, { name: id }, `Webhook ${id}`, room] : [Webhooks, {}, 'Webhooks', room]
    case 'usage': return [Usage, { query }, 'Usage', room]
    case 'audit': return [Audit, { query }, 'Audit', room]
    case 'pauses': return [Pauses, {}, 'Pauses', room]
    default: return [Nowhere, {}, 'Not found', null]
  }
}

function Freshness() {
  const shown = useShown()
  useClock()
  const age = shown.at ? Date.now() - shown.at : 0
  const since = length(age).replace('.0', '')
  const [state, text] = shown.ended ? ['off', 'Session ended'] : shown.off ? ['off', 'Refresh is paused']
    : shown.failing ? ['failing', age ? `No answer for ${since}` : 'No answer']
      : ['on', age > 5000 ? `Live, ${since} ago` : 'Live']
  return html`<div class="fresh"><span class="now"><span class=${`pulse ${state}`} aria-hidden="true"></span>
      <span class="small">${text}</span></span>
    <button type="button" class="quiet small" onClick=${() => setLive(shown.off)}>
      ${shown.off ? 'Resume' : 'Pause'} refresh</button></div>`
}

// Who says whose data this is and whose clock: of the user's zone, and of a server that lives in another time.
function Who({ who }) {
  useClock(5000)
  const ahead = skew()
  return html`<p class="small mute who" title=${who.subject}><span>Tenant ${who.tenant}</span> <span>${zone}</span>
    ${ahead !== 0 && html` <span>Server time, ${length(Math.abs(ahead))} ${ahead > 0 ? 'ahead' : 'behind'}</span>`}</p>`
}

function SignInAgain() {
  if (!useShown().ended) return null
  return html`<div class="refused again" role="alert"><p>Your session has ended.</p>
    <button type="button" class="primary" onClick=${leave}>Sign in again</button></div>`
}

function Page({ who }) {
  const [hash, set] = useState(location.hash)
  const [known, setKnown] = useState('')
  titled(setKnown)
  const heading = useRef()
  const first = useRef(true)
  useEffect(() => {
    const moved = () => set(location.hash)
    addEventListener('hashchange', moved)
    return () => removeEventListener('hashchange', moved)
  }, [])
  const [View, props, title, room] = viewOf(hash)
  useEffect(() => {
    if (!first.current) { // where a reader of the screen is told that the view has changed
      heading.current.focus({ preventScroll: true })
      scrollTo(0, 0)
    }
    first.current = false
  }, [title])
  useEffect(() => { document.title = `${known || title} – Punctual` }, [known, title])
  const can = (scope) => who.scopes.includes(`punctual:${scope}`)
  return html`
    <a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); heading.current.focus() }}>To the content</a>
    <header><a class="brand" href="#/"><img src="icon.svg" alt="" width="22" height="22" />Punctual</a>
      <nav aria-label="Views"><ul>${rooms.filter(([path]) => !scopes[path] || can(scopes[path]))
        .map(([path, name]) => html`<li><a href=${`#/${path}`}
        aria-current=${room === path ? 'page' : undefined}>${name}</a></li>`)}</ul></nav>
      <div class="foot"><${Freshness} />
        <${Who} who=${who} />
        ${signsIn() && html`<button type="button" class="quiet small"
          onClick=${() => { setLive(false); signOut() }}>Sign out</button>`}</div>
    </header>
    <main id="main"><h1 tabindex="-1" ref=${heading}>${known || title}</h1><${SignInAgain} />
      <${View} key=${`${title} ${props.id}`} can=${can} ...${props} /></main>
    <${Asking} />`
}

const Alone = ({ does, children }) => html`<main class="alone"><h1>Punctual</h1>${children}
  <p><button type="button" class="primary" onClick=${() => location.reload()}>${does}</button></p></main>`

const place = document.getElementById('page')
const left = signedOut()
try {
  if (left) {
    document.title = 'Signed out – Punctual'
    render(html`<${Alone} does="Sign in"><p role="status">You are signed out.</p>${left === 'page' && html`<p>
      The issuer of your token was not told, and may let the next person at this browser in. Sign out there as
      well.</p>`}<//>`, place)
  } else if (await start()) {
    const [who] = await Promise.all([get('/whoami'), ready(AbortSignal.timeout(3_000)).catch(() => {})])
    render(html`<${Page} who=${who} />`, place)
    performance.mark('interactive')
  }
} catch (error) {
  render(html`<${Alone} does="Try again"><${Refused} error=${error} alone /><//>`, place)
}

// Webhooks: addresses that events are sent to, and how their deliveries go.
import { html, useMemo } from '../core/html.js'
import { call, get, post, put, remove, seg, some } from '../core/api.js'
import { useLive } from '../core/live.js'
import { Empty, Facts, Id, Loaded, Status, Time, plural } from '../core/form.js'
import { Act, ask, say } from '../core/ask.js'
import { Table } from '../core/table.js'
import { Entry, More, jsonOf, linesOf, made, nameForm, nameOf, pathOf, textOf, useEntry, useFirst,
  whole } from '../core/entry.js'
import { tagsOf, tagsText } from '../core/work.js'
import { JobStatus, causeOf } from './jobs.js'

// Enabled says whether events are sent, and if Punctual has disabled the webhook, why.
const Enabled = ({ of: w }) => html`<${Status} of=${w.enabled ? 'active' : w.disabled ? 'failed' : 'paused'} />
  ${w.disabled && html` <span class="reason">${w.disabled.code}: ${w.disabled.message}</span>`}`

export function Webhooks({ can }) {
  const live = useLive((signal) => some('/webhooks', {}, { signal }), [], 8_000)
  const make = can('admin') && html`<a class="button" href="#/webhooks/new!">New webhook</a>`
  return html`<${Loaded} of=${live}>${live.data && (live.data.items.length === 0
    ? html`<${Empty} title="There are no webhooks.">One sends events, such as job.dead, to an address of yours.
        ${' '}${make}<//>`
    : html`<div class="row"><span class="mute">${plural(live.data.items.length, 'webhook')}</span>
        <span class="push"></span>${make}</div>
      <${Table} caption="Webhooks" rows=${live.data.items} id=${(w) => w.name} columns=${[
        { name: 'Webhook', cell: (w) => html`<a href=${`#/webhooks/${w.name}`}>${w.name}</a>` },
        { name: 'State', cell: (w) => html`<${Enabled} of=${w} />` },
        { name: 'Events', cell: (w) => w.events.join(', ') },
        { name: 'Address', class: 'wide', cell: (w) => html`<span class="name">${w.url}</span>` }]} />`)}<//>`
}

export function Webhook({ name, can }) {
  const path = pathOf('webhooks', name)
  const live = useLive(async (signal) => {
    const [webhook, deliveries] = await Promise.all([get(path, {}, signal),
      some(`${path}/deliveries`, {}, { most: 100, signal })])
    return { webhook, deliveries }
  }, [name])
  const { webhook: w, deliveries } = live.data || {}
  const redeliver = (j) => ask({ title: 'Deliver the event once more', verb: 'Deliver it', touches: '1 new delivery',
    done_text: 'It is delivered once more.', text: 'To the address and with the headers that the webhook has now.',
    act: async () => { await post(`${path}/deliveries/${seg(j.job_id)}/redeliver`); await live.again() } })
  return html`<${Loaded} of=${live}>${w && html`
    <div class="row"><${Enabled} of=${w} /><span class="push"></span>
      ${can('write') && html`<${Act} label="Send a test" on=${() => ask({ title: `Send a test to ${w.name}`,
        verb: 'Send the event', touches: '1 new delivery', done_text: 'A test event is on its way.',
        text: `An event of the type punctual.webhook.test is sent to ${w.url}, with the headers of the webhook.`,
        act: async () => { await post(`${path}/test`); await live.again() } })} />`}
      ${can('admin') && html`<a class="button" href=${`#/webhooks/${w.name}/edit`}>Edit</a>
        <${Act} danger label="Delete" on=${() => ask({ title: `Delete ${w.name}`, verb: 'Delete the webhook',
          danger: true, touches: '1 webhook', text: 'Deliveries that are open are still tried.',
          done_text: 'The webhook is deleted.',
          act: async () => { await remove(path); location.hash = '#/webhooks' } })} />`}</div>
    <${Facts} of=${[['Address', w.url], ['Events', w.events.join(', ')], ['Only of the task', w.filter?.task],
      ['Only of the schedule', w.filter?.schedule], ['Only of the DAG', w.filter?.dag],
      ['Only with the tags', w.filter?.tags && tagsText(w.filter.tags)], ['Signed with', w.sign_with],
      ['Headers', w.headers && Object.keys(w.headers).join(', ')],
      ['Nothing but failures since', w.failing_since && html`<${Time} at=${w.failing_since} />`],
      ['Changed', html`<${Time} at=${w.updated_at} />`]]} />
    <h2>Deliveries</h2>${deliveries.items.length === 0
      ? html`<${Empty} title="Nothing has been sent yet." />`
      : html`<${Table} caption="Deliveries" rows=${deliveries.items} id=${(j) => j.job_id} columns=${[
        { name: 'Job', cell: (j) => html`<${Id} of=${j.job_id} to="jobs" />
          <div class="thin small"><${Time} at=${j.created_at} /></div>` },
        { name: 'Status', cell: (j) => html`<${JobStatus} of=${j} />
          <div class="thin mute small reason">${causeOf(j)}</div>` },
        { name: 'Made', class: 'wide', cell: (j) => html`<${Time} at=${j.created_at} />` },
        { name: 'Attempt', class: 'wide number', cell: (j) => j.attempt },
        { name: 'Reason', class: 'wide', cell: causeOf },
        ...(can('write') ? [{ name: 'Action', cell: (j) => html`<${Act} label="Redeliver"
          aria-label=${`Redeliver ${j.job_id}`} on=${() => redeliver(j)} />` }] : [])]} />`}
    ${deliveries.more && html`<p class="mute small">The newest ${deliveries.items.length} are shown.</p>`}`}<//>`
}

const filters = ['task', 'schedule', 'dag']

const at = () => ({ name: '/name', url: '/url', events: '/events', enabled: '/enabled', sign_with: '/sign_with',
  headers: '/headers', ...Object.fromEntries([...filters, 'tags'].map((n) => [n, `/filter/${n}`])) })

const valuesOf = (w) => ({ name: w?.name ?? '', url: w?.url ?? '', events: (w?.events || ['job.dead']).join('\n'),
  enabled: w?.enabled === false ? 'no' : 'yes', sign_with: w?.sign_with ?? '', headers: textOf(w?.headers),
  ...Object.fromEntries(filters.map((n) => [n, w?.filter?.[n] ?? ''])), tags: tagsText(w?.filter?.tags) })

const readOnly = ['name', 'version', 'created_at', 'updated_at', 'disabled', 'failing_since']

// bodyOf returns the webhook that the form means. What the form does not show stays as `was`, its view.
export const bodyOf = (v, was = {}) => made((refuse) => {
  nameOf(v.name, refuse)
  const kept = Object.fromEntries(Object.entries(was).filter(([n]) => !readOnly.includes(n)))
  return whole({ ...kept, url: v.url.trim(), events: linesOf(v.events), enabled: v.enabled === 'yes',
    sign_with: v.sign_with.trim(), headers: jsonOf(v.headers, '/headers', refuse),
    filter: whole({ ...kept.filter, ...Object.fromEntries(filters.map((n) => [n, v[n].trim()])),
      tags: tagsOf(v.tags, '/filter/tags', refuse) }) })
})

export function EditWebhook({ name }) {
  const first = useFirst(async (signal) => ({ w: name ? await get(pathOf('webhooks', name), {}, signal) : undefined }),
    [name])
  return html`<${Loaded} of=${first}>${first.data && html`<${Form} ...${first.data} />`}<//>`
}

function Form({ w }) {
  const f = useEntry(useMemo(() => valuesOf(w), []), at)
  const act = async (v) => {
    const body = bodyOf(v, w)
    const path = pathOf('webhooks', v.name)
    const save = async (version) => {
      await (version ? call('PUT', path, { body, match: version }) : put(path, body))
      say(`The webhook ${v.name} is set.`)
      location.hash = `#/webhooks/${v.name}`
    }
    if (w) return save(w.version) // a change that was made meanwhile refuses this one
    const old = await get(path).catch((e) => (e.status === 404 ? null : Promise.reject(e)))
    return old ? ask({ title: `Replace ${v.name}`, verb: 'Replace it', danger: true, act: () => save(old.version),
      touches: '1 webhook', text: `There is a webhook of that name, to ${old.url}.` }) : save()
  }
  return html`<${Entry} of=${f} act=${act} verb="Set the webhook" back=${w ? `#/webhooks/${w.name}` : '#/webhooks'}>
    <div class="card"><h2>Where to</h2>
      ${f.field('name', 'Name', { ...nameForm, required: true, readonly: Boolean(w) })}
      ${f.field('url', 'Address', { required: true, placeholder: 'https://ops.example.com/punctual' })}
      ${f.field('enabled', 'Events are', { options: [['yes', 'sent'], ['no', 'not sent']] })}
      <${More} label="Signature and headers" open=${f.bad(['sign_with', 'headers'])}>
        ${f.field('sign_with', 'Signed with', { hint: 'ARN of the secret that signs each request.' })}
        ${f.field('headers', 'Headers, in JSON', { json: true, rows: 3 })}<//></div>
    <div class="card"><h2>What</h2>
      ${f.field('events', 'Events', { area: true, hint: 'One a line, such as job.dead or job.*' })}
      <h3>Only of</h3><div class="fields">${f.field('task', 'Task')}${f.field('schedule', 'Schedule')}
        ${f.field('dag', 'DAG')}</div>
      ${f.field('tags', 'Tags', { area: true, rows: 2, hint: 'NAME=VALUE, one a line, at most 3.' })}</div><//>`
}

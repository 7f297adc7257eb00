package console_test

import "testing"

func TestViews_DeriveWhatTheyShow(t *testing.T) {
	t.Parallel()
	p := chromium(t).open(t, serve(t).url+"/#/pauses")
	p.settled()
	for name, c := range map[string]struct{ module, expression, want string }{
		"a cause is the task, the code and the message without ids and numbers": {"core/cause.js", `m.groupsOf([
			{ task: 'a', status_reason: { code: 'x', message: 'row 17 of 01M8J2NZKCZJTSEW2Y91X5V3MD is bad' } },
			{ task: 'a', status_reason: { code: 'x', message: 'row 3 of 01M8J3TBVJB7RPKAGDKRJD7E6M is bad' } },
			{ task: 'b', status_reason: { code: 'x', message: 'row 3 of 01M8J3TBVJB7RPKAGDKRJD7E6M is bad' } },
			]).map((g) => [g.task, g.letters.length])`, `[["a",2],["b",1]]`},
		"statuses of HTTP are different causes": {"core/cause.js", `m.groupsOf([502, 404, 502].map((n) => (
			{ task: 'http', status_reason: { code: 'http_status', message: 'the target answered ' + n } })))
			.map((g) => g.letters.length)`, `[2,1]`},
		"a dead letter without a reason is told by its last attempt": {"core/cause.js", `m.groupsOf([{ task: 'a',
			attempts: [{ error: { code: 'first' } }, { error: { code: 'last' } }] }]).map((g) => g.code)`, `["last"]`},
		"days are the user's, newest first, and a day runs forward": {"views/schedule.js", `m.daysOf([
			'2026-11-29T00:30:00.000Z', '2026-11-28T23:30:00.000Z', '2026-11-28T22:30:00.000Z'].map((nominal_at) =>
			({ nominal_at }))).map((d) => [d.name, d.all.map((o) => o.nominal_at.slice(11, 16))])`,
			`[["Sun, Nov 29",["23:30","00:30"]],["Sat, Nov 28",["22:30"]]]`},
		"what comes after a node is all of it, once": {"views/run.js", `m.belowOf({ a: { depends_on: [] },
			b: { depends_on: ['a'] }, c: { depends_on: ['a'] }, d: { depends_on: ['b', 'c'] }, e: { depends_on: [] } },
			'a').sort()`, `["b","c","d"]`},
		"a node stands right of its deepest parent": {"core/graph.js", `(() => { const { at } = m.layoutOf({ a: {},
			b: { depends_on: ['a'] }, c: { depends_on: ['a', 'b'] } })
			return at.a.x < at.b.x && at.b.x < at.c.x })()`, `true`},
		"nodes may be named as what every object has": {"core/graph.js", `(() => { const nodes = JSON.parse(
			'{"constructor":{},"__proto__":{"depends_on":["constructor"]},"toString":{"depends_on":["__proto__"]},' +
			'"valueOf":{"depends_on":["hasOwnProperty"]}}')
			const { at } = m.layoutOf(nodes)
			return [at.constructor.x < at['__proto__'].x && at['__proto__'].x < at.toString.x, at.valueOf.x ===
				at.constructor.x, Object.keys(at).length] })()`, `[true,true,4]`},
		"a status named as what every object has looks like any other": {"core/form.js", `m.look('constructor')`,
			`["idle","·"]`},
		"no two of 500 nodes overlap": {"core/graph.js", `(() => { const nodes = {}
			for (let i = 0; i < 500; i++) nodes['n' + i] = { depends_on: i < 20 ? [] : ['n' + (i * 7) % 20] }
			const places = Object.values(m.layoutOf(nodes).at)
			return new Set(places.map((p) => p.x + ' ' + p.y)).size })()`, `500`},
		"a cycle does not hang the picture": {"core/graph.js", `Object.keys(m.layoutOf({ a: { depends_on: ['b'] },
			b: { depends_on: ['a'] } }).at).length`, `2`},
		"a redrive is of ten first, slowly where a rate is given": {"views/bulk.js",
			`[{ first: '10', share: '90', rate: '', reason: '' },
			{ first: '3', share: '50', rate: '20', reason: 'mended' }].map((v) =>
				m.bodyOf('redrive', { group: 'a1' }, v))`,
			`[{"action":"redrive","filter":{"group":"a1"},` +
				`"canary":{"count":10,"min_succeeded":0.9,"within":"10m"}},` +
				`{"action":"redrive","filter":{"group":"a1"},"reason":"mended",` +
				`"canary":{"count":3,"min_succeeded":0.5,"within":"10m"},"rate":{"count":20,"per":"1s"}}]`},
		"an action on all needs to say so, and sets what was typed": {"views/bulk.js", `[
			m.bodyOf('cancel', {}, { rate: '', reason: 'no' }), m.bodyOf('reschedule', { status: 'SCHEDULED' },
			{ delay: '', run_at: '2026-11-28T20:00', spread: '10m' }), m.bodyOf('run_now', { task: 'a' },
			{ first: '0', share: '90', rate: '', spread: '', reason: '' })]`,
			`[{"action":"cancel","all":true,"reason":"no"},` +
				`{"action":"reschedule","filter":{"status":"SCHEDULED"},"set":{"run_at":"2026-11-28T19:00:00.000Z"},` +
				`"spread":"10m"},{"action":"run_now","filter":{"task":"a"}}]`},
		"a filter is said in words": {"views/bulk.js", `[m.wordsOf('jobs', {}), m.wordsOf('runs', { status: 'FAILED',
			created_after: 'x', tags: { team: 'ops' } })]`, `["All jobs: no filter is set.",` +
			`"All runs of status FAILED, created after x, tag team=ops."]`},
		"days of use are those of UTC": {"views/usage.js", `['1', '7', 'month'].map((r) =>
			m.startOf(r, Date.parse('2026-11-28T20:30:00Z')))`,
			`["2026-11-28T00:00:00.000Z","2026-11-22T00:00:00.000Z","2026-11-01T00:00:00.000Z"]`},
		"dollars have the digits that their sum needs": {"views/usage.js", `[m.moneyOf(0.0000123, 0.5),
			m.moneyOf(1234.567, 2000), m.bytesOf(0), m.bytesOf(900), m.bytesOf(1536), m.bytesOf(20 * 1024 ** 2)]`,
			`["$0.000012","$1,234.57","0 B","900 B","1.5 KiB","20 MiB"]`},
		"an operation says how far it is, and what waits for its first ones": {"views/operations.js", `[
			{ action: 'cancel_runs', status: 'COUNTING', matched: 1, done: 0, skipped: 0, failed: 0 },
			{ action: 'redrive', status: 'CANARY', matched: 1200, done: 10, skipped: 0, failed: 0,
				canary: { succeeded: 4, failed: 1, open: 5 } },
			{ action: 'redrive', status: 'RUNNING', matched: 1200, done: 1000, skipped: 3, failed: 1,
				canary: { succeeded: 10, failed: 0, open: 0 } },
			{ action: 'backfill', status: 'RUNNING', matched: 9, done: 1, skipped: 2, failed: 0, open: 3 }]
			.map((o) => (m.stateOf(o) + ' ' + m.canaryOf(o)).trim())`,
			`["It counts what matches: 1 run so far.",` +
				`"10 of 1,200 jobs. Of the first ones: 4 succeeded, 1 failed, 5 open. The others wait for them.",` +
				`"1,004 of 1,200 jobs, 3 left out, 1 refused. Of the first ones: 10 succeeded.",` +
				`"3 of 9 times, 2 left out, 3 open."]`},
		"a day says its worst hours": {"views/day.js", `m.pastOf({ created: [1, 1200], succeeded: [1, 3],
			dead: [0, 1000], expired: [0, 0], skipped: [0, 2], lateness_p99_ms: [null, 1500] }, (i) => i + ' h')`,
			`["1,201 jobs made, 4 succeeded, 1,000 failed for good, 2 skipped.",` +
				`"Most were made from 1 h, with 1,200.",` +
				`"Starts were latest from 1 h, when 99% were at most 1.5 s late."]`},
		"a pool sums up its workers": {"views/day.js", `m.poolsOf([
			{ pool: 'short', slots: 25, busy: 3, draining: true }, { pool: 'long', slots: 5, busy: 5 },
			{ pool: 'short', slots: 25, busy: 4 }])`,
			`[{"pool":"short","workers":2,"slots":50,"busy":7,"draining":1},` +
				`{"pool":"long","workers":1,"slots":5,"busy":5,"draining":0}]`},
		"a job in a list says its error or what holds it": {"views/jobs.js", `[
			{ status: 'DEAD', status_reason: { code: 'boom', message: 'it broke' } },
			{ status: 'SCHEDULED', waiting_for: 'pause', status_reason: { code: 'boom' } },
			{ status: 'SCHEDULED', waiting_for: 'pause', paused: { reason: 'wait for Ann' } },
			{ status: 'SCHEDULED', waiting_for: 'limit', limit: { name: 'api', key: 'x', ahead: 1200 } },
			{ status: 'SCHEDULED', waiting_for: 'retry', attempt: 2, max_attempts: 3 },
			{ status: 'SUCCEEDED' }].map(m.causeOf)`, `["boom: it broke","scheduled, held by a pause","wait for Ann",` +
			`"limit api/x is full, 1,200 ahead","waits for attempt 2 of 3",""]`},
		"an edit is what differs, and writes no null": {"core/entry.js", `(() => { const no = []
			const patch = m.mergePatch({ a: 1, b: { c: 2, d: null, e: 3 }, f: [1], g: 0 },
				{ a: 1, b: { c: null, d: null, 'x/y': { z: null } }, f: [1, 2] }, (at) => no.push(at))
			return [patch, no, m.mergePatch({ a: [1] }, { a: [1] })] })()`,
			`[{"b":{"c":null,"e":null,"x/y":{"z":null}},"f":[1,2],"g":null},["/b/c","/b/x~1y/z"],null]`},
		"a refusal is at the field that its pointer leads to most closely": {"core/entry.js", `['/retry/factor',
			'/payload/a/b', '/payloads', '/limits/0/name'].map((p) => m.fieldOf(p, { all: '/retry', f: '/retry/factor',
			payload: '/payload', limits: '/limits' }) ?? '')`, `["f","payload","","limits"]`},
		"tags are read as they are written": {"core/work.js", `[{ a: 'b=c', d: '' }, { 'a=b': 'c' }, { '{x': 'y' },
			{ a: ' b ' }, JSON.parse('{"__proto__":"x"}')].map((tags) => JSON.stringify(
			m.tagsOf(m.tagsText(tags), '', (at, why) => { throw new Error(why) })) === JSON.stringify(tags))`, `[true,true,true,true,true]`},
		"a job is called by its task and the end of its id": {"core/form.js",
			`m.jobTitle({ task: 'echo', job_id: '01M8J2NZKCZJTSEW2Y91X5V3MD' })`, `"echo …91X5V3MD"`},
		"a run is called by its dag and when it began": {"core/form.js",
			`m.runTitle({ dag: 'etl', due_at: '2026-11-27T06:00:00.000Z', started_at: '2026-11-28T20:00:00.000Z' })`,
			`"etl, Sat, Nov 28, 21:00"`},
		"lengths have two units at most": {"core/form.js", `[0, 999, 1500, 12345, 61000, 3600000, 93784000]
			.map(m.length)`,
			`["0 ms","999 ms","1.5 s","12 s","1 min 1 s","1 h","1 d 2 h"]`},
		"a running job's life goes on": {"views/job.js", `m.lifeOf({ status: 'RUNNING', attempt: 2, due_at:
			'2026-11-28T20:00:05.000Z', created_at: '2026-11-28T20:00:00.000Z', started_at: '2026-11-28T20:00:05.010Z',
			start_lateness_ms: 10 }, [{ attempt: 1, started_at: '2026-11-28T20:00:01.007Z', start_lateness_ms: 7,
			finished_at: '2026-11-28T20:00:02.000Z', outcome: 'failed' }]).map((e) =>
			e.what + (e.gap ? ' ' + e.gap : ''))`,
			`["Accepted","Due 1000","Attempt 1 claimed and started 7","Attempt 1 failed 993",` +
				`"Attempt 2 claimed and started 3010","Running"]`},
		"a worker that was lost is told of": {"views/job.js", `m.lifeOf({ status: 'QUEUED', waiting_for: 'worker',
			due_at: '2026-11-28T20:00:00.000Z', created_at: '2026-11-28T20:00:00.000Z' }, [{ attempt: 1,
			outcome: 'lost', started_at: '2026-11-28T20:00:00.000Z', start_lateness_ms: 0 }]).map((e) => e.what)`,
			`["Accepted","Due","Attempt 1 claimed and started","Attempt 1 lost","Waits for a free worker"]`},
	} {
		got := p.eval("import(location.origin + '/" + c.module + "').then((m) => JSON.stringify(" + c.expression + "))")
		if got != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

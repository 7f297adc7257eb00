package access

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"punctual/functions/engine"
	"punctual/functions/engine/runs"
	"punctual/functions/stagetest"
	"punctual/integration/story"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/process"
	"punctual/shared/run"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// controller is what the function of writes does with runs.
func (w *bench) controller() *engine.Runs {
	p := w.did.ports(w.World, "api-write")
	return engine.New(engine.Deps{
		Store: store.New(p.Table, p.Blobs), Queue: p.Queues, Base: process.Base{Shards: 1, Announced: true},
	}).Runs
}

// everyKind is a graph with payloads in the row, in an item and in the bucket, a join that is counted, items,
// limits, and a node that fails.
func everyKind(priority string) dag.Definition {
	d := dag.Definition{Nodes: map[string]dag.Node{}, MaxConcurrency: 3, Priority: job.Priority(priority)}
	var roots []string
	for n, size := range []int{2_000, 100_000} {
		name := "big" + string(rune('a'+n))
		text, _ := json.Marshal(payload(size))
		d.Nodes[name] = dag.Node{Task: "echo", Payload: text}
		roots = append(roots, name)
	}
	for _, name := range []string{"x", "y", "z"} {
		d.Nodes[name] = dag.Node{Task: "echo", Payload: json.RawMessage(`[1,2,3,4,5]`)}
		roots = append(roots, name)
	}
	d.Nodes["part"] = dag.Node{
		Task: "echo", DependsOn: []string{"x"}, ForEach: "${nodes.x.result}", MaxParallel: 2,
		Payload: json.RawMessage(`"${item}"`),
	}
	d.Nodes["join"] = dag.Node{
		Task: "echo", DependsOn: roots, RunIf: dag.AllDone,
		Payload: json.RawMessage(`{"a":"${nodes.bigb.result}","b":"${nodes.bigb.result}","c":"${nodes.bigb.result}"}`),
	}
	d.Nodes["fails"] = dag.Node{Task: "fails", DependsOn: []string{"y"}}
	d.Nodes["below"] = dag.Node{Task: "echo", DependsOn: []string{"fails"}}
	d.Nodes["long"] = dag.Node{Task: "echo", Pool: "long", DependsOn: []string{"y"}}
	return d
}

// ofRuns are what happens to runs: each of them is a story that all parts take part in.
func ofRuns(t *testing.T, w *bench) {
	ctx := t.Context()
	a := w.api
	a.Want(201, "PUT", "/tasks/fails", story.Object{"executor": "http", "retry": story.Object{"max_attempts": 1}})
	r := w.controller()
	by := runs.By{Who: "alice"}
	create := func(name string, d dag.Definition, change ...func(*runs.Request)) run.Key {
		t.Helper()
		if _, err := dag.Compile(d); err != nil {
			t.Fatal(err)
		}
		n := runs.Request{Key: run.Key{Tenant: tenant.Local, ID: job.DeterministicID(time.Now(), name)},
			Definition: d, By: by}
		for _, c := range change {
			c(&n)
		}
		if _, _, err := r.Create(ctx, n); err != nil {
			t.Error(err)
		}
		return n.Key
	}
	must := func(_ run.Run, err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	long := json.RawMessage(`{"long":"` + strings.Repeat("x", 2*run.MaxInlineParams) + `"}`)
	for _, priority := range contract.Priorities {
		k := create(priority, everyKind(priority), func(n *runs.Request) { n.Params = long })
		time.Sleep(10 * time.Minute)
		_, _, rows, err := r.Nodes(ctx, k)
		if err != nil || rows["fails"].Status != job.Dead || rows["join"].Status != job.Succeeded {
			t.Errorf("fails is %s, and join %s: %v", rows["fails"].Status, rows["join"].Status, err)
		}
		switch priority {
		case "critical":
			must(r.Retry(ctx, k, "", by))
		case "high":
			must(r.Skip(ctx, k, "fails", false, by))
		case "normal":
			must(r.Complete(ctx, k, "fails", json.RawMessage(`{"by":"hand"}`), by))
		case "low":
			a.Call("POST", "/jobs/"+string(rows["fails"].ID)+"/redrive", nil)
		}
		time.Sleep(10 * time.Minute)
	}
	if _, err := w.World.Queues().StartMoveTask(ctx, contract.DeadLetters, ""); err != nil {
		t.Error(err)
	}
	// Later than now, paused, resumed, cancelled, expired.
	later := func(n *runs.Request) { n.DueAt = time.Now().Add(time.Minute) }
	k := create("paused", everyKind("normal"), later)
	must(r.Pause(ctx, k, by))
	time.Sleep(10 * time.Minute)
	must(r.Resume(ctx, k, by))
	time.Sleep(time.Minute)
	must(r.Cancel(ctx, create("cancelled", everyKind("normal"), later), by))
	expiring := everyKind("normal")
	expiring.ExpireAfter = time.Minute
	create("expiring", expiring, func(n *runs.Request) { n.DueAt = time.Now().Add(20 * time.Minute) })
	time.Sleep(30 * time.Minute)
	// What an operator may do to what waits.
	k = create("by hand", everyKind("normal"), func(n *runs.Request) { n.DueAt = time.Now().Add(time.Hour) })
	must(r.Complete(ctx, k, "x", json.RawMessage(`[1]`), by))
	must(r.Skip(ctx, k, "fails", true, by))
	time.Sleep(2 * time.Hour)
	// The process that propagates dies: the sweeper does all of it.
	for _, what := range []string{run.WriteCreate, job.WriteAccept, job.WriteNotify, run.WriteEnd} {
		w.Fail(stagetest.Named(what))
		_, _, _ = r.Create(ctx, runs.Request{
			Key:        run.Key{Tenant: tenant.Local, ID: job.DeterministicID(time.Now(), what)},
			Definition: everyKind("normal"), By: by,
		})
		time.Sleep(5 * time.Minute)
		w.World.SetFaults(nil)
		time.Sleep(30 * time.Minute)
	}
}

// ofDags is every call of REST about dags and runs.
func ofDags(_ *testing.T, w *bench) {
	a := w.api
	chain := object{"nodes": object{
		"a":    object{"task": "echo", "payload": payload(2_000)},
		"b":    object{"task": "echo", "depends_on": []string{"a"}, "payload": "${nodes.a.result}"},
		"each": object{"task": "echo", "depends_on": []string{"a"}, "for_each": "${[1, 2]}", "payload": "${item}"},
	}, "params": object{"n": 1}}
	a.Want(200, "POST", "/dags/validate", chain)
	a.Want(201, "PUT", "/dags/chain", chain)
	chain["priority"] = "high"
	a.Want(200, "PUT", "/dags/chain", chain)
	var runs []string
	for _, body := range []object{
		{"version": 1, "tags": object{"team": "a"}}, {"delay": "1h"}, {"params": object{"n": 2}},
	} {
		runs = append(runs, a.Want(202, "POST", "/dags/chain/runs", body)["run_id"].(string))
	}
	inline := object{"dag": chain, "params": object{"n": strings.Repeat("x", 2*run.MaxInlineParams)}}
	a.Want(202, "POST", "/runs", inline, "Idempotency-Key", "k")
	a.Want(202, "POST", "/runs", inline, "Idempotency-Key", "k")
	a.Want(200, "POST", "/runs/"+runs[1]+"/pause", object{"reason": "look"})
	a.Want(200, "POST", "/runs/"+runs[1]+"/resume", nil)
	a.Want(200, "POST", "/runs/"+runs[1]+"/nodes/a/complete", object{"result": 3})
	a.Want(200, "POST", "/runs/"+runs[1]+"/nodes/b/skip", object{"children": "skip"})
	time.Sleep(10 * time.Minute)
	a.Want(200, "POST", "/runs/"+runs[0]+"/retry", object{"from": "b"})
	a.Want(409, "POST", "/runs/"+runs[2]+"/nodes/a/retry", nil)
	a.Want(200, "POST", "/runs/"+runs[1]+"/cancel", nil)
	time.Sleep(10 * time.Minute)
	for _, path := range []string{"/dags", "/dags/chain", "/dags/chain?version=1", "/dags/chain/versions", "/runs",
		"/runs?dag=chain&status=SUCCEEDED", "/runs/" + runs[0] + "?wait=1s", "/runs/" + runs[0] + "/nodes/a",
		"/runs/" + runs[0] + "/nodes/each", "/runs/" + runs[0] + "/events", "/runs/" + runs[0] + "/graph?format=json"} {
		a.Want(200, "GET", path, nil)
	}
	for _, id := range runs {
		a.Want(204, "DELETE", "/runs/"+id, nil)
	}
	a.Want(204, "DELETE", "/dags/chain", nil)
}

// ofScheduledRuns is what happens to schedules of dags: their runs begin by every way, wait in line, and are used
// up.
func ofScheduledRuns(t *testing.T, w *bench) {
	a := w.api
	a.Want(201, "PUT", "/tasks/fails", object{"executor": "http", "retry": object{"max_attempts": 1}})
	definition := func(text string) object {
		return object{"nodes": object{
			"a": object{"task": "echo", "payload": object{"sleep": "7m"}},
			"b": object{"task": "echo", "depends_on": []string{"a"}},
		}, "params": object{"n": text}}
	}
	a.Want(201, "PUT", "/dags/chain", definition("1"))
	a.Want(200, "PUT", "/dags/chain", definition("2"))
	a.Want(201, "PUT", "/dags/fails",
		object{"nodes": object{"a": object{"task": "fails", "payload": object{"url": "https://example.com"}}}})
	for i, overlap := range []string{"allow", "skip", "buffer_one", "buffer_all", "cancel_running"} {
		name := "d-" + overlap
		of := object{"name": "chain", "params": object{"n": strings.Repeat("x", []int{10, 2_000, 200_000}[i%3])}}
		if i%2 == 0 {
			of["version"] = 1
		}
		a.Want(201, "PUT", "/schedules/"+name,
			object{"calendar": object{"every": "5m", "max_runs": 20}, "overlap": overlap, "dag": of})
		time.Sleep(20 * time.Minute)
		a.Want(200, "PATCH", "/schedules/"+name, object{"calendar": object{"every": "6m", "max_runs": 20}})
		a.Want(202, "POST", "/schedules/"+name+"/run-now", nil)
		a.Want(200, "POST", "/schedules/"+name+"/pause", object{"reason": "to see"})
		time.Sleep(20 * time.Minute)
		a.Want(200, "POST", "/schedules/"+name+"/resume", object{"missed": "all"})
		time.Sleep(10 * time.Minute)
		for _, path := range []string{"/schedules/" + name, "/schedules/" + name + "/occurrences",
			"/runs?schedule=" + name} {
			a.Want(200, "GET", path, nil)
		}
		a.Want(409, "DELETE", "/dags/chain", nil)
		// Dispatch hears of nothing: the sweeper begins what is due.
		w.Fail(stagetest.To(memory.QueueSend, contract.DispatchQueue))
		time.Sleep(20 * time.Minute)
		w.World.SetFaults(nil)
		a.Want(204, "DELETE", "/schedules/"+name, nil)
		time.Sleep(time.Hour)
	}
	a.Want(201, "PUT", "/schedules/failing",
		object{"calendar": object{"every": "1m"}, "pause_after_failures": 3, "dag": object{"name": "fails"}})
	time.Sleep(30 * time.Minute)
	// A cancel of a run of which nothing is under way begins the run queued next.
	a.Want(201, "PUT", "/pauses/task:echo", object{"reason": "to see"})
	a.Want(201, "PUT", "/schedules/line",
		object{"calendar": object{"every": "1m", "max_runs": 20}, "overlap": "buffer_all",
			"dag": object{"name": "chain"}})
	time.Sleep(5 * time.Minute)
	for _, o := range a.Want(200, "GET", "/schedules/line/occurrences?outcome=ran", nil)["items"].([]any) {
		a.Want(200, "POST", "/runs/"+o.(object)["run_id"].(string)+"/cancel", nil)
	}
	a.Want(204, "DELETE", "/schedules/line", nil)
	a.Want(204, "DELETE", "/pauses/task:echo", nil)
	// The end of a run is propagated by the process that reads it next.
	w.Fail(stagetest.Named(job.WriteCloseRun))
	a.Want(202, "POST", "/schedules/failing/run-now", nil)
	time.Sleep(5 * time.Minute)
	w.World.SetFaults(nil)
	time.Sleep(30 * time.Minute)
}

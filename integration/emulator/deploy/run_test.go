package deploy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"punctual/integration/story"
)

func TestRuns_EndOnTheDeployment(t *testing.T) {
	d := setup(t)
	d.explain(t, "api-write", "api-read", "stream", "status", "dispatch", "sweeper", "promoter", "redrive")
	d.work(t, "short")
	a := d.api(t, "acme", everything...)
	node := func(payload any, parents ...string) story.Object {
		n := story.Object{"task": "echo", "retry": story.Object{"max_attempts": 1}}
		if payload != nil {
			n["payload"] = payload
		}
		if len(parents) > 0 {
			n["depends_on"] = parents
		}
		return n
	}
	fails := story.Object{"fail": 9}
	dag := story.Object{"nodes": story.Object{
		"a": node(story.Object{"n": "${params.n}"}), "b": node(fails), "c": node(story.Object{"n": 3}),
		"join": node(story.Object{"of": "${nodes.a.result.n}", "forced": "${nodes.b.forced}"}, "a", "b", "c"),
		"last": node(nil, "join"),
	}, "params": story.Object{"n": 1}}
	a.Want(http.StatusCreated, "PUT", "/dags/etl", dag)
	if v := a.Want(http.StatusOK, "PUT", "/dags/etl", dag); v["version"] != 1.0 {
		t.Errorf("the same definition again is version %v", v["version"])
	}
	run := func(t *testing.T) (*story.API, string) {
		a := a.In(t)
		v := a.Want(http.StatusAccepted, "POST", "/dags/etl/runs", story.Object{"params": story.Object{"n": 7}})
		id, _ := v["run_id"].(string)
		return a, id
	}
	t.Run("a node that fails cancels what is below it, and a retry runs only that again", func(t *testing.T) {
		a, id := run(t)
		awaitRun(a, id, "FAILED", "a=SUCCEEDED b=DEAD c=SUCCEEDED join=CANCELLED last=CANCELLED")
		a.Want(http.StatusOK, "POST", "/runs/"+id+"/retry", story.Object{"reason": "once more"})
		v := awaitRun(a, id, "FAILED", "a=SUCCEEDED b=DEAD c=SUCCEEDED join=CANCELLED last=CANCELLED")
		nodes, _ := v["nodes"].(story.Object)
		for name, want := range map[string]float64{"a": 1, "b": 2, "c": 1} {
			if n, _ := nodes[name].(story.Object); n["generation"] != want {
				t.Errorf("node %s is of generation %v, want %v", name, n["generation"], want)
			}
		}
	})
	//proof:of 38
	t.Run("a skipped node lets the join run, and the join sees it", func(t *testing.T) {
		a, id := run(t)
		awaitRun(a, id, "FAILED", "b=DEAD join=CANCELLED")
		a.Want(http.StatusOK, "POST", "/runs/"+id+"/nodes/b/skip", story.Object{"reason": "known"})
		awaitRun(a, id, "SUCCEEDED", "a=SUCCEEDED b=SKIPPED c=SUCCEEDED join=SUCCEEDED last=SUCCEEDED")
		v := a.Want(http.StatusOK, "GET", "/runs/"+id+"/nodes/join", nil)
		if got := fmt.Sprint(v["payload"]); got != "map[forced:true of:7]" {
			t.Errorf("the join was sent %s", got)
		}
	})
	//proof:of 37
	t.Run("a completed node gives its children a result, and events say who did it", func(t *testing.T) {
		a, id := run(t)
		awaitRun(a, id, "FAILED", "b=DEAD")
		a.Want(http.StatusOK, "POST", "/runs/"+id+"/nodes/b/complete", story.Object{"result": 5, "reason": "by hand"})
		awaitRun(a, id, "SUCCEEDED", "b=SUCCEEDED join=SUCCEEDED last=SUCCEEDED")
		items, _ := a.Want(http.StatusOK, "GET", "/runs/"+id+"/events", nil)["items"].([]any)
		if len(items) != 2 {
			t.Fatalf("the events are %v", items)
		}
		if e, _ := items[1].(story.Object); e["action"] != "complete" || e["node"] != "b" || e["reason"] != "by hand" {
			t.Errorf("the last event is %v", e)
		}
	})
	t.Run("a run is drawn as Mermaid and as SVG", func(t *testing.T) {
		a, id := run(t)
		awaitRun(a, id, "FAILED", "b=DEAD")
		for format, want := range map[string]string{"mermaid": "flowchart TD", "svg": "<svg"} {
			req, err := http.NewRequest(http.MethodGet, a.Base+"/v1/runs/"+id+"/graph?format="+format, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := a.Send(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
				t.Errorf("%s: %d, %v: %.200s", format, resp.StatusCode, err, body)
			}
		}
	})
	t.Run("a cancelled run ends what has not started", func(t *testing.T) {
		a := a.In(t)
		v := a.Want(http.StatusAccepted, "POST", "/runs", story.Object{"dag": story.Object{"nodes": story.Object{
			"long": story.Object{"task": "echo", "payload": story.Object{"sleep": "10m"}, "timeout": "20m"},
			"next": node(nil, "long"),
		}}})
		id, _ := v["run_id"].(string)
		awaitRun(a, id, "RUNNING", "long=RUNNING")
		a.Want(http.StatusOK, "POST", "/runs/"+id+"/cancel", story.Object{"reason": "enough"})
		awaitRun(a, id, "CANCELLED", "long=CANCELLED next=CANCELLED")
	})
	t.Run("another tenant sees neither dags nor runs", func(t *testing.T) {
		_, id := run(t)
		other := d.api(t, "globex", everything...)
		other.Want(http.StatusNotFound, "GET", "/dags/etl", nil)
		other.Want(http.StatusNotFound, "GET", "/runs/"+id, nil)
		other.Want(http.StatusNotFound, "POST", "/runs/"+id+"/cancel", story.Object{"reason": "mine?"})
	})
}

// awaitRun polls until the run and its nodes have come to that: "a=SUCCEEDED b=DEAD".
func awaitRun(a *story.API, id, status, nodes string) story.Object {
	a.T.Helper()
	for over := time.Now().Add(3 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		v := a.Want(http.StatusOK, "GET", "/runs/"+id, nil)
		of, _ := v["nodes"].(story.Object)
		there := v["status"] == status
		for want := range strings.FieldsSeq(nodes) {
			name, s, _ := strings.Cut(want, "=")
			n, _ := of[name].(story.Object)
			there = there && n["status"] == s
		}
		if there {
			return v
		}
		if time.Now().After(over) {
			a.T.Fatalf("run %s is %v, want %s with %s: %v", id, v["status"], status, nodes, of)
		}
	}
}

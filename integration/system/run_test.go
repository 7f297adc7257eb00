package system_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"punctual/functions/engine"
	"punctual/functions/engine/runs"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/process"
	"punctual/shared/run"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
	"punctual/workers/system"
	"punctual/workers/worker"
)

// graphs is the whole product with a task "step", and runs of graphs of it.
type graphs struct {
	*testing.T
	*bench
	rel *engine.Runs
	key run.Key

	mu      sync.Mutex
	started []string // nodes, in order
	fails   map[string]bool
	slow    map[string]time.Duration
	deaf    bool // nodes do not heed their context
}

// step is the payload of a node: its name, and its parents' results.
type step struct {
	Node string          `json:"node"`
	Of   json.RawMessage `json:"of,omitempty"`
}

func ofGraphs(t *testing.T, do func(g *graphs)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &graphs{T: t, fails: map[string]bool{}, slow: map[string]time.Duration{}}
		g.bench = setup(t, func(o *system.Options) {
			o.Worker.Slots = 300
			worker.Register(o.Registry, "step", func(ctx context.Context, j worker.Job[step]) (string, error) {
				g.mu.Lock()
				g.started = append(g.started, j.Payload.Node)
				fails, slow := g.fails[j.Payload.Node], g.slow[j.Payload.Node]
				g.mu.Unlock()
				if g.deaf {
					ctx = context.WithoutCancel(ctx)
				}
				select {
				case <-time.After(slow):
				case <-ctx.Done():
					return "", ctx.Err()
				}
				if fails {
					return "", errors.New("no")
				}
				return "by " + j.Payload.Node, nil
			})
		})
		defer g.stop()
		g.Want(201, "PUT", "/tasks/step", object{"executor": "go", "timeout": "1h", "retry": object{"max_attempts": 1}})
		g.rel = engine.New(engine.Deps{
			Store: g.sys.Store, Queue: g.World.Queues(), Base: process.Base{Shards: 4},
		}).Runs
		g.key = run.Key{Tenant: tenant.Local, ID: job.DeterministicID(time.Now(), t.Name())}
		do(g)
	})
}

// graph makes a definition of "child: parent parent" lines. Each node's payload has its name.
func graph(lines ...string) dag.Definition {
	d := dag.Definition{Nodes: map[string]dag.Node{}}
	for _, l := range lines {
		name, parents, _ := strings.Cut(l, ":")
		d.Nodes[name] = dag.Node{
			Task: "step", DependsOn: strings.Fields(parents), Payload: json.RawMessage(`{"node":"` + name + `"}`),
		}
	}
	return d
}

// create makes the run.
func (g *graphs) create(d dag.Definition) {
	g.Helper()
	if _, err := dag.Compile(d); err != nil {
		g.Fatal(err)
	}
	_, _, err := g.rel.Create(context.Background(), runs.Request{
		Key: g.key, Definition: d, By: runs.By{Who: "test"},
	})
	g.must(err)
}

func (g *graphs) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// is returns the statuses of the run and its nodes: "SUCCEEDED a=SUCCEEDED b=BLOCKED".
func (g *graphs) is() string {
	g.Helper()
	of, names, rows, err := g.rel.Nodes(context.Background(), g.key)
	g.must(err)
	text := string(of.Shown())
	for _, level := range names.Levels() {
		for _, name := range level {
			status := rows[name].Status
			if status == "" {
				status = job.Blocked
			}
			text += " " + name + "=" + string(status)
		}
	}
	return text
}

func (g *graphs) want(what string) {
	g.Helper()
	if is := g.is(); is != what {
		g.Errorf("it is   %s\nwant it %s", is, what)
	}
}

// ran says which nodes have started, in order.
func (g *graphs) ran() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.started, " ")
}

func (g *graphs) set(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
}

// row is the row of a node in its current generation.
func (g *graphs) row(node string) job.Row {
	g.Helper()
	_, _, rows, err := g.rel.Nodes(context.Background(), g.key)
	g.must(err)
	return rows[node]
}

var operator = runs.By{Who: "alice", Reason: "because"}

func TestRun_RunsAGraphThroughTheWholeProduct(t *testing.T) {
	t.Parallel()
	t.Run("a join starts once, after all of its parents, and sees their results", func(t *testing.T) {
		t.Parallel()
		ofGraphs(t, func(g *graphs) {
			d := graph("a", "b", "c: a b", "d: c")
			n := d.Nodes["c"]
			n.Payload = json.RawMessage(`{"node":"c","of":"${nodes.a.result}"}`)
			d.Nodes["c"] = n
			g.slow["b"] = 10 * time.Second
			g.create(d)
			time.Sleep(9 * time.Second)
			g.want("RUNNING a=SUCCEEDED b=SCHEDULED c=BLOCKED d=BLOCKED")
			time.Sleep(3 * time.Second)
			g.want("SUCCEEDED a=SUCCEEDED b=SUCCEEDED c=SUCCEEDED d=SUCCEEDED")
			if ran := g.ran(); ran != "a b c d" && ran != "b a c d" {
				g.Errorf("started: %s", ran)
			}
			if row := g.row("c"); row.Payload != `{"node":"c","of":"by a"}` {
				g.Errorf("c has the payload %s", row.Payload)
			}
			if n := g.Meter.Total(telemetry.RunsEnded); n != 1 {
				g.Errorf("counted %v ends", n)
			}
		})
	})
	t.Run("a failure cancels the nodes below it, and its dead letter names run and node", func(t *testing.T) {
		t.Parallel()
		ofGraphs(t, func(g *graphs) {
			g.fails["a"] = true
			g.create(graph("a", "x", "b: a", "c: x"))
			time.Sleep(5 * time.Second)
			g.want("FAILED a=DEAD x=SUCCEEDED b=CANCELLED c=SUCCEEDED")
			got, err := g.World.Queues().Receive(
				context.Background(), contract.DeadLetters, 10, 5*time.Second, time.Minute)
			g.must(err)
			if len(got) != 1 {
				g.Fatalf("%d dead letters", len(got))
			}
			dead, err := message.Decode[message.DeadLetter](got[0].Body)
			if err != nil || dead.RunID != string(g.key.ID) || dead.Node != "a" {
				g.Errorf("the dead letter names run %q and node %q: %v", dead.RunID, dead.Node, err)
			}
			if row := g.row("a"); row.PendingEffects != job.NoPendingEffects {
				g.Errorf("a has pending effects %q", row.PendingEffects)
			}
		})
	})
	t.Run("a retry runs the failed nodes and those below them", func(t *testing.T) {
		t.Parallel()
		ofGraphs(t, func(g *graphs) {
			g.fails["b"] = true
			g.create(graph("a", "b: a", "c: b"))
			time.Sleep(5 * time.Second)
			g.want("FAILED a=SUCCEEDED b=DEAD c=CANCELLED")
			g.set(func() { g.fails["b"] = false })
			_, err := g.rel.Retry(context.Background(), g.key, "", operator)
			g.must(err)
			time.Sleep(5 * time.Second)
			g.want("SUCCEEDED a=SUCCEEDED b=SUCCEEDED c=SUCCEEDED")
			if ran := g.ran(); ran != "a b b c" {
				g.Errorf("started: %s", ran)
			}
		})
	})
	t.Run("a redrive of a dead node retries it as a new job", func(t *testing.T) {
		t.Parallel()
		ofGraphs(t, func(g *graphs) {
			g.fails["a"] = true
			g.create(graph("a", "b: a"))
			time.Sleep(5 * time.Second)
			dead := g.row("a")
			g.set(func() { g.fails["a"] = false })
			g.Want(202, "POST", "/jobs/"+string(dead.ID)+"/redrive", nil)
			time.Sleep(5 * time.Second)
			g.want("SUCCEEDED a=SUCCEEDED b=SUCCEEDED")
			old, err := g.sys.Store.Row(context.Background(), dead.Key)
			g.must(err)
			if is := g.row("a"); is.Generation != 2 || old.RedrivenBy != is.ID {
				g.Errorf("redriven by %s; the node's job is %s of generation %d", old.RedrivenBy, is.ID, is.Generation)
			}
		})
	})
	t.Run("a skipped node lets its children run", func(t *testing.T) {
		t.Parallel()
		ofGraphs(t, func(g *graphs) {
			g.fails["a"] = true
			g.create(graph("a", "b: a"))
			time.Sleep(5 * time.Second)
			_, err := g.rel.Skip(context.Background(), g.key, "a", false, operator)
			g.must(err)
			time.Sleep(5 * time.Second)
			g.want("SUCCEEDED a=SKIPPED b=SUCCEEDED")
		})
	})
	t.Run("a cancel ends waiting nodes and asks running ones to stop", func(t *testing.T) {
		t.Parallel()
		ofGraphs(t, func(g *graphs) {
			g.slow["a"] = 50 * time.Minute
			g.create(graph("a", "b: a"))
			time.Sleep(5 * time.Second)
			_, err := g.rel.Cancel(context.Background(), g.key, operator)
			g.must(err)
			time.Sleep(15 * time.Second)
			g.want("CANCELLED a=CANCELLED b=CANCELLED")
			if ran := g.ran(); ran != "a" {
				g.Errorf("started: %s", ran)
			}
		})
	})
	//proof:of 29
	t.Run("a paused run starts nothing, and continues at once when it is resumed", func(t *testing.T) {
		t.Parallel()
		ofGraphs(t, func(g *graphs) {
			d := graph("a", "b: a")
			_, _, err := g.rel.Create(context.Background(), runs.Request{
				Key: g.key, Definition: d, DueAt: time.Now().Add(10 * time.Second), By: runs.By{Who: "test"},
			})
			g.must(err)
			_, err = g.rel.Pause(context.Background(), g.key, operator)
			g.must(err)
			time.Sleep(80 * time.Second) // between two passes of the sweeper, which would fire it as well
			g.want("PAUSED a=SCHEDULED b=BLOCKED")
			if row := g.row("a"); !row.Parked {
				g.Errorf("a is not parked: it wakes at %s", row.WakeAt)
			}
			_, err = g.rel.Resume(context.Background(), g.key, operator)
			g.must(err)
			time.Sleep(5 * time.Second)
			g.want("SUCCEEDED a=SUCCEEDED b=SUCCEEDED")
		})
	})
	t.Run("an expired run ends within two minutes, even if none of its nodes does", func(t *testing.T) {
		t.Parallel()
		ofGraphs(t, func(g *graphs) {
			d := graph("a", "b: a")
			d.ExpireAfter = 30 * time.Second
			g.slow["a"] = 50 * time.Minute
			g.create(d)
			time.Sleep(30*time.Second + 2*time.Minute)
			g.want("FAILED a=CANCELLED b=CANCELLED")
		})
	})
}

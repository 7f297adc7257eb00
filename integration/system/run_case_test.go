package system_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/job"
)

// S34: two hundred parents that end within 100 ms, and one child.
//
//proof:of 133 S34
func TestRun_OpensAJoinOnceWhenAllItsParentsEndAtOnce(t *testing.T) {
	t.Parallel()
	ofGraphs(t, func(g *graphs) {
		lines, join := []string{}, "join:"
		for i := range 200 {
			name := fmt.Sprintf("p%03d", i)
			lines, join = append(lines, name), join+" "+name
			g.slow[name] = 5*time.Second + time.Duration(i%100)*time.Millisecond
		}
		g.create(graph(append(lines, join)...))
		time.Sleep(30 * time.Second)
		if is, row := g.is()[:9], g.row("join"); is != "SUCCEEDED" || row.Status != job.Succeeded {
			g.Errorf("the run is %s, the join %s", is, row.Status)
		}
		joins := 0
		for _, name := range g.started {
			if name == "join" {
				joins++
			}
		}
		if joins != 1 || len(g.started) != 201 {
			g.Errorf("the join started %d times, and all 201 nodes %d times", joins, len(g.started))
		}
		for _, q := range []string{contract.DeadLetters, contract.FiringDead} {
			d, err := g.World.Queues().Depth(context.Background(), q)
			g.must(err)
			if d.Visible+d.InFlight+d.Delayed > 0 {
				g.Errorf("%s holds %+v", q, d)
			}
		}
		last := time.Time{}
		for i := range 200 {
			if at := g.row(fmt.Sprintf("p%03d", i)).FinishedAt; at.After(last) {
				last = at
			}
		}
		if wait := g.row("join").StartedAt.Sub(last); wait < 0 || wait > 2*time.Second {
			g.Errorf("the join started %s after its last parent", wait)
		}
	})
}

// S45: A → C, B → C; A fails, or is cancelled, or its job is deleted while B runs.
//
//proof:of 176 S45
func TestRun_EndsAJoinWhoseParentFailed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		happens func(g *graphs)
		want    string
	}{
		"a parent that fails": {
			func(*graphs) {}, "FAILED a=DEAD b=SUCCEEDED c=CANCELLED",
		},
		"a parent that fails, and is not deleted while its run goes on": {
			func(g *graphs) { g.Want(409, "DELETE", "/jobs/"+string(g.row("a").ID), nil) },
			"FAILED a=DEAD b=SUCCEEDED c=CANCELLED",
		},
		"a parent that is cancelled": {
			func(g *graphs) { g.Want(202, "POST", "/jobs/"+string(g.row("a").ID)+"/cancel", nil) },
			"FAILED a=CANCELLED b=SUCCEEDED c=CANCELLED",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ofGraphs(t, func(g *graphs) {
				g.fails["a"], g.slow["b"] = true, 10*time.Minute
				if name == "a parent that is cancelled" {
					g.slow["a"] = 20 * time.Minute
				}
				g.create(graph("a", "b", "c: a b"))
				time.Sleep(5 * time.Second)
				c.happens(g)
				time.Sleep(30 * time.Minute)
				g.want(c.want)
				if v := g.Want(200, "GET", "/runs/"+string(g.key.ID), nil); v["finished_at"] == nil {
					g.Errorf("it has no end: %v", v)
				}
				if row := g.row("c"); row.Reason.Code != dag.ReasonParentFailed {
					g.Errorf("c is CANCELLED of %q", row.Reason.Code)
				}
			})
		})
	}
}

// S46: A, B succeed, C fails for good, D waits for B and C; then the run, or C, is retried.
//
//proof:of 86 S46
func TestRun_RetriesNothingThatHasSucceeded(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"a retry of the run":  "/retry",
		"a retry of the node": "/nodes/c/retry",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ofGraphs(t, func(g *graphs) {
				g.fails["c"] = true
				g.create(graph("a", "b", "c: a", "d: b c"))
				time.Sleep(5 * time.Second)
				g.want("FAILED a=SUCCEEDED b=SUCCEEDED c=DEAD d=CANCELLED")
				g.set(func() { g.fails["c"] = false })
				g.Want(200, "POST", "/runs/"+string(g.key.ID)+path, object{"reason": "mended"})
				time.Sleep(5 * time.Second)
				g.want("SUCCEEDED a=SUCCEEDED b=SUCCEEDED c=SUCCEEDED d=SUCCEEDED")
				counts := map[string]int{}
				for _, n := range g.started {
					counts[n]++
				}
				if fmt.Sprint(counts) != "map[a:1 b:1 c:2 d:1]" {
					g.Errorf("started: %v", counts)
				}
			})
		})
	}
}

// S47: a run is cancelled while a node runs, which then fails, or succeeds.
//
//proof:of 29 S47
func TestRun_StaysCancelledWhateverItsNodesReport(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails, deaf bool
		want        string
	}{
		"a node that heeds its context": {want: "CANCELLED a=CANCELLED b=CANCELLED"},
		"a node that fails all the same": {fails: true, deaf: true,
			want: "CANCELLED a=CANCELLED b=CANCELLED"},
		"a node that is done before it is stopped": {deaf: true, want: "CANCELLED a=SUCCEEDED b=CANCELLED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ofGraphs(t, func(g *graphs) {
				g.Want(200, "PUT", "/tasks/step",
					object{"executor": "go", "timeout": "1h", "retry": object{"max_attempts": 5}})
				g.fails["a"], g.deaf, g.slow["a"] = c.fails, c.deaf, time.Minute
				g.create(graph("a", "b: a"))
				time.Sleep(20 * time.Second)
				v := g.Want(200, "POST", "/runs/"+string(g.key.ID)+"/cancel", object{"reason": "enough"})
				if v["status"] != "RUNNING" {
					g.Errorf("at the cancel it is %v", v["status"])
				}
				time.Sleep(10 * time.Minute)
				g.want(c.want)
				if ran := g.ran(); ran != "a" {
					g.Errorf("started: %s", ran)
				}
			})
		})
	}
}

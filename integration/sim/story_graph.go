package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"punctual/functions/engine"
	"punctual/functions/engine/runs"
	"punctual/shared/dag"
	graphs "punctual/shared/run"
)

var sam = runs.By{Who: "sam", Reason: "the story says so"}

// afterOperation is what a fault may cost an operation of an operator, besides what it costs the nodes.
const afterOperation = 5 * time.Minute

// Graphs are stories about runs of graphs.
var Graphs = append([]Story{
	{Name: "a join of two", Play: func(w *Client) func() {
		g := w.Start("g", w.graphOf(map[string]Work{"b": {Sleep: "3s"}}, "a", "b", "c: a b"))
		return func() { w.CameTo(g, graphs.Succeeded, "a=SUCCEEDED b=SUCCEEDED c=SUCCEEDED") }
	}},
	{Name: "a join of five, which are counted", Play: func(w *Client) func() {
		g := w.Start("g", w.graphOf(nil, "a", "b", "c", "d", "e", "f: a b c d e"))
		return func() { w.CameTo(g, graphs.Succeeded, "f=SUCCEEDED") }
	}},
	{Name: "a node that tries again", Play: func(w *Client) func() {
		g := w.Start("g", w.graphOf(map[string]Work{"a": {Fail: 1}}, "a", "b: a"))
		return func() { w.CameTo(g, graphs.Succeeded, "a=SUCCEEDED b=SUCCEEDED") }
	}},
	{Name: "a failed node and what falls with it", Play: func(w *Client) func() {
		g := w.Start("g", w.graphOf(map[string]Work{"a": {Permanent: true}}, "a", "x", "b: a", "c: b", "d: x"))
		return func() { w.CameTo(g, graphs.Failed, "a=DEAD x=SUCCEEDED b=CANCELLED c=CANCELLED d=SUCCEEDED") }
	}},
	{Name: "a list of three, two at a time", Play: func(w *Client) func() {
		d := w.graphOf(nil, "m", "z: m")
		n := d.Nodes["m"]
		n.ForEach, n.MaxParallel = "${[1, 2, 3]}", 2
		d.Nodes["m"] = n
		g := w.Start("g", d)
		return func() { w.CameTo(g, graphs.Succeeded, "m=SUCCEEDED z=SUCCEEDED") }
	}},
	{Name: "a run of two at a time, with a list", Play: func(w *Client) func() {
		d := w.graphOf(nil, "a", "b", "c", "m: a", "z: b c m")
		n := d.Nodes["m"]
		n.ForEach, n.MaxParallel = "${[1, 2, 3]}", 2
		d.Nodes["m"], d.MaxConcurrency = n, 2
		g := w.Start("g", d)
		return func() {
			w.CameTo(g, graphs.Succeeded, "a=SUCCEEDED b=SUCCEEDED c=SUCCEEDED m=SUCCEEDED z=SUCCEEDED")
		}
	}},
	{Name: "a node whose expression fails", Play: func(w *Client) func() {
		d := w.graphOf(nil, "a", "b: a", "c: b", "d: b")
		b, after := d.Nodes["b"], d.Nodes["d"]
		b.When, after.RunIf = failingWhen, dag.AllFailed
		d.Nodes["b"], d.Nodes["d"] = b, after
		g := w.Start("g", d)
		return func() { w.CameTo(g, graphs.Failed, "a=SUCCEEDED b=DEAD c=CANCELLED d=SUCCEEDED") }
	}},
	{Name: "a failed run is retried", Redo: afterOperation, Play: func(w *Client) func() {
		g := w.Start("g", w.graphOf(map[string]Work{"a": {Permanent: true}}, "a", "b: a"))
		w.Until(g, "b", "CANCELLED")
		time.Sleep(time.Second)
		w.ask("retry", func(ctx context.Context, r *engine.Runs) error {
			_, err := r.Retry(ctx, g.Key, "", sam)
			return err
		})
		return func() {
			w.CameTo(g, graphs.Failed, "a=DEAD b=CANCELLED")
			if is, _ := w.nodes(g); is.Generation("a") < 2 || w.faults() == 0 && is.Generation("a") != 2 {
				w.violation("it is in generation %d", is.Generation("a"))
			}
		}
	}},
	{Name: "a failed node is skipped", Redo: afterOperation, Play: func(w *Client) func() {
		g := w.Start("g", w.graphOf(map[string]Work{"a": {Permanent: true}}, "a", "b: a"))
		w.Until(g, "b", "CANCELLED")
		time.Sleep(time.Second)
		w.ask("skip", func(ctx context.Context, r *engine.Runs) error {
			_, err := r.Skip(ctx, g.Key, "a", false, sam)
			return err
		})
		return func() { w.CameTo(g, graphs.Succeeded, "a=SKIPPED b=SUCCEEDED") }
	}},
	{Name: "a node that waits is completed by hand", Redo: afterOperation, Play: func(w *Client) func() {
		g := w.Start("g", w.graphOf(map[string]Work{"a": {Sleep: "20s"}}, "a", "b: a", "c: b"))
		w.ask("complete", func(ctx context.Context, r *engine.Runs) error {
			_, err := r.Complete(ctx, g.Key, "b", json.RawMessage(`{"by":"sam"}`), sam)
			return err
		})
		return func() { w.Completed(g) }
	}},
	{Name: "a run is cancelled", Redo: afterOperation, Play: func(w *Client) func() {
		g := w.Start("g", w.graphOf(map[string]Work{"a": {Sleep: "10m"}}, "a", "b: a"))
		time.Sleep(5 * time.Second)
		w.ask("cancel", func(ctx context.Context, r *engine.Runs) error {
			_, err := r.Cancel(ctx, g.Key, sam)
			return err
		})
		return func() { w.CameTo(g, graphs.Cancelled, "a=CANCELLED|DEAD b=CANCELLED") }
	}},
	{Name: "a run is paused", Held: true, Redo: afterOperation, Play: func(w *Client) func() {
		g := w.Start("g", w.graphOf(map[string]Work{"a": {Sleep: "5s"}}, "a", "b: a"))
		w.ask("pause", func(ctx context.Context, r *engine.Runs) error {
			_, err := r.Pause(ctx, g.Key, sam)
			return err
		})
		time.Sleep(time.Minute)
		w.ask("resume", func(ctx context.Context, r *engine.Runs) error {
			_, err := r.Resume(ctx, g.Key, sam)
			return err
		})
		return func() { w.CameTo(g, graphs.Succeeded, "a=SUCCEEDED b=SUCCEEDED") }
	}},
	{Name: "a run is paused before it is due", Held: true, Redo: afterOperation, Play: func(w *Client) func() {
		due := time.Now().Add(20 * time.Second).Truncate(time.Millisecond)
		g := w.StartAt("g", w.graphOf(nil, "a", "b: a"), due)
		w.ask("pause", func(ctx context.Context, r *engine.Runs) error {
			_, err := r.Pause(ctx, g.Key, sam)
			return err
		})
		paused := time.Now()
		time.Sleep(time.Minute)
		resumed := time.Now()
		w.ask("resume", func(ctx context.Context, r *engine.Runs) error {
			_, err := r.Resume(ctx, g.Key, sam)
			return err
		})
		return func() {
			w.CameTo(g, graphs.Succeeded, "a=SUCCEEDED b=SUCCEEDED")
			_, rows := w.nodes(g)
			for _, r := range w.runs(rows["a"].Key) {
				if paused.Before(due.Add(-slack)) && r.from.Before(resumed) {
					w.violation("a started %s before its run was resumed", resumed.Sub(r.from))
				}
				if late := r.from.Sub(resumed); late > 5*time.Second && w.faults() == 0 {
					w.violation("a started %s after its run was resumed", late)
				}
			}
		}
	}},
	{Name: "a node is redriven under a pause, and its run cancelled", Held: true, Redo: afterOperation,
		Play: func(w *Client) func() {
			g := w.Start("g", w.deadWhileRunning("a", "b: a"))
			w.redriveUnderPause(g, "a", 0)
			w.cancel(g)
			return func() {
				w.CameTo(g, graphs.Cancelled, "a=CANCELLED b=CANCELLED x=CANCELLED")
				w.NamesWhatIsThere(g, "a", 0)
			}
		}},
	{Name: "an item is redriven under a pause, and its run cancelled", Held: true, Redo: afterOperation,
		Play: func(w *Client) func() {
			d := w.deadWhileRunning("a", "b: a")
			n := d.Nodes["a"]
			n.ForEach = "${[1, 2]}"
			n.Payload = bytes.Replace(n.Payload, []byte("true"), []byte(`"`+failingItem+`"`), 1)
			d.Nodes["a"] = n
			g := w.Start("g", d)
			w.redriveUnderPause(g, "a", 2)
			w.cancel(g)
			return func() {
				w.CameTo(g, graphs.Cancelled, "a=CANCELLED b=CANCELLED x=CANCELLED")
				w.NamesWhatIsThere(g, "a", 2)
			}
		}},
	{Name: "a node is redriven under a pause, and its run expires", Held: true, Redo: afterOperation,
		Play: func(w *Client) func() {
			d := w.deadWhileRunning("a", "b: a")
			d.ExpireAfter = 10 * time.Minute
			g := w.Start("g", d)
			w.redriveUnderPause(g, "a", 0)
			return func() {
				w.CameTo(g, graphs.Failed, "a=CANCELLED b=CANCELLED x=CANCELLED")
				w.NamesWhatIsThere(g, "a", 0)
			}
		}},
	{Name: "a node is redriven under a pause, and then once more with its parent", Held: true, Redo: afterOperation,
		Play: func(w *Client) func() {
			g := w.Start("g", w.deadWhileRunning("p", "a: p"))
			w.mu.Lock()
			w.wholly = append(w.wholly, g.Key)
			w.mu.Unlock()
			w.redriveUnderPause(g, "a", 0)
			w.ask("retry", func(ctx context.Context, r *engine.Runs) error {
				_, err := r.Retry(ctx, g.Key, "p", sam)
				return err
			})
			w.cancel(g)
			return func() {
				w.CameTo(g, graphs.Cancelled, "p=CANCELLED|SUCCEEDED a=CANCELLED x=CANCELLED")
				w.NamesWhatIsThere(g, "a", 0)
			}
		}},
}, slices.Concat(cleaning, lasting)...)

// deadWhileRunning makes a definition whose node a fails, while node x keeps the run from being over.
func (w *Client) deadWhileRunning(lines ...string) dag.Definition {
	d := w.graphOf(map[string]Work{"a": {Permanent: true}, "x": {Sleep: "30m"}}, append(lines, "x")...)
	x := d.Nodes["x"]
	x.Timeout = time.Hour
	d.Nodes["x"] = x
	return d
}

// redriveUnderPause pauses a run once its node has failed, and redrives the dead job of the node, or of its item no.
func (w *Client) redriveUnderPause(g graph, node string, no int64) {
	w.Until(g, node, "DEAD")
	time.Sleep(time.Second)
	w.ask("pause", func(ctx context.Context, r *engine.Runs) error {
		_, err := r.Pause(ctx, g.Key, sam)
		return err
	})
	w.Want([]int{202, 409}, "POST", "/jobs/"+string(g.Job(node, 1, no).ID)+"/redrive", nil)
}

func (w *Client) cancel(g graph) {
	w.ask("cancel", func(ctx context.Context, r *engine.Runs) error {
		_, err := r.Cancel(ctx, g.Key, sam)
		return err
	})
}

// NamesWhatIsThere verifies that the first job of a node, or of its item no, was redriven, and that the job that takes
// its place can be read and has ended. A fault may keep the operator for so long that the run has ended before.
func (w *Client) NamesWhatIsThere(g graph, node string, no int64) {
	dead, _ := w.row(g.Job(node, 1, no).ID)
	if dead.RedrivenBy == "" {
		if w.faults() == 0 {
			w.violation("the job of node %q was not redriven", node)
		}
		return
	}
	code, next := w.Ask("GET", "/jobs/"+string(dead.RedrivenBy), nil)
	if code != 200 || next["redrive_of"] != string(dead.ID) || next["status"] != "CANCELLED" && w.faults() == 0 {
		w.violation("the job that takes the place of node %q is answered %d: %v", node, code, next)
	}
}

// failingWhen fails when it is evaluated, whatever the run is.
const failingWhen = "1 / (size(run.id) - size(run.id)) > 0"

// Completed verifies the run whose second node an operator completed: that node ran only if a fault kept
// the operator for so long that it had started.
func (w *Client) Completed(g graph) {
	is, rows := w.nodes(g)
	if is.Status != graphs.Succeeded || rows["c"].Status != "SUCCEEDED" {
		w.violation("run %s is %s, and c %s", short(g.ID), is.Status, rows["c"].Status)
	}
	if n := len(w.runs(rows["b"].Key)); n > 0 && (w.faults() == 0 || rows["b"].Forced != "") {
		w.violation("b was completed by hand and ran %d times", n)
	}
}

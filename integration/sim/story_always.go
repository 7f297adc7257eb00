package sim

import (
	"context"
	"slices"
	"time"

	"punctual/functions/engine"
	"punctual/shared/dag"
	"punctual/shared/job"
	graphs "punctual/shared/run"
)

// cleaning are stories about runs that are stopped, and whose node clean runs always.
var cleaning = []Story{
	{Name: "a run is cancelled, and cleans up", Redo: afterOperation, Play: func(w *Client) func() {
		g := w.Start("g", w.cleaned(map[string]Work{"work": {Sleep: "10m"}}))
		time.Sleep(5 * time.Second)
		w.cancelOnce(g)
		return func() {
			w.CameTo(g, graphs.Cancelled, "work=CANCELLED|DEAD more=CANCELLED report=CANCELLED")
			w.Cleaned(g)
		}
	}},
	{Name: "a run is cancelled while it cleans up", Redo: 2 * afterOperation, Play: func(w *Client) func() {
		g := w.Start("g", w.cleaned(map[string]Work{"clean": {Sleep: "4m"}}))
		w.Until(g, "more", "SUCCEEDED")
		time.Sleep(5 * time.Second)
		w.cancelOnce(g)
		return func() {
			w.CameTo(g, graphs.Cancelled, "work=SUCCEEDED more=SUCCEEDED report=CANCELLED")
			w.Cleaned(g)
		}
	}},
	{Name: "a run is cancelled twice", Redo: afterOperation, Play: func(w *Client) func() {
		g := w.Start("g", w.cleaned(map[string]Work{"work": {Sleep: "10m"}, "clean": {Sleep: "10m"}}))
		time.Sleep(5 * time.Second)
		w.cancelOnce(g)
		w.Until(g, "work", "CANCELLED")
		time.Sleep(5 * time.Second)
		w.cancel(g)
		return func() {
			w.CameTo(g, graphs.Cancelled, "work=CANCELLED|DEAD more=CANCELLED clean=CANCELLED|DEAD report=CANCELLED")
		}
	}},
	{Name: "a run expires, and cleans up", Play: func(w *Client) func() {
		d := w.cleaned(map[string]Work{"work": {Sleep: "10m"}})
		d.ExpireAfter = time.Minute
		g := w.Start("g", d)
		return func() {
			w.CameTo(g, graphs.Failed, "work=CANCELLED|DEAD more=CANCELLED report=CANCELLED")
			w.Cleaned(g)
		}
	}},
	{Name: "a run fails as a whole, and cleans up", Play: func(w *Client) func() {
		d := w.graphOf(map[string]Work{"work": {Sleep: "10m"}, "fails": {Sleep: "5s", Permanent: true}},
			"work", "fails", "x", "y", "z", "clean: work fails x y z", "report: clean")
		d.OnFailure = dag.CancelRun
		g := w.Start("g", runsAlways(d))
		return func() {
			w.CameTo(g, graphs.Failed, "work=CANCELLED|DEAD fails=DEAD report=CANCELLED")
			w.Cleaned(g)
		}
	}},
	{Name: "a held run is cancelled, and cleans up", Held: true, Redo: afterOperation, Play: func(w *Client) func() {
		d := w.cleaned(map[string]Work{"work": {Permanent: true}})
		d.OnFailure = dag.Hold
		g := w.Start("g", d)
		w.Until(g, "work", "DEAD")
		time.Sleep(5 * time.Second)
		w.cancelOnce(g)
		return func() {
			w.CameTo(g, graphs.Cancelled, "work=DEAD more=CANCELLED report=CANCELLED")
			w.Cleaned(g)
		}
	}},
	{Name: "a run that has cleaned up is retried", Redo: afterOperation, Play: func(w *Client) func() {
		g := w.Start("g", w.cleaned(map[string]Work{"work": {Sleep: "20s"}}))
		time.Sleep(5 * time.Second)
		w.cancelOnce(g)
		w.Until(g, "clean", "SUCCEEDED")
		time.Sleep(5 * time.Second)
		w.ask("retry", func(ctx context.Context, r *engine.Runs) error {
			_, err := r.Retry(ctx, g.Key, "", sam)
			return err
		})
		return func() {
			w.CameTo(g, graphs.Succeeded, "work=SUCCEEDED more=SUCCEEDED report=SUCCEEDED")
			w.Cleaned(g)
		}
	}},
}

// cleaned makes a definition whose node clean runs always, after work and more, and report after that.
func (w *Client) cleaned(work map[string]Work) dag.Definition {
	return runsAlways(w.graphOf(work, "work", "more: work", "clean: work more", "report: clean"))
}

// runsAlways lets the node clean of a definition run always.
func runsAlways(d dag.Definition) dag.Definition {
	n := d.Nodes["clean"]
	n.RunIf, n.Timeout = dag.Always, time.Hour
	d.Nodes["clean"] = n
	return d
}

// cancelOnce cancels a run, unless it is stopped already: a second cancel stops the nodes that run always, too.
func (w *Client) cancelOnce(g graph) {
	w.ask("cancel once", func(ctx context.Context, r *engine.Runs) error {
		is, _, _, err := r.Nodes(ctx, g.Key)
		if err != nil || is.Stop != graphs.NoStop {
			return err
		}
		_, err = r.Cancel(ctx, g.Key, sam)
		return err
	})
}

// Cleaned verifies that the node clean of a run has run, in its first generation. After a fault, a cancel that came
// late may have been the second.
func (w *Client) Cleaned(g graph) {
	row, _ := w.row(g.Job("clean", 1, 0).ID)
	all := slices.ContainsFunc(w.ledger.since(g.Key, time.Time{}), func(s revision) bool { return s.StopAll })
	if row.Status == job.Succeeded || all && w.faults() > 0 {
		return
	}
	w.violation("clean is %s (%s), and the run has not been cancelled twice", row.Status, row.Reason.Code)
}

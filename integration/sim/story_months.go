package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"punctual/functions/engine"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/item"
	"punctual/shared/job"
	graphs "punctual/shared/run"
)

const day = 24 * time.Hour

// lasting are about runs that outlive what the table keeps of other jobs, and about what a node was released from.
//
// Two of them last for hours and are not played in random weather, because the faults would last as long: after 20
// minutes of work for each item with workers that are lost all the time, a poisoned item or an expired run is a right
// end.
var lasting = []Story{
	{Name: "a run is held for half a year", Held: true, Calm: true, Redo: afterOperation, Play: func(w *Client) func() {
		d := w.graphOf(map[string]Work{"b": {Permanent: true}}, "a", "b: a", "c: b")
		d.OnFailure = dag.Hold
		g := w.Start("g", d)
		w.Until(g, "b", "DEAD")
		for range 5 {
			time.Sleep(time.Minute)
			w.Age(g, 33*day)
			time.Sleep(20 * time.Minute) // a wake-up of the run comes
		}
		w.ask("skip", func(ctx context.Context, r *engine.Runs) error {
			_, err := r.Skip(ctx, g.Key, "b", false, sam)
			return err
		})
		return func() {
			w.CameTo(g, graphs.Succeeded, "a=SUCCEEDED b=SKIPPED c=SUCCEEDED")
			w.ranOnce(g, "a")
		}
	}},
	// A worker that ends shortly before the end of its item's 20 minutes has them done once more.
	{Name: "a mapped node lasts for half a year", Held: true, Calm: true, Redo: 20*time.Minute + afterOperation,
		Play: func(w *Client) func() {
			d := w.graphOf(map[string]Work{"m": {Sleep: "20m"}}, "m", "z: m")
			n := d.Nodes["m"]
			n.ForEach, n.MaxParallel, n.Timeout = "${[1, 2, 3, 4, 5]}", 1, time.Hour
			d.Nodes["m"] = n
			g := w.Start("g", d)
			for range 5 {
				time.Sleep(19 * time.Minute)
				w.Age(g, 33*day)
				time.Sleep(2 * time.Minute)
			}
			return func() {
				w.CameTo(g, graphs.Succeeded, "m=SUCCEEDED z=SUCCEEDED")
				w.ranOnce(g, "m")
			}
		}},
	{Name: "the node before a mapped one is retried meanwhile", Redo: afterOperation,
		Play: func(w *Client) func() {
			works := map[string]Work{"a": {Permanent: true, Sleep: "3s"}, "m": {Sleep: "5s"}}
			d := w.graphOf(works, "a", "m: a", "z: m")
			n := d.Nodes["m"]
			n.RunIf, n.MaxParallel = dag.AllDone, 1
			n.ForEach = `${nodes.a.status == "DEAD" ? [1, 2, 3, 4] : [5, 6]}`
			d.Nodes["m"] = n
			g := w.Start("g", d)
			w.Until(g, "a", "DEAD")
			time.Sleep(4 * time.Second)
			w.ask("retry", func(ctx context.Context, r *engine.Runs) error {
				_, err := r.RetryNode(ctx, g.Key, "a", sam)
				return err
			})
			return func() {
				w.CameTo(g, graphs.Failed, "a=DEAD m=SUCCEEDED z=SUCCEEDED")
				if _, rows := w.nodes(g); rows["m"].Items != 4 {
					w.violation("m has %d items", rows["m"].Items)
				}
			}
		}},
}

// endless are about work that never returns.
var endless = []Story{
	{Name: "the reconciliation of a run never returns", Held: true, Alone: true, Redo: time.Hour,
		Play: func(w *Client) func() {
			d := w.graphOf(map[string]Work{"a": {Sleep: "65m"}}, "a", "b: a")
			a := d.Nodes["a"]
			a.Timeout = 2 * time.Hour
			d.Nodes["a"] = a
			g := w.Start("g", d)
			free := w.Stick("sweeper", g.Ref())
			var swept []job.ID
			for n := range 12 {
				at := time.Now()
				stop := w.Refuse(func(queue, _ string) bool { return strings.HasPrefix(queue, "firing") })
				id := w.Post(fmt.Sprint("lost ", n), object{})
				time.Sleep(2 * time.Second)
				stop() // the firing is lost: the sweeper sends it
				swept = append(swept, id)
				time.Sleep(5*time.Minute - time.Since(at))
				if r, ok := w.row(id); ok && !r.Status.Final() && w.faults() == 0 {
					w.violation("a lost firing was not sent for five minutes")
				}
			}
			free()
			return func() {
				for _, id := range swept {
					w.Is(id, 1, job.Succeeded)
				}
				w.CameTo(g, graphs.Succeeded, "a=SUCCEEDED b=SUCCEEDED")
			}
		}},
}

// ranOnce verifies that the first generation of a node, or each of its items, ran once.
func (w *Client) ranOnce(g graph, node string) {
	if w.faults() > 0 {
		return
	}
	for no := range int64(6) {
		k := g.Job(node, 1, no)
		if n := len(w.runs(k)); n > 1 {
			w.violation("item %d of node %q ran %d times", no, node, n)
		}
	}
}

// Age lets everything that the table keeps of a run be older by that much, as if the clock had been moved.
func (w *Client) Age(g graph, by time.Duration) {
	ctx := context.Background()
	older := func(ref item.Ref) {
		i, err := w.memory.Table().Get(ctx, ref)
		if at := i.Int(contract.AttrExpiresAt); err == nil && at > 0 {
			w.set(ref, contract.AttrExpiresAt, at-int64(by.Seconds()))
		}
	}
	is, err := w.behindTheScenes().Run(ctx, g.Key)
	if err != nil {
		w.violation("reading run %s: %v", short(g.ID), err)
		return
	}
	w.set(g.Ref(), "kept_until", is.Kept().Add(-by).UnixMilli())
	for _, r := range w.rows() {
		if r.RunID != string(g.ID) {
			continue
		}
		older(r.Ref())
		if r.Status.Final() { // each heartbeat of another lets its claim live
			older(r.ClaimRef())
		}
		first := r.ContentRef("")
		page, err := w.memory.Table().Query(ctx, item.Query{Table: contract.Jobs, PK: first.PK, From: first.SK,
			To: string(r.ID) + "$", Consistent: true})
		if err != nil {
			w.violation("reading the contents of job %s: %v", short(r.ID), err)
		}
		for _, i := range page.Items {
			older(item.Ref{Table: contract.Jobs, PK: first.PK, SK: i.Str(contract.AttrJobID)})
		}
	}
}

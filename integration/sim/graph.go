package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"punctual/functions/engine"
	"punctual/functions/engine/runs"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	proc "punctual/shared/process"
	graphs "punctual/shared/run" // run is an identifier of this package
	"punctual/shared/store"
)

// graph is a run of a graph, as its client knows it.
type graph struct {
	graphs.Key
	dag.Definition
}

// newController returns what a process of the API does with runs.
func (w *World) newController(p *process) *engine.Runs {
	ports := p.ports()
	return engine.New(engine.Deps{
		Store: store.New(ports.Table, ports.Blobs), Queue: ports.Queues,
		Base: proc.Base{Clock: p.clock, Log: w.log("api"), Shards: w.o.Shards, Announced: w.o.Webhooks},
	}).Runs
}

// behindTheScenes reads the table without faults.
func (w *World) behindTheScenes() *store.Store { return store.New(w.memory.Table(), w.memory.Blobs()) }

// graphOf makes a definition of "child: parent parent" lines; work says what the nodes do that do not
// end at once.
func (w *Client) graphOf(work map[string]Work, lines ...string) dag.Definition {
	d := dag.Definition{Nodes: map[string]dag.Node{}}
	for _, l := range lines {
		name, parents, _ := strings.Cut(l, ":")
		does := work[name]
		does.Owner, does.Mark = secretOf(w.tenant), name
		payload, err := json.Marshal(does)
		if err != nil {
			w.violation("encoding a payload: %v", err)
		}
		d.Nodes[name] = dag.Node{Task: taskOf(w.tenant), DependsOn: strings.Fields(parents), Payload: payload}
	}
	return d
}

// ask asks the API's process to do something with a run until the answer is final. A request whose answer was lost is
// repeated, so it is no violation if the run does not allow it any more.
func (w *Client) ask(what string, do func(context.Context, *engine.Runs) error) {
	for n := range 300 {
		switch err := w.askOnce(what, do); {
		case err == nil:
			return
		case errors.As(err, new(*runs.WrongState)):
			if n == 0 && w.faults() == 0 {
				w.violation("%s was refused: %v", what, err)
			}
			return
		}
		time.Sleep(min(time.Duration(n+1)*700*time.Millisecond, 5*time.Second))
	}
	w.violation("%s was not answered in all these times", what)
}

func (w *Client) askOnce(what string, do func(context.Context, *engine.Runs) error) error {
	w.mu.Lock()
	p, rel := w.api, w.controller
	w.mu.Unlock()
	var gone error = fault.New(fault.Unavailable, nil, "%s", what)
	if p.dead.Load() {
		return gone
	}
	ctx, cancel := context.WithTimeout(context.WithValue(w.over, requestKey{}, w.request()), patience)
	done := make(chan error, 1)
	w.running.Go(func() {
		defer cancel()
		done <- do(ctx, rel)
	})
	err := gone
	select {
	case err = <-done:
	case <-p.died:
	case <-ctx.Done():
	}
	if p.dead.Load() {
		return gone
	}
	w.note(p, fmt.Sprintf("ANSWER %s: %v", what, err))
	return err
}

// Start makes a run under that name, due at once.
func (w *Client) Start(name string, d dag.Definition) graph { return w.StartAt(name, d, time.Time{}) }

// StartAt makes a run that is due at that time.
func (w *Client) StartAt(name string, d dag.Definition, due time.Time) graph {
	w.awaitSameID()
	g := graph{graphs.Key{Tenant: w.tenant, ID: job.DeterministicID(time.Now(), "sim", name)}, d}
	w.mu.Lock()
	w.graphs = append(w.graphs, g)
	w.mu.Unlock()
	w.ask("create", func(ctx context.Context, r *engine.Runs) error {
		_, _, err := r.Create(ctx, runs.Request{Key: g.Key, Definition: d, DueAt: due, By: runs.By{Who: "sim"}})
		return err
	})
	return g
}

// nodes reads a run and the rows of its nodes.
func (w *Client) nodes(g graph) (graphs.Run, map[string]job.Row) {
	s := w.behindTheScenes()
	is, err := s.Run(context.Background(), g.Key)
	if err != nil {
		w.violation("reading run %s: %v", short(g.ID), err)
		return is, nil
	}
	rows := map[string]job.Row{}
	for name := range g.Nodes {
		read, err := s.Nodes(context.Background(), []job.Key{is.Job(name)})
		if err != nil {
			w.violation("reading node %q: %v", name, err)
			continue
		}
		rows[name] = read[0]
	}
	return is, rows
}

// Until waits until a node has that status, or the run has ended.
func (w *Client) Until(g graph, node string, s job.Status) {
	for range 3600 {
		is, rows := w.nodes(g)
		if rows[node].Status == s || is.Status.Final() {
			return
		}
		time.Sleep(time.Second)
	}
	w.violation("node %q does not become %s", node, s)
}

// CameTo verifies that a run has that status, and its nodes have theirs ("a=SUCCEEDED b=DEAD"); that each node ran
// after its parents had ended; and that none ran twice in a generation for no reason.
func (w *Client) CameTo(g graph, s graphs.Status, nodes string) {
	is, rows := w.nodes(g)
	if is.Status != s {
		w.violation("run %s is %s (%s), want %s", short(g.ID), is.Status, is.Reason.Code, s)
	}
	for want := range strings.FieldsSeq(nodes) {
		name, statuses, _ := strings.Cut(want, "=")
		good := false
		for status := range strings.SplitSeq(statuses, "|") {
			good = good || string(rows[name].Status) == status
		}
		if !good {
			w.violation("node %q is %s (%s), want %s", name, rows[name].Status, rows[name].Reason.Code, statuses)
		}
	}
	for name, n := range g.Nodes {
		for _, run := range w.runs(rows[name].Key) {
			for _, parent := range n.DependsOn {
				if is.Since(parent) > is.Since(name) { // it was retried after the node had run
					continue
				}
				if at, over := w.ledger.overAt(rows[parent].Key); !over || at.After(run.from) {
					w.violation("node %q started before %q had ended", name, parent)
				}
			}
		}
	}
}

// goesOn names a run that has not ended, "" if there is none. One that is HELD waits for an operator.
func (w *World) goesOn() string {
	w.mu.Lock()
	all := slices.Clone(w.graphs)
	w.mu.Unlock()
	for _, r := range w.ledger.all() {
		if r.StartsRun() && !r.StartedAt.IsZero() {
			all = append(all, graph{Key: graphs.Key{Tenant: r.Tenant, ID: r.ID}})
		}
	}
	for _, g := range all {
		is, err := w.behindTheScenes().Run(context.Background(), g.Key)
		switch {
		case err != nil:
			return fmt.Sprintf("run %s cannot be read: %v", short(g.ID), err)
		case is.Status != graphs.Held && (!is.Status.Final() || !is.WakeAt.IsZero()):
			return fmt.Sprintf("run %s is %s and wakes at %s", short(g.ID), is.Status, clockTime(is.WakeAt))
		}
	}
	return ""
}

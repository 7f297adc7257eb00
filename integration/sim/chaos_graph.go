package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"punctual/functions/engine"
	"punctual/functions/engine/runs"
	"punctual/shared/dag"
	graphs "punctual/shared/run"
)

// mostNodes bounds the random graphs.
const mostNodes = 200

// failingItem is the payload's "permanent" of a mapped node of which one item fails.
const failingItem = "${item == 2}"

// Network makes runs of random graphs and does random things with them while faults happen, then calms
// the world and lets every run come to its end.
func Network(w *World) {
	d := dice(w.o.Seed, "graphs")
	tenantCount := 1 + d.IntN(len(tenants))
	var people sync.WaitGroup
	for n := range tenantCount {
		w.As(tenants[n]).Define()
	}
	for n := range tenantCount {
		c, mine := w.As(tenants[n]), dice(w.o.Seed, "operator of "+string(tenants[n]))
		people.Go(func() { c.operator(mine) })
	}
	if d.IntN(3) == 0 {
		people.Go(w.deployments)
	}
	people.Wait()
	w.Calm()
	time.Sleep(time.Minute) // a pause may take effect late
	for w.letGoOn() {
		w.Settle(6 * time.Hour)
	}
	w.Settle(6 * time.Hour)
	for w.letGoOn() { // what was on its way came to a hold
		w.Settle(6 * time.Hour)
	}
	time.Sleep(4 * time.Minute)
	w.Check()
	for _, g := range w.allGraphs() {
		w.As(g.Tenant).CameRight(g)
	}
}

func (w *World) allGraphs() []graph {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]graph(nil), w.graphs...)
}

// letGoOn lifts the remaining pauses and completes the nodes that hold a run. It returns false if there were none.
func (w *World) letGoOn() (any bool) {
	for _, g := range w.allGraphs() {
		c := w.As(g.Tenant)
		is, rows := c.nodes(g)
		switch {
		case is.Paused && !is.Status.Final():
			any = true
			c.ask("resume", func(ctx context.Context, r *engine.Runs) error {
				_, err := r.Resume(ctx, g.Key, sam)
				return err
			})
		case is.Status == graphs.Held:
			any = true
			for name := range g.Nodes {
				if dag.EndOf(rows[name].Status) == dag.Failed {
					_ = c.try("complete", func(ctx context.Context, r *engine.Runs) error {
						_, err := r.Complete(ctx, g.Key, name, nil, sam)
						return err
					})
					break
				}
			}
		}
	}
	return any
}

// try is act, but a refusal is no violation; it is returned.
func (w *Client) try(what string, do func(context.Context, *engine.Runs) error) error {
	for n := range 300 {
		err := w.askOnce(what, do)
		if err == nil || errors.As(err, new(*runs.WrongState)) {
			return err
		}
		time.Sleep(min(time.Duration(n+1)*700*time.Millisecond, 5*time.Second))
	}
	w.violation("%s was not answered in all these times", what)
	return nil
}

// operator makes a run of a random graph and acts on it.
func (w *Client) operator(d *rand.Rand) {
	sleepUpTo(d, 10*time.Second)
	due := time.Time{}
	if d.IntN(4) == 0 {
		due = time.Now().Add(time.Duration(d.IntN(90)) * time.Second).Truncate(time.Millisecond)
	}
	g := w.StartAt("g", w.randomGraph(d), due)
	operations := d.IntN(3) * d.IntN(7)
	for range operations {
		sleepUpTo(d, 40*time.Second)
		w.operate(g, d)
	}
	sleepUpTo(d, time.Minute)
}

// inject does one random thing with a run.
func (w *Client) operate(g graph, d *rand.Rand) {
	names := graphNames(g.Definition)
	node := names[d.IntN(len(names))]
	below := d.IntN(2) == 0
	what := []string{
		"cancel", "pause", "pause", "resume", "resume", "resume", "retry", "retry", "retry", "from", "retry node",
		"retry node", "retry node", "skip", "skip", "complete", "complete",
	}[d.IntN(17)]
	if slices.Contains([]string{"retry", "retry node"}, what) || below {
		node = w.aFailedNode(g, node)
	}
	w.mu.Lock()
	if what == "from" {
		w.wholly = append(w.wholly, g.Key)
	}
	w.operated = append(w.operated, g.Key)
	w.mu.Unlock()
	err := w.try(what+" "+node, func(ctx context.Context, r *engine.Runs) error {
		var err error
		switch what {
		case "cancel":
			_, err = r.Cancel(ctx, g.Key, sam)
		case "pause":
			_, err = r.Pause(ctx, g.Key, sam)
		case "resume":
			_, err = r.Resume(ctx, g.Key, sam)
		case "retry":
			_, err = r.Retry(ctx, g.Key, "", sam)
		case "from":
			_, err = r.Retry(ctx, g.Key, node, sam)
		case "retry node":
			_, err = r.RetryNode(ctx, g.Key, node, sam)
		case "skip":
			_, err = r.Skip(ctx, g.Key, node, below, sam)
		case "complete":
			_, err = r.Complete(ctx, g.Key, node, json.RawMessage(`"by hand"`), sam)
		}
		return err
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.done[what]++
	} else {
		w.done[what+", refused"]++
	}
}

// aFailedNode waits for up to a minute until a node has failed, and returns it. If none has, it returns otherwise.
func (w *Client) aFailedNode(g graph, otherwise string) string {
	for range 30 {
		_, rows := w.nodes(g)
		for _, name := range graphNames(g.Definition) {
			if dag.EndOf(rows[name].Status) == dag.Failed && len(w.runs(rows[name].Key)) > 0 {
				return name
			}
		}
		time.Sleep(2 * time.Second)
	}
	return otherwise
}

// randomGraph has up to twelve nodes, or sixty, or two hundred: chains, bushes, and nodes with many parents.
func (w *Client) randomGraph(d *rand.Rand) dag.Definition {
	most := []int{12, 12, 12, 12, 60, 60, mostNodes}[d.IntN(7)]
	g := dag.Definition{Nodes: map[string]dag.Node{}, OnFailure: dag.Policy(dag.Policies[d.IntN(len(dag.Policies))])}
	if d.IntN(4) == 0 {
		g.MaxConcurrency = 1 + d.IntN(4)
	}
	if d.IntN(5) == 0 {
		g.ExpireAfter = time.Duration(5+d.IntN(300)) * time.Second
	}
	failing := []int{0, 3, 8}[d.IntN(3)] // one node in so many fails for good
	name := func(i int) string { return fmt.Sprintf("n%03d", i) }
	edges := 0
	for i := range 1 + d.IntN(most) {
		n := dag.Node{Task: taskOf(w.tenant)}
		if i > 0 {
			parents := d.IntN(1 + min(i, []int{1, 2, 3, 12, 40}[d.IntN(5)]))
			for _, p := range d.Perm(i)[:parents] {
				if edges++; edges < dag.MaxEdges {
					n.DependsOn = append(n.DependsOn, name(p))
				}
			}
		}
		if d.IntN(2) == 0 {
			n.RunIf = dag.Rule(dag.Rules[d.IntN(len(dag.Rules))])
		}
		if d.IntN(12) == 0 {
			n.When = []string{"true", "false"}[d.IntN(2)]
		}
		work := object{"owner": secretOf(w.tenant), "mark": name(i)}
		switch fails := failing > 0 && d.IntN(failing) == 0; {
		case fails:
			work["permanent"] = true
			work["heals"] = d.IntN(3) // 0: never
		case d.IntN(10) == 0:
			work["fail"] = 1
		}
		if d.IntN(6) == 0 {
			work["sleep"] = []string{"1s", "4s", "15s", "25s"}[d.IntN(4)]
		}
		if d.IntN(10) == 0 {
			n.ForEach = []string{"${[]}", "${[7]}", "${[1, 2, 3]}", "${[1, 2, 3, 4, 5, 6, 7]}"}[d.IntN(4)]
			n.MaxParallel = d.IntN(3)
			if work["permanent"] == true {
				work["permanent"] = failingItem
			}
			if i%2 == 0 { // not by the dice, which would change the graphs of known seeds
				n.MaxFailed.Percent = 20 // one of seven may fail, one of three may not
			}
		}
		payload, err := json.Marshal(work)
		if err != nil {
			w.violation("encoding a payload: %v", err)
		}
		n.Payload = payload
		g.Nodes[name(i)] = n
	}
	if _, err := dag.Compile(g); err != nil {
		w.violation("a random graph is refused: %v", err)
	}
	return g
}

// counts counts the ends of random graphs over all seeds.
type counts struct {
	sync.Mutex
	of     map[string]int
	faults int
}

func (c *counts) add(done map[string]int, faults int) {
	c.Lock()
	defer c.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	for what, n := range done {
		c.of[what] += n
	}
	c.faults += faults
}

func (c *counts) String() string {
	c.Lock()
	defer c.Unlock()
	parts := []string{fmt.Sprintf("faults: %d", c.faults)}
	for _, what := range slices.Sorted(maps.Keys(c.of)) {
		parts = append(parts, fmt.Sprintf("%s: %d", what, c.of[what]))
	}
	return strings.Join(parts, ", ")
}

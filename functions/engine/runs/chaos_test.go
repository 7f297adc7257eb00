package runs_test

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"punctual/functions/engine/runs"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/dag/dagtest"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/run"
)

// asExpected checks the ends of the nodes and of the run, on which no operator has acted.
func (b *bench) asExpected(g *dag.Graph, fails func(string) bool) {
	b.Helper()
	ends, status := dagtest.Outcome(g.Definition, fails)
	b.runIs(status)
	for _, name := range g.Names() {
		if got := dagtest.EndOf(b.current(name)); got != ends[name] {
			b.Errorf("node %q ended %q, want %q", name, got, ends[name])
		}
	}
}

// reordered plays a run whose reports arrive late, in any order, and some of them twice. There are no wake-ups.
func (b *bench) reordered(dice *rand.Rand) {
	var late []job.Key
	for {
		any := false
		for _, row := range b.rows() {
			if (len(late) == 0 || dice.IntN(2) == 0) && b.start(row) {
				any = true
				b.finish(row, false)
				late = append(late, row.Key)
			}
		}
		if len(late) == 0 {
			if !any {
				return
			}
			continue
		}
		i := dice.IntN(len(late))
		rows, err := b.Store.Nodes(context.Background(), []job.Key{late[i]})
		b.Must(err)
		b.Must(b.rel.Ended(context.Background(), rows[0]))
		if dice.IntN(3) > 0 {
			late = slices.Delete(late, i, i+1)
		}
	}
}

// TestRun_EndsAsTheTableSaysForEveryGraphOfFourNodes plays every graph, rule and outcome with reports that
// arrive twice and in another order: RUNS=1 plays all 7,168, otherwise one in eleven.
//
//proof:of 136 S45
func TestRun_EndsAsTheTableSaysForEveryGraphOfFourNodes(t *testing.T) {
	t.Parallel()
	nodes := []string{"a", "b", "c", "d"}
	worlds := 0
	for set := range 1 << 6 {
		d := dag.Definition{Nodes: map[string]dag.Node{}}
		bit := 0
		for x, name := range nodes {
			n := dag.Node{Task: "echo"}
			for p := range x {
				if set&(1<<bit) != 0 {
					n.DependsOn = append(n.DependsOn, nodes[p])
				}
				bit++
			}
			d.Nodes[name] = n
		}
		for r, rule := range dag.Rules {
			for failing := range 16 {
				worlds++
				if os.Getenv("RUNS") == "" && worlds%11 != 0 {
					continue
				}
				policy := dag.Policies[[]int{0, 2, 3}[(set+r+failing)%3]]
				for x, name := range nodes { // the same rule for all nodes, or different ones
					n := d.Nodes[name]
					n.RunIf = dag.Rule(rule)
					if (set+failing)%2 == 1 {
						n.RunIf = dag.Rule(dag.Rules[(r+x)%len(dag.Rules)])
					}
					d.Nodes[name] = n
				}
				d.OnFailure = dag.Policy(policy)
				fails := func(name string) bool { return failing&(1<<slices.Index(nodes, name)) != 0 }
				b := setup(t)
				b.fails = func(row job.Row) bool { return fails(row.Node) }
				b.create(d)
				b.reordered(rand.New(rand.NewPCG(uint64(worlds), 4)))
				g, err := dag.Compile(d)
				b.Must(err)
				for id, n := range b.started {
					if n != 1 {
						t.Errorf("job %s started %d times", id, n)
					}
				}
				if b.asExpected(g, fails); t.Failed() {
					t.Fatalf("graph %06b, rule %s, policy %s, failing %04b", set, rule, policy, failing)
				}
				b.World.Close()
			}
		}
	}
	t.Logf("%d runs", worlds)
}

// chaos is a run with random operations, crashes and races.
type chaos struct {
	*bench
	dice       *rand.Rand
	graph      *dag.Graph
	depth      int
	running    []job.Row
	operations int  // operations that are still to come
	from       bool // there was a retry from a node
	operated   bool
	stopped    bool // there was a cancel
	all        bool // there was a second cancel, of a run that was stopped already
	quiet      bool
}

// between is called before each call of the table: it may do something else first, or make the call fail.
func (c *chaos) between(call memory.Call) memory.Fault {
	if c.quiet {
		return memory.Fault{}
	}
	// The cache of graphs lets a second reader wait for the first, which would wait for itself here.
	if c.depth == 0 && call.Ref.Table != contract.Dags && c.dice.IntN(5) == 0 {
		c.depth++
		c.something()
		c.depth--
	}
	if c.depth == 0 && c.operations > 0 && c.dice.IntN(8) == 0 &&
		// an operation just before the write of a verdict
		(call.Name == job.WriteAccept || call.Name == job.WriteAcceptEnded) {
		c.depth++
		var is run.Run
		current := false
		c.calmly(func() { found, err := c.Store.Run(context.Background(), c.key); is, current = found, err == nil })
		if current {
			c.operations--
			c.operated = true
			c.operate(is)
		}
		c.depth--
	}
	if c.dice.IntN(90) == 0 {
		return memory.Fault{Fail: fault.Unavailable, Lost: c.dice.IntN(2) == 0}
	}
	return memory.Fault{}
}

// calmly does something while nothing else happens.
func (c *chaos) calmly(do func()) {
	was := c.quiet
	c.quiet = true
	do()
	c.quiet = was
}

func (c *chaos) something() {
	ctx := context.Background()
	var rows []job.Row
	var is run.Run
	current := true
	c.calmly(func() {
		if _, err := c.Store.Run(ctx, c.key); err != nil {
			current = false
			return
		}
		is, rows = c.run(), c.rows()
	})
	if !current { // the run is being created
		return
	}
	switch n := c.dice.IntN(21); {
	case n < 8 && len(rows) > 0:
		for range 3 {
			c.begin(rows[c.dice.IntN(len(rows))])
		}
	case n < 14 && len(c.running) > 0:
		i := c.dice.IntN(len(c.running))
		row := c.running[i]
		c.running = slices.Delete(c.running, i, i+1)
		c.calmly(func() { c.finish(row, false) })
		if c.dice.IntN(4) > 0 {
			c.hear(row.Key)
		}
	case n < 16 && len(rows) > 0: // a message arrives twice
		c.hear(rows[c.dice.IntN(len(rows))].Key)
	case n < 17:
		_ = c.rel.Reconcile(ctx, c.key)
	case n < 18:
		c.rel = c.another()
	case c.operations > 0 && c.dice.IntN(3) == 0:
		c.operations--
		c.operated = true
		c.operate(is)
	}
}

// begin lets a worker start the job, and checks that it may.
func (c *chaos) begin(row job.Row) {
	if slices.ContainsFunc(c.running, func(r job.Row) bool { return r.ID == row.ID }) {
		return
	}
	c.calmly(func() {
		is := c.run()
		if !c.start(row) {
			return
		}
		c.running = append(c.running, row)
		if c.started[row.ID] > 1 {
			c.Errorf("node %q starts twice in generation %d", row.Node, row.Generation)
		}
		if row.Generation > 1 && !c.from && row.ItemNo == 0 {
			older, err := c.Store.Nodes(context.Background(), []job.Key{c.key.Job(row.Node, row.Generation-1, 0)})
			c.Must(err)
			if older[0].Status == job.Succeeded {
				c.Errorf("node %q starts once more after it has succeeded", row.Node)
			}
		}
		right := c.right()
		if v, _, ends := right.Verdict(row.Node); v != dag.Run && !right.ParentRetried(row.Node) {
			c.Errorf("node %q starts after %v: %s", row.Node, ends, v)
		}
		if is.Stop != run.NoStop && !right.RunsStopped(row.Node) || is.Paused || is.Operation != nil ||
			is.Status.Final() || row.Generation != is.Generation(row.Node) {
			c.Errorf("node %q starts in generation %d, and the run is %+v", row.Node, row.Generation, is)
		}
		if most := c.graph.MaxConcurrency; most > 0 && len(c.running) > most {
			c.Errorf("%d run at a time", len(c.running))
		}
	})
}

// hear announces the end of a job, as a report or a wake-up does.
func (c *chaos) hear(k job.Key) {
	rows, err := c.Store.Nodes(context.Background(), []job.Key{k})
	if err == nil && rows[0].Status.Final() {
		_ = c.rel.Ended(context.Background(), rows[0])
	}
}

func (c *chaos) operate(is run.Run) {
	ctx := context.Background()
	names := c.graph.Names()
	node := names[c.dice.IntN(len(names))]
	switch c.dice.IntN(20) {
	case 0, 19:
		c.stopped = true
		_, _ = c.rel.Cancel(ctx, c.key, by)
		c.calmly(func() { c.all = c.all || c.run().StopAll })
	case 1, 2:
		if is.Paused {
			_, _ = c.rel.Resume(ctx, c.key, by)
			return
		}
		_, _ = c.rel.Pause(ctx, c.key, by)
	case 3, 4, 10, 11, 12, 13:
		_, _ = c.rel.Retry(ctx, c.key, "", by)
	case 5, 14, 15:
		c.from = true
		_, _ = c.rel.Retry(ctx, c.key, node, by)
	case 6, 16, 17:
		_, _ = c.rel.RetryNode(ctx, c.key, node, by)
	case 7, 8:
		_, _ = c.rel.Skip(ctx, c.key, node, c.dice.IntN(2) == 0, by)
	default:
		_, _ = c.rel.Complete(ctx, c.key, node, []byte("1"), by)
	}
}

// rest lets the run end, without operations and without faults.
func (c *chaos) rest() {
	c.quiet = true
	for _, row := range c.running {
		c.finish(row, true)
	}
	c.running = nil
	for range 3_000 {
		any := false
		for _, row := range c.rows() {
			c.begin(row)
		}
		for _, row := range c.running {
			any = true
			c.finish(row, true)
		}
		c.running = nil
		if any || c.sweep() {
			continue
		}
		is := c.run()
		switch {
		case is.Status.Final():
			return
		case is.Paused:
			_, err := c.rel.Resume(context.Background(), c.key, by)
			c.Must(err)
		case is.Status == run.Held:
			return
		default:
			if is.WakeAt.IsZero() {
				c.Fatalf("the run is %s and has no wake-up", is.Status)
			}
			c.now = is.WakeAt
		}
	}
	c.Fatal("the run never comes to rest")
}

func (c *chaos) check() {
	is := c.run()
	if want := c.right().Status(); want != is.Status {
		c.Errorf("the run is %s, and its nodes say %s", is.Status, want)
	}
	for _, row := range c.rows() {
		if row.PendingEffects.Children() || is.Status.Final() && !row.Status.Final() {
			c.Errorf("node %q generation %d is %s with pending effects %q", row.Node, row.Generation, row.Status,
				row.PendingEffects)
		}
	}
}

// right is the run as it is, for the checks of dagtest.
func (c *chaos) right() dagtest.Run {
	rows := map[string]job.Row{}
	for _, name := range c.graph.Names() {
		rows[name] = c.current(name)
	}
	return dagtest.Run{Definition: c.graph.Definition, Item: c.run(), Rows: rows}
}

// checkEvaluated checks that the end of each node that never started agrees with the ends of its parents, unless one of
// them has begun a newer generation since.
func (c *chaos) checkEvaluated() {
	right := c.right()
	stops := c.stopped || right.OnFailure == dag.CancelRun
	for name, row := range right.Rows {
		if stops && (c.all || right.Nodes[name].RunIf != dag.Always) {
			continue
		}
		if row.Status == "" || row.Forced != job.NotForced || c.started[row.ID] > 0 || row.IsMapped() ||
			right.ParentRetried(name) {
			continue
		}
		status, reason := right.WithoutStart(name)
		if row.Status != status || row.Reason.Code != reason {
			_, _, ends := right.Verdict(name)
			c.Errorf("node %q ended %s (%s) after %v, want %s (%s)", name, row.Status, row.Reason.Code, ends, status,
				reason)
		}
	}
}

// randomGraph has n nodes; narrow ones are chains, wide ones have nodes with many parents.
func randomGraph(dice *rand.Rand, n int) dag.Definition {
	d := dag.Definition{
		Nodes:     map[string]dag.Node{},
		OnFailure: dag.Policy(dag.Policies[dice.IntN(len(dag.Policies))]),
	}
	if dice.IntN(4) == 0 {
		d.MaxConcurrency = 1 + dice.IntN(3)
	}
	name := func(i int) string { return "n" + strconv.Itoa(1000+i) }
	edges := 0
	for i := range n {
		node := dag.Node{Task: "echo"}
		if i > 0 {
			most := min(i, []int{1, 2, 3, 12}[dice.IntN(4)])
			for _, p := range dice.Perm(i)[:dice.IntN(most+1)] {
				if edges++; edges < dag.MaxEdges {
					node.DependsOn = append(node.DependsOn, name(p))
				}
			}
		}
		if dice.IntN(2) == 0 {
			node.RunIf = dag.Rule(dag.Rules[dice.IntN(len(dag.Rules))])
		}
		if dice.IntN(10) == 0 {
			node.ForEach, node.Payload = "${[1,2,3,4,5,6]}", []byte(`{"n":"${item}"}`)
			node.MaxParallel = dice.IntN(3)
		}
		d.Nodes[name(i)] = node
	}
	return d
}

//proof:of 137
func TestRun_EndsRightDespiteActsAndCrashes(t *testing.T) {
	t.Parallel()
	runs, size := 150, 12
	if testing.Short() {
		runs = 40
	}
	if n, err := strconv.Atoi(os.Getenv("RUNS")); err == nil {
		runs, size = n, 200
	}
	for seed := range runs {
		chaosOf(t, uint64(seed), size)
		if t.Failed() {
			return
		}
	}
}

func chaosOf(t *testing.T, seed uint64, size int) {
	t.Helper()
	dice := rand.New(rand.NewPCG(seed, 1))
	c := &chaos{bench: setup(t), dice: dice, operations: dice.IntN(3) * dice.IntN(6), quiet: true}
	c.atOnce = 1 // what happens between two calls changes the state of the test, and a seed is the same each time
	c.rel = c.another()
	d := randomGraph(dice, 1+dice.IntN(size))
	c.fails = func(row job.Row) bool {
		return row.ItemNo <= 1 && (uint64(row.ID[20])+uint64(row.Generation))%4 == 0
	}
	g, err := dag.Compile(d)
	c.Must(err)
	c.graph = g
	c.World.SetFaults(c.between)
	c.quiet = false
	_, _, err = c.rel.Create(context.Background(), runs.Request{Key: c.key, Definition: d})
	c.quiet = true
	if _, gone := c.Store.Run(context.Background(), c.key); gone != nil {
		c.World.Close()
		return // the run was not created
	}
	_ = err
	c.quiet = false
	for range 20 + 6*len(d.Nodes) {
		c.something()
		c.now = c.now.Add(time.Duration(dice.IntN(300)) * time.Millisecond)
		if len(c.running) == 0 {
			c.now = c.now.Add(contract.Lease)
		}
	}
	c.rest()
	c.check()
	c.checkEvaluated()
	if !c.operated && d.OnFailure != dag.CancelRun && !hasItems(d) {
		c.asExpected(g, func(node string) bool { return c.fails(c.current(node)) })
	}
	if is := c.run(); testing.Verbose() {
		t.Logf("seed %d: %s, epoch %d, %d nodes, %d retried, %d starts, acts left %d", seed, is.Status, is.Epoch,
			len(d.Nodes), len(is.Nodes), len(c.started), c.operations)
	}
	if t.Failed() {
		t.Logf("seed %d, %d nodes, policy %s, at most %d", seed, len(d.Nodes), d.OnFailure, d.MaxConcurrency)
	}
	c.World.Close()
}

func hasItems(d dag.Definition) bool {
	for _, n := range d.Nodes {
		if n.ForEach != "" {
			return true
		}
	}
	return false
}

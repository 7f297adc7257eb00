package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"punctual/functions/engine/effect"
	"punctual/functions/engine/runs/permit"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/text"
)

// facts is a run as one call reads it: first its item, then the rows of the generations that the item names.
type facts struct {
	run   run.Run
	graph *dag.Graph
	todo  *effect.List       // what the call leaves to its caller
	cause job.Row            // the job whose end is propagated; the zero Row if the whole run is reconciled
	ended map[string]job.Row // rows that were final when they were read: these never change
	// once holds the other rows while all nodes are evaluated from one read, nil otherwise. If a node ends
	// meanwhile, the process that ends it evaluates its children. It is nil when a waiter is claimed: then no other
	// process evaluates it.
	once   map[string]job.Row
	holds  bool          // a node is held
	defers bool          // a release was deferred, and the run will be reconciled for it
	joins  map[int]int64 // nodes that are to join the run's line, by number, and their generations
	passed []job.Row     // of older generations, put because there was none, and pending effects still to be cleared
	marked map[int]bool  // those of them that were claimed, and found no place

	busy    chan struct{}     // bounds how many items are put at a time, also of nodes that are evaluated at a time
	mu      sync.Mutex        // of the maps, of holds and of what they hold: several nodes may be evaluated at a time
	tags    map[string]string // of the run; nil until they are needed
	work    map[string]*work  // of mapped nodes
	permits *permit.Set
	// reserved are permits of the run for nodes that are evaluated at the same time.
	reserved map[string]permit.Permit
	tasks    map[string]job.Task
}

// work is what the items of a mapped node are made from, as one call reads it.
type work struct {
	from    madeFrom
	see     dag.Facts
	changed bool // the list was not stored, and is another one by now

	read bool     // the next two were read
	was  madeFrom // what the items of the generation before were made from; no list if it was not stored
	like bool     // it has as many items, of which those that succeeded are carried over
}

// madeFrom is what the items of a mapped node are made from. It is stored as the payload of the node's row, in the
// write that releases the node: items that are made later are made from the same values as the first, even if a node
// before them has run again meanwhile.
type madeFrom struct {
	List []json.RawMessage `json:"list"`
	// Generations are those of the nodes that the node's expressions name; 1 is left out.
	Generations map[string]int64 `json:"from,omitempty"`
}

func (r *Controller) read(ctx context.Context, k run.Key, todo *effect.List) (*facts, error) {
	is, err := r.Store.Run(ctx, k)
	if err != nil {
		return nil, err
	}
	g, err := r.Graph(ctx, is)
	if err != nil {
		return nil, fmt.Errorf("reading the graph of run %s: %w", k.ID, err)
	}
	return r.newFacts(is, g, todo), nil
}

func (r *Controller) newFacts(is run.Run, g *dag.Graph, todo *effect.List) *facts {
	return &facts{
		run: is, graph: g, todo: todo, ended: map[string]job.Row{}, joins: map[int]int64{},
		marked: map[int]bool{},
		work:   map[string]*work{}, permits: permit.New(r.Store, is, permit.HeldBy(job.Row{})),
		reserved: map[string]permit.Permit{},
		tasks:    map[string]job.Task{},
		busy:     make(chan struct{}, atOnce),
	}
}

// causeCounts says that the cause is of the current generation of its node.
func (f *facts) causeCounts() bool { return f.cause.Generation == f.run.Generation(f.cause.Node) }

// causeIsParent says that the cause is a parent of a node, in its current generation.
func (f *facts) causeIsParent(name string) bool {
	return f.cause.Status != "" && !f.cause.IsItem() && f.causeCounts() &&
		slices.Contains(f.graph.Parents(name), f.cause.Node)
}

// stopsNode says that the run, as it was read, is stopped, and that the stop ends the node unless it has ended: nothing
// of it is released any more.
func (f *facts) stopsNode(name string, now time.Time) bool {
	n := f.graph.Nodes[name]
	switch {
	case f.run.Stop == run.NoStop:
		return false
	case n.RunIf != dag.Always || !f.run.RunsAlways(now):
		return true
	}
	return len(n.DependsOn) == 0 && f.run.DueAt.After(now) // it waits with the run, of which nothing has run yet
}

// mayRelease says that the run, as it was read, lets more of a node that was released be put.
func (f *facts) mayRelease(name string, now time.Time) bool {
	return f.run.Operation == nil && !f.run.Paused && !f.stopsNode(name, now)
}

// targets are the nodes to be evaluated after the end of the cause.
func (f *facts) targets() []string {
	node := f.cause.Node
	switch {
	case f.cause.IsItem() || !f.causeCounts():
		return []string{node} // a mapped node waits for its items; a newer generation may wait for the older one
	case f.run.Epoch == 1: // before any operation on the run, all ancestors of a node end before its parents
		return f.graph.Children(node)
	}
	return append(slices.Clone(f.graph.Children(node)), f.graph.Readers(node)...)
}

// end leaves to the caller what follows the ends of nodes' jobs that were put as ended. They are not counted as
// settled.
func (f *facts) end(rows []job.Row) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, row := range rows {
		f.todo.Ended = append(f.todo.Ended, effect.End{Row: row, Unopened: true})
	}
}

// rows reads the rows of nodes in their current generations; a BLOCKED node has none.
func (r *Controller) rows(ctx context.Context, f *facts, names ...string) (map[string]job.Row, error) {
	rows := make(map[string]job.Row, len(names))
	var missing []string
	f.mu.Lock()
	for _, name := range names {
		row, known := f.ended[name]
		if !known {
			row, known = f.once[name]
		}
		switch {
		case !known:
			missing = append(missing, name)
		case row.Status != "":
			rows[name] = row
		}
	}
	f.mu.Unlock()
	read, err := r.readRows(ctx, f, missing, f.run.Job)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for n, row := range read {
		if f.once != nil && !row.Status.Final() {
			f.once[missing[n]] = row
		}
		if row.Status != "" {
			rows[missing[n]] = row
		}
	}
	return rows, nil
}

// rowsAt reads the rows of nodes at those keys, in the order of the names.
func (r *Controller) rowsAt(
	ctx context.Context, f *facts, names []string, at func(node string) job.Key,
) ([]job.Row, error) {
	rows := make([]job.Row, len(names))
	var missing []string
	var numbers []int
	f.mu.Lock()
	for n, name := range names {
		if row, ok := f.ended[name]; ok && row.Key == at(name) {
			rows[n] = row
			continue
		}
		missing, numbers = append(missing, name), append(numbers, n)
	}
	f.mu.Unlock()
	read, err := r.readRows(ctx, f, missing, at)
	for n, row := range read {
		rows[numbers[n]] = row
	}
	return rows, err
}

// readRows reads the rows of nodes at those keys, and remembers those that have ended in their current generations.
func (r *Controller) readRows(
	ctx context.Context, f *facts, names []string, at func(node string) job.Key,
) ([]job.Row, error) {
	keys := make([]job.Key, len(names))
	for n, name := range names {
		keys[n] = at(name)
	}
	read, err := r.Store.Nodes(ctx, keys)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for n, row := range read {
		if name := names[n]; row.Status.Final() && keys[n] == f.run.Job(name) {
			f.ended[name] = row
		}
	}
	return read, nil
}

func states(rows map[string]job.Row) map[string]dag.NodeState {
	is := make(map[string]dag.NodeState, len(rows))
	for name, row := range rows {
		is[name] = dag.StateOf(row)
	}
	return is
}

// items reads the rows of a mapped node's items, in order.
func (r *Controller) items(ctx context.Context, f *facts, own job.Row) ([]job.Row, error) {
	keys := make([]job.Key, own.Items)
	for i := range keys {
		keys[i] = f.run.Key.Job(own.Node, own.Generation, int64(i)+1)
	}
	return r.Store.Nodes(ctx, keys)
}

// openOlder reads the rows of nodes in the generations before the current ones that may be open, oldest first. The zero
// Row is of a generation that has none.
func (r *Controller) openOlder(ctx context.Context, f *facts, names []string) (map[string][]job.Row, error) {
	var keys []job.Key
	for _, name := range names {
		for g := f.run.Floor(name); g < f.run.Generation(name); g++ {
			keys = append(keys, f.run.Key.Job(name, g, 0))
		}
	}
	read, err := r.Store.Nodes(ctx, keys)
	if err != nil {
		return nil, err
	}
	older := map[string][]job.Row{}
	for _, name := range names {
		n := max(0, f.run.Generation(name)-f.run.Floor(name))
		older[name], read = read[:n], read[n:]
	}
	return older, nil
}

// olderAtOnce is how many generations are read at a time to find the newest that has a row.
const olderAtOnce = 4

// newestOlder reads the newest row of a node, or of an item of it, in the generations before one; found is false if
// none has a row.
func (r *Controller) newestOlder(
	ctx context.Context, f *facts, name string, generation, no int64,
) (row job.Row, found bool, err error) {
	for g := generation - 1; g > 0; {
		var keys []job.Key
		for ; g > 0 && len(keys) < olderAtOnce; g-- {
			keys = append(keys, f.run.Key.Job(name, g, no))
		}
		rows, err := r.Store.Nodes(ctx, keys)
		if err != nil {
			return row, false, err
		}
		if at := slices.IndexFunc(rows, func(o job.Row) bool { return o.Status != "" }); at >= 0 {
			return rows[at], true, nil
		}
	}
	return row, false, nil
}

// task reads a task, once in a call.
func (r *Controller) task(ctx context.Context, f *facts, name string) (job.Task, error) {
	f.mu.Lock()
	task, read := f.tasks[name]
	f.mu.Unlock()
	if read {
		return task, nil
	}
	task, err := r.Store.Task(ctx, f.run.Tenant, name)
	if err == nil {
		f.mu.Lock()
		f.tasks[name] = task
		f.mu.Unlock()
	}
	return task, err
}

// Tags reads the tags of a run: its dag's, overridden by its own.
func (r *Controller) Tags(ctx context.Context, of run.Run) (tags map[string]string, err error) {
	if !of.Tagged {
		return nil, nil
	}
	body, err := r.Store.RunContent(ctx, of.Key, run.TagsContent)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(body), &tags); err != nil {
		return nil, fault.New(fault.Undecodable, err, "reading the tags of run %s", of.ID)
	}
	return tags, nil
}

// labels are the tags of a node's job: those of the run and its dag, overridden by the node's own.
func (r *Controller) labels(ctx context.Context, f *facts, node string) (l job.Labels, err error) {
	f.mu.Lock()
	tags := f.tags
	f.mu.Unlock()
	if tags == nil && f.run.Tagged {
		if tags, err = r.Tags(ctx, f.run); err != nil {
			return l, err
		}
		f.mu.Lock()
		f.tags = tags
		f.mu.Unlock()
	}
	own := f.graph.Nodes[node].Tags
	if len(own)+len(tags) == 0 {
		return l, nil
	}
	l.Tags = string(text.MustJSON(merged(tags, own)))
	return l, nil
}

// unpark has a job of a run decided about that is not paused any more.
func (f *facts) unpark(row job.Row) {
	if !row.Parked || !row.Status.Open() || f.run.Paused {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.todo.Wake = append(f.todo.Wake, effect.Wake{Jobs: []job.Key{row.Key}})
}

// addWaiter has a node wait for a permit of the run. recheckWaiters writes it down, with all others that wait, and
// searches for a permit once more: one may have become free in between.
func (f *facts) addWaiter(name string) {
	no, _ := slices.BinarySearch(f.graph.Names(), name)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.joins[no] = f.run.Generation(name)
}

// mark names what the job whose end is propagated has taken out of the waiters. Propagated twice, it finds them once
// more.
func (f *facts) mark() int64 { return int64(permit.Hash(string(f.permits.By()))) }

// noteEnded remembers the rows of nodes that have just ended.
func (f *facts) noteEnded(rows []job.Row) {
	for _, row := range rows {
		if !row.IsItem() && row.Generation == f.run.Generation(row.Node) {
			f.ended[row.Node] = row
		}
	}
}

// Nodes reads a run, its graph, and the rows of its nodes in their current generations. A BLOCKED node has no row.
func (r *Controller) Nodes(ctx context.Context, k run.Key) (run.Run, *dag.Graph, map[string]job.Row, error) {
	f, err := r.read(ctx, k, &effect.List{})
	if err != nil {
		return run.Run{}, nil, nil, err
	}
	rows, err := r.rows(ctx, f, f.graph.Names()...)
	return f.run, f.graph, rows, err
}

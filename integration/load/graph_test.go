package load

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/workers/system"
	"punctual/workers/worker"
)

// ends collects when nodes started and ended, by the names that their payloads give them.
type ends struct {
	sync.Mutex
	ended map[string]time.Time
	waits []time.Duration // from the last parent's end to the child's start
}

// link is the payload of a node: its name, and those of its parents.
type link struct {
	Me string   `json:"me"`
	Of []string `json:"of"`
	MS int      `json:"ms"` // how long it takes
}

func (e *ends) handler(_ context.Context, j worker.Job[link]) (struct{}, error) {
	now := time.Now()
	time.Sleep(time.Duration(j.Payload.MS) * time.Millisecond)
	e.Lock()
	defer e.Unlock()
	last := time.Time{}
	for _, p := range j.Payload.Of {
		if at := e.ended[p]; at.After(last) {
			last = at
		}
	}
	if !last.IsZero() {
		e.waits = append(e.waits, now.Sub(last))
	}
	e.ended[j.Payload.Me] = time.Now()
	return struct{}{}, nil
}

func (e *ends) sorted() []time.Duration {
	e.Lock()
	defer e.Unlock()
	return slices.Sorted(slices.Values(e.waits))
}

// reads counts the units that stages read by key: of jobs, their claims, runs and dags. What the passes of each minute
// query, however much that is, is not among them.
type reads struct {
	sync.Mutex
	units float64
	// notified is what the status consumer reads to propagate ends: all but each job's row the first time, which it
	// settles.
	notified float64
	settled  map[item.Ref]bool
}

// of is the table of one stage.
func (r *reads) of(stage string, t store.Table) store.Table {
	return readTable{t, func(ref item.Ref, i item.Item) {
		if ref.Table == contract.Tasks {
			return
		}
		units := float64(max(1, (i.Size()+4<<10-1)/(4<<10))) // absent ones cost as much
		r.Lock()
		defer r.Unlock()
		r.units += units
		switch {
		case stage != "status":
		case ref.Table == contract.Runs, ref.Table == contract.Jobs && r.settled[ref]:
			r.notified += units
		case ref.Table == contract.Jobs:
			r.settled[ref] = true
		}
	}}
}

// total is what was read so far.
func (r *reads) total() (units, notified float64) {
	r.Lock()
	defer r.Unlock()
	return r.units, r.notified
}

type readTable struct {
	store.Table
	note func(item.Ref, item.Item)
}

func (t readTable) Get(ctx context.Context, ref item.Ref) (item.Item, error) {
	i, err := t.Table.Get(ctx, ref)
	if err == nil {
		t.note(ref, i)
	}
	return i, err
}

func (t readTable) GetMany(ctx context.Context, refs []item.Ref) ([]item.Item, error) {
	items, err := t.Table.GetMany(ctx, refs)
	for n, i := range items {
		t.note(refs[n], i)
	}
	return items, err
}

// ofGraphs is the product with a task "node" whose handler notes what follows what.
func ofGraphs(b testing.TB, slots int) (*shop, *ends, *reads) {
	e := &ends{ended: map[string]time.Time{}}
	r := &reads{settled: map[item.Ref]bool{}}
	registry := worker.NewRegistry()
	worker.Register(registry, "node", e.handler)
	h := openOver(b, worker.Options{Slots: slots, Hold: 10 * slots}, system.Options{Registry: registry}, r.of)
	h.call("PUT", "/tasks/node", object{"executor": "go"})
	return h, e, r
}

// chain is a graph of n nodes one after the other, and fan one of n parents and a child.
func chain(n int) object {
	nodes := object{}
	for i := range n {
		if i == 0 {
			nodes["n0"] = named("n0")
			continue
		}
		nodes[fmt.Sprintf("n%d", i)] = named(fmt.Sprintf("n%d", i), fmt.Sprintf("n%d", i-1))
	}
	return object{"nodes": nodes}
}

// The last parent takes a second longer than the others.
func fan(n int) object {
	nodes, parents := object{}, []string{}
	for i := range n {
		name := fmt.Sprintf("p%d", i)
		nodes[name], parents = named(name), append(parents, name)
		if i == 0 {
			nodes[name].(object)["payload"].(object)["ms"] = 1500
		}
	}
	nodes["join"] = named("join", parents...)
	return object{"nodes": nodes}
}

// bush is a graph of n nodes in layers of ten, each after two of the layer before.
func bush(n int) object {
	nodes := object{}
	for i := range n {
		name := fmt.Sprintf("n%d", i)
		if i < 10 {
			nodes[name] = named(name)
			continue
		}
		above := i - i%10 - 10
		nodes[name] = named(name, fmt.Sprintf("n%d", above+i%10), fmt.Sprintf("n%d", above+(i+1)%10))
	}
	return object{"nodes": nodes}
}

func named(name string, parents ...string) object {
	of := []string{}
	for _, p := range parents {
		of = append(of, "${run.id}/"+p)
	}
	n := object{"task": "node", "payload": object{"me": "${run.id}/" + name, "of": of}}
	if len(parents) > 0 {
		n["depends_on"] = parents
	}
	return n
}

// run starts a run of a dag and returns its id.
func (h *shop) run(dag string) string {
	var v struct {
		RunID string `json:"run_id"`
	}
	if err := json.Unmarshal(h.call("POST", "/dags/"+dag+"/runs", object{}), &v); err != nil {
		h.b.Fatal(err)
	}
	return v.RunID
}

// over waits until n runs have ended.
func (h *shop) over(n float64, most time.Duration) {
	h.b.Helper()
	for until := time.Now().Add(most); h.meter.Total(telemetry.RunsEnded) < n; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(until) {
			h.b.Fatalf("%v of %v runs ended within %s", h.meter.Total(telemetry.RunsEnded), n, most)
		}
	}
}

// written is what was written, with indexes, of all that jobs and runs are made of.
func written(after, before item.Counts) (units float64) {
	for name, u := range after.Tables {
		if name != contract.Tasks {
			was := before.Tables[name]
			units += u.Write + u.IndexWrite - was.Write - was.IndexWrite
		}
	}
	return units
}

// price is what one run cost, in units.
type price struct {
	written, ofRun float64 // all, and what of that lies with the run
	read, notified float64 // all by key, and what of that was for ends
}

// alone plays one run of a graph in a world of its own and returns what it cost, and how its children waited.
func alone(b testing.TB, dag object) (price, []time.Duration) {
	h, e, r := ofGraphs(b, 600)
	defer h.stop()
	h.call("PUT", "/dags/g", dag)
	time.Sleep(time.Second) // the passes of the first minute
	before := h.world.Counts()
	readBefore, notifiedBefore := r.total()
	h.run("g")
	h.over(1, time.Minute)
	time.Sleep(200 * time.Millisecond) // the last acknowledgements
	after := h.world.Counts()
	read, notified := r.total()
	is, was := after.Tables[contract.Runs], before.Tables[contract.Runs]
	return price{
		written: written(after, before), ofRun: is.Write + is.IndexWrite - was.Write - was.IndexWrite,
		read: read - readBefore, notified: notified - notifiedBefore,
	}, e.sorted()
}

func BenchmarkChainNodes(b *testing.B) {
	for b.Loop() {
		const short, long = 20, 220
		few, _ := alone(b, chain(short))
		many, waits := alone(b, chain(long))
		w, r := (many.written-few.written)/(long-short), (many.read-few.read)/(long-short)
		note("units a node of a chain (at most 12 written)", "%.2f written, %.2f read", w, r)
		note("parent's end to child's start, a chain of 220 alone", "%s", spread(waits))
		if w > 12 {
			b.Errorf("a node of a chain costs %.2f write units", w)
		}
	}
}

//proof:of 133 S34
func BenchmarkJoins(b *testing.B) {
	for b.Loop() {
		one, _ := alone(b, chain(1)) // the run's item, its definition, its events
		for _, wide := range []int{5, 50, 499} {
			// The job of each parent is paid for without the edge; what the edge adds lies with the run. It reads
			// the run, the child, and at the last end all parents; the end of the run is in it.
			p, waits := alone(b, fan(wide))
			w, r := (p.ofRun-one.ofRun)/float64(wide), p.notified/float64(wide)
			note(fmt.Sprintf("units an edge of a join of %d (at most 3 written)", wide), "%.2f written, %.2f read",
				w, r)
			opened := waits[len(waits)-1]
			note(fmt.Sprintf("a join of %d starts after its last parent", wide), "%s",
				opened.Round(10*time.Microsecond))
			if opened > 200*time.Millisecond {
				b.Errorf("a join of %d starts %s after its last parent", wide, opened)
			}
			if w > 3 {
				b.Errorf("an edge of a join of %d costs %.2f write units", wide, w)
			}
		}
	}
}

func BenchmarkNodes(b *testing.B) {
	for b.Loop() {
		h, _, _ := ofGraphs(b, 500)
		h.call("PUT", "/dags/bush", bush(500))
		runs := 20
		if testing.Short() {
			runs = 2
		}
		from := time.Now()
		for range runs {
			h.run("bush")
		}
		h.over(float64(runs), 2*time.Minute)
		note("nodes, two parents each, runs of 500", "%.0f/s", float64(runs)*500/time.Since(from).Seconds())
		h.stop()
		runtime.GC()

		h, e, _ := ofGraphs(b, 500)
		h.call("PUT", "/dags/chain", chain(10))
		const rate, each = 1000, 10
		seconds := 5
		if testing.Short() {
			seconds = 1
		}
		from = time.Now()
		next := from
		for range seconds * rate / each {
			time.Sleep(time.Until(next))
			next = next.Add(time.Second * each / rate)
			go h.run("chain")
		}
		h.over(float64(seconds*rate/each), 2*time.Minute)
		took := time.Since(from)
		waits := e.sorted()
		is := float64(seconds*rate) / took.Seconds()
		note(fmt.Sprintf("parent's end to child's start at %.0f nodes/s", is), "%s", spread(waits))
		h.stop()
	}
}

//proof:of 142
func BenchmarkRunsAtATime(b *testing.B) {
	for b.Loop() {
		runs := 100
		if testing.Short() {
			runs = 5
		}
		one, _ := alone(b, bush(500))
		h, _, r := ofGraphs(b, 500)
		h.call("PUT", "/dags/bush", bush(500))
		before, _ := r.total()
		from := time.Now()
		var wg sync.WaitGroup
		for range runs {
			wg.Go(func() { h.run("bush") })
		}
		wg.Wait()
		h.over(float64(runs), 10*time.Minute)
		took := time.Since(from)
		all, _ := r.total()
		all -= before
		note(fmt.Sprintf("%d runs of 500 nodes at a time", runs),
			"%s, %.0f nodes/s; read units a node %.2f (alone %.2f)", took.Round(10*time.Millisecond),
			float64(runs)*500/took.Seconds(), all/float64(runs)/500, one.read/500)
		if all > 1.1*one.read*float64(runs) {
			b.Errorf("%d runs read %.0f units, and one alone %.0f", runs, all, one.read)
		}
		h.stop()
	}
}

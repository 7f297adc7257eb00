package runs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"punctual/functions/engine/runs"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/run"
)

const (
	jobs     = 300
	jobTakes = 100 * time.Millisecond
	callIs   = 3 * time.Millisecond
)

// wide is a run of 300 jobs of which n may be open at a time: items of one node, or nodes of the run.
func wide(mapped bool, n int) dag.Definition {
	d := dag.Definition{Nodes: map[string]dag.Node{}}
	if mapped {
		list, _ := json.Marshal(make([]int, jobs))
		d.Params = map[string]json.RawMessage{"l": list}
		d.Nodes["m"] = dag.Node{Task: "echo", ForEach: "${params.l}", MaxParallel: n}
		return d
	}
	d.MaxConcurrency = n
	for i := range jobs {
		d.Nodes[fmt.Sprintf("n%03d", i)] = dag.Node{Task: "echo"}
	}
	return d
}

// played is how a run went.
type played struct {
	took  time.Duration // until the last job was done
	open  int64         // jobs that were open at a time, at most
	later int           // how many other invocations were asked for
}

// claim starts a job with the calls that a worker makes: it claims the attempt, and reads the run and the row.
func (b *bench) claim(k job.Key) (row job.Row, ok bool) {
	ctx := context.Background()
	owner := job.Owner{Worker: "w", Nonce: string(k.ID), LeaseUntil: b.Now().Add(contract.Lease), DueAt: b.Now()}
	_, err := b.Store.WriteClaim(ctx, job.ClaimNew(k, 1, owner))
	is, err2 := b.Store.Run(ctx, b.key)
	rows, err3 := b.Store.Nodes(ctx, []job.Key{k})
	if err != nil || err2 != nil || err3 != nil || !rows[0].Status.Open() || is.MayStart(rows[0], b.Now()) != "" {
		return row, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.started[k.ID]++
	return rows[0], true
}

// succeed settles a job with the calls that the status consumer makes, and propagates its end.
func (b *bench) succeed(row job.Row) {
	ctx := context.Background()
	rows, err := b.Store.Nodes(ctx, []job.Key{row.Key})
	if err != nil {
		b.Error(err)
		return
	}
	d, err := job.Settle(&rows[0], 1, job.Outcome{Kind: job.OutcomeSucceeded, StartedAt: b.Now(), FinishedAt: b.Now(),
		Worker: "w"}, b.Now())
	if err == nil {
		err = b.Store.PutRow(ctx, d.After, d.Write)
	}
	if err == nil {
		err = b.rel.Ended(ctx, d.After)
	}
	if err != nil {
		b.Error(err)
	}
}

// slow is a table each of whose calls takes 3 ms.
func slow() func(memory.Call) memory.Fault {
	return func(memory.Call) memory.Fault { return memory.Fault{Wait: callIs} }
}

// conflicting is a slow table that refuses a transaction while another one writes one of its items, as DynamoDB does.
func conflicting() func(memory.Call) memory.Fault {
	var mu sync.Mutex
	busy := map[item.Ref]time.Time{} // until when
	return func(c memory.Call) memory.Fault {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		for _, ref := range c.Refs {
			if now.Before(busy[ref]) {
				return memory.Fault{Wait: callIs, Fail: fault.Conflict}
			}
		}
		for _, ref := range c.Refs {
			busy[ref] = now.Add(callIs)
		}
		return memory.Fault{Wait: callIs}
	}
}

// play runs a run in virtual time with a worker for each job. Each call of the table takes 3 ms.
func play(t *testing.T, d dag.Definition, faults func() func(memory.Call) memory.Fault) (p played) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.live = true
		b.heard = make(chan job.Key, 10*jobs)
		b.World.SetFaults(faults())
		var open, most, last atomic.Int64
		over := make(chan struct{})
		go func() {
			for k := range b.heard {
				go func() {
					defer b.open.Done()
					row, ok := b.claim(k)
					if !ok {
						t.Errorf("job %s does not start", k.ID)
						return
					}
					for n := open.Add(1); n > most.Load(); {
						most.Store(n)
					}
					time.Sleep(jobTakes)
					open.Add(-1)
					last.Store(time.Now().UnixNano())
					b.succeed(row)
				}()
			}
			close(over)
		}()
		began := time.Now()
		b.create(d, func(r *runs.Request) {
			if l := d.Params["l"]; l != nil {
				r.Params = []byte(`{"l":` + string(l) + `}`)
			}
		})
		b.open.Wait()
		p = played{
			took:  time.Unix(0, last.Load()).Sub(began),
			open:  most.Load(),
			later: b.reconcileLater + len(b.endedLater),
		}
		b.World.SetFaults(nil)
		if is := b.run(); is.Status != run.Succeeded {
			t.Errorf("the run is %s", is.Status)
		}
		for id, n := range b.started {
			if n != 1 {
				t.Errorf("job %s started %d times", id, n)
			}
		}
		if len(b.started) != jobs {
			t.Errorf("%d jobs started", len(b.started))
		}
		close(b.heard)
		<-over
	})
	return p
}

// playWithin plays a run until it takes at most that long, three times at most. It returns the shortest time, and the
// highest counts. Pauses before a retry are drawn: now and then one run has several long ones.
func playWithin(
	t *testing.T, most time.Duration, d dag.Definition, faults func() func(memory.Call) memory.Fault,
) played {
	t.Helper()
	all := play(t, d, faults)
	for n := 1; n < 3 && all.took > most; n++ {
		p := play(t, d, faults)
		all.took, all.open, all.later = min(all.took, p.took), max(all.open, p.open), max(all.later, p.later)
	}
	return all
}

//proof:of F66
func TestLimits_AreUsedInFullAtAnyWidth(t *testing.T) {
	t.Parallel()
	for name, mapped := range map[string]bool{"max_concurrency": false, "max_parallel": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := time.Hour
			for _, n := range []int{10, 25, 50, 100} {
				ideal := jobTakes * jobs / time.Duration(n)
				p := playWithin(t, min(ideal*3/2, before), wide(mapped, n), slow)
				t.Logf(
					"%d at a time: %s, %.2f × ideal, at most %d open",
					n,
					p.took,
					float64(p.took)/float64(ideal),
					p.open,
				)
				if p.took > ideal*3/2 {
					t.Errorf("%d at a time take %s; ideal is %s", n, p.took, ideal)
				}
				if p.open > int64(n) {
					t.Errorf("%d jobs were open at a time; %d may be", p.open, n)
				}
				if p.took > before {
					t.Errorf("%d at a time take longer than fewer: %s after %s", n, p.took, before)
				}
				before = p.took
			}
		})
	}
}

// TestLimits_BearConflictsOfTransactions plays the same with a table that refuses transactions which meet at an item.
func TestLimits_BearConflictsOfTransactions(t *testing.T) {
	t.Parallel()
	for name, mapped := range map[string]bool{"max_concurrency": false, "max_parallel": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := time.Hour
			for _, n := range []int{10, 25, 50, 100} {
				ideal := jobTakes * jobs / time.Duration(n)
				p := playWithin(t, min(2*ideal, before), wide(mapped, n), conflicting)
				t.Logf(
					"%d at a time: %s, %.2f × ideal, %d asked for later",
					n,
					p.took,
					float64(p.took)/float64(ideal),
					p.later,
				)
				if p.took > 2*ideal || p.took > before || p.open > int64(n) || p.later > 0 {
					t.Errorf(
						"%d at a time take %s, ideal is %s; %d were open, and %d invocations were asked for",
						n,
						p.took,
						ideal,
						p.open,
						p.later,
					)
				}
				before = p.took
			}
		})
	}
}

// TestLimits_CostTheSameAtAnyWidth counts what 1,000 items read and write, by the width of their limit.
//
//proof:of F66
func TestLimits_CostTheSameAtAnyWidth(t *testing.T) {
	t.Parallel()
	read := map[int]float64{}
	for _, n := range []int{0, 10, 100, 1000} {
		b := setup(t)
		list, _ := json.Marshal(make([]int, 1000))
		d := dag.Definition{Nodes: map[string]dag.Node{"m": {Task: "echo", ForEach: "${params.l}", MaxParallel: n}},
			Params: map[string]json.RawMessage{"l": list}}
		began := time.Now()
		b.create(d, func(r *runs.Request) { r.Params = []byte(`{"l":` + string(list) + `}`) })
		created := time.Since(began)
		made := b.World.Counts()
		open := map[int]int{0: 1000}
		if n > 0 {
			open[0] = n
		}
		if got := len(b.items("m", 1)); n > 0 && got < n || n == 0 && got != 1000 {
			t.Errorf("with %d at a time, %d items were put", n, got)
		}
		for _, table := range []string{contract.Jobs, contract.Runs} {
			read[n] += made.Tables[table].Read
		}
		t.Logf("with %d at a time: %s, %.0f read units for %d items", n, created, read[n], open[0])
		if each := read[n] / float64(open[0]); n > 0 && each > 4 {
			t.Errorf("with %d at a time, each release reads %.1f units", n, each)
		}
	}
}

package runs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
)

// TestRun_GoesOnByItselfWithManyWorkers plays eight workers that know nothing but firings.
func TestRun_GoesOnByItselfWithManyWorkers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		b := setup(t)
		d := randomGraph(rand.New(rand.NewPCG(seed, 7)), 120)
		d.OnFailure, d.MaxConcurrency = dag.CancelDownstream, []int{0, 0, 4}[seed%3]
		b.fails = func(row job.Row) bool { return row.ID[20]%7 == 0 && row.ItemNo <= 1 }
		b.heard = make(chan job.Key, 10_000)
		b.create(d)
		work(b)
		g, err := dag.Compile(d)
		b.Must(err)
		is := b.run()
		if !is.Status.Final() {
			t.Errorf("seed %d: the run is %s without a sweep", seed, is.Status)
		}
		if !hasItems(d) {
			b.asExpected(g, func(node string) bool { return b.fails(b.current(node)) })
		}
		for id, n := range b.started {
			if n != 1 {
				t.Errorf("seed %d: job %s started %d times", seed, id, n)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// work lets eight workers run the jobs that are fired, until there are no more firings.
func work(b *bench) {
	ctx := context.Background()
	stop := make(chan struct{})
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for {
				select {
				case <-stop:
					return
				case k := <-b.heard:
					if rows, err := b.Store.Nodes(ctx, []job.Key{k}); err == nil && b.start(rows[0]) {
						b.finish(rows[0], true)
					}
					b.open.Done() // the jobs that it has released are fired by now
				}
			}
		})
	}
	for b.open.Wait(); b.later(); b.open.Wait() {
	}
	close(stop)
	workers.Wait()
}

// BenchmarkRun_FromParentsEndToChildsStart measures how long a child waits for its release.
func BenchmarkRun_FromParentsEndToChildsStart(b *testing.B) {
	s := setup(b)
	var waits []time.Duration
	n := 0
	for b.Loop() {
		n++
		s.key = run.Key{Tenant: "acme", ID: job.DeterministicID(noon, fmt.Sprint(n))}
		s.create(def("a", "b: a", "c: b"))
		for _, node := range []string{"a", "b"} {
			row := s.current(node)
			s.start(row)
			at := time.Now()
			s.finish(row, true)
			waits = append(waits, time.Since(at))
		}
	}
	slices.Sort(waits)
	b.ReportMetric(float64(waits[len(waits)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds()), "p99-µs")
}

package runs_test

import (
	"context"
	"fmt"
	"testing"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/run"
)

// Under a limit of over 128 places an end reads 16 buckets only, so a node may wait although another bucket has a
// free place. No end need come that sees it: the run's wake-up does, which reads all buckets.
func TestMaxConcurrency_AboveALookANodeWaitsForTheRunsWakeUpAtMost(t *testing.T) {
	t.Parallel()
	const permits, roots = 136, 129 // all places of 16 buckets, and one of the seventeenth
	nodes := make([]string, 0, 3*roots)
	for n := range roots {
		nodes = append(nodes, fmt.Sprintf("r%d", n), fmt.Sprintf("x%d: r%d", n, n), fmt.Sprintf("y%d: r%d", n, n))
	}
	d := def(nodes...)
	d.MaxConcurrency = permits
	for n := range 60 { // the ids say which buckets an end reads
		b := setup(t)
		b.key = run.Key{Tenant: "acme", ID: job.DeterministicID(noon, fmt.Sprint("run", n))}
		b.create(d)
		for root := range permits - roots {
			if b.endsAndWaits(root) {
				b.wakesUp(root)
				return
			}
		}
	}
	t.Error("in no run a node waits while there is a free place")
}

// endsAndWaits ends a root and says whether one of its two children waits. There is a free place then.
func (b *bench) endsAndWaits(root int) bool {
	b.Helper()
	row := b.current(fmt.Sprint("r", root))
	if !b.start(row) {
		b.Fatalf("%s does not start", row.Node)
	}
	b.finish(row, true)
	open := 0
	for _, row := range b.rows() {
		if row.Unfinished() {
			open++
		}
	}
	waits := b.waiting(root) > 0
	if waits && open >= b.permits() {
		b.Fatalf("%d jobs are open, and no place is free", open)
	}
	return waits
}

func (b *bench) permits() int {
	b.Helper()
	g, err := b.rel.Graph(context.Background(), b.run())
	b.Must(err)
	return g.MaxConcurrency
}

// waiting is how many children of a root have no row.
func (b *bench) waiting(root int) (n int) {
	b.Helper()
	for _, name := range []string{"x", "y"} {
		if b.current(fmt.Sprint(name, root)).Status == "" {
			n++
		}
	}
	return n
}

// wakesUp lets the run's wake-up come, and requires that nothing waits then.
func (b *bench) wakesUp(root int) {
	b.Helper()
	at := b.run().WakeAt
	if wait := at.Sub(b.now); wait > contract.RetryEvery {
		b.Errorf("the run wakes up %s later", wait)
	}
	b.now = at
	b.Must(b.rel.Due(context.Background(), b.key))
	if n := b.waiting(root); n > 0 {
		b.Errorf("%d nodes wait after the wake-up of the run", n)
	}
}

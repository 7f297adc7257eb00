package runs_test

import (
	"testing"

	"punctual/shared/dag"
	"punctual/shared/item"
	"punctual/shared/job"
)

// older turns the run into one that was made before places lay in buckets: its open jobs of that node ("" for all of
// the run) have slots.
func (b *bench) older(node string) {
	b.Helper()
	b.Write(item.Write{Ref: b.key.Ref(), Set: map[string]any{"placed": nil}})
	for no, row := range b.openRows() {
		set := map[string]any{"place": nil, "node_place": nil}
		if node == "" {
			set["slot"] = int64(no) + 1
		}
		b.Write(item.Write{Ref: row.Ref(), Set: set})
		slot := b.key.SlotRef(node, no)
		b.Write(item.Write{Ref: slot, Set: map[string]any{"holder": string(row.ID), "no": int64(no)}})
	}
	bucket := b.key.Ref()
	bucket.SK = "place#" + node + "#0"
	b.Write(item.Write{Ref: bucket, Delete: true})
	next := b.key.NextRef(node, 1)
	b.Write(item.Write{Ref: next, Delete: true})
}

// openRows are the rows of jobs that wait or run.
func (b *bench) openRows() (open []job.Row) {
	for _, row := range b.rows() {
		if row.Status.Open() {
			open = append(open, row)
		}
	}
	return open
}

// TestLimits_HoldInARunFromBefore plays a run whose jobs have slots, as they were before places lay in buckets.
func TestLimits_HoldInARunFromBefore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		d    dag.Definition
		node string
	}{
		"max_concurrency": {dag.Definition{MaxConcurrency: 2, Nodes: def("a", "b", "c", "d", "e", "f").Nodes}, ""},
		"max_parallel": {with(def("m"), "m", func(n *dag.Node) {
			n.ForEach, n.MaxParallel = "${[1,2,3,4,5,6]}", 2
		}), "m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.create(c.d)
			b.older(c.node)
			done := 0
			for {
				open := b.openRows()
				if len(open) > 2 {
					t.Fatalf("%d jobs are open after %d", len(open), done)
				}
				if len(open) == 0 {
					break
				}
				if len(open) < 2 && done < 5 {
					t.Errorf("only %d job is open after %d", len(open), done)
				}
				b.start(open[0])
				b.finish(open[0], true)
				done++
			}
			if done != 6 {
				t.Errorf("%d jobs ran", done)
			}
		})
	}
}

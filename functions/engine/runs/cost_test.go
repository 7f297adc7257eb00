package runs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"punctual/functions/engine/runs"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
)

// TestRun_StaysWithinItsCost holds the budget of the contract, in write units of both tables.
//
//proof:of 66
func TestRun_StaysWithinItsCost(t *testing.T) {
	t.Parallel()
	written := func(b *bench) float64 {
		n := b.World.Counts()
		var sum float64
		for _, table := range []string{contract.Jobs, contract.Runs, contract.Claims} {
			sum += n.Tables[table].Write + n.Tables[table].IndexWrite
		}
		return sum
	}
	t.Run("a node with one parent costs at most 12 write units", func(t *testing.T) {
		t.Parallel()
		cost := func(n int) float64 {
			b := setup(t)
			d := dag.Definition{Nodes: map[string]dag.Node{}}
			for i := range n {
				node := dag.Node{Task: "echo"}
				if i > 0 {
					node.DependsOn = []string{fmt.Sprint("n", i-1)}
				}
				d.Nodes[fmt.Sprint("n", i)] = node
			}
			b.create(d)
			b.calm()
			b.runIs(run.Succeeded)
			return written(b)
		}
		each := (cost(60) - cost(10)) / 50
		t.Logf("%.1f write units a node", each)
		if each > 12 {
			t.Errorf("%.1f write units a node", each)
		}
	})
	t.Run("an end under max_concurrency reads as much in a large run as in a small one", func(t *testing.T) {
		t.Parallel()
		each := func(n int) float64 {
			b := setup(t)
			d := dag.Definition{Nodes: map[string]dag.Node{}, MaxConcurrency: 4}
			for i := range n {
				d.Nodes[fmt.Sprintf("n%03d", i)] = dag.Node{Task: "echo"}
			}
			b.create(d)
			read := func() (sum float64) {
				for _, table := range []string{contract.Jobs, contract.Runs} {
					sum += b.World.Counts().Tables[table].Read
				}
				return sum
			}
			row := b.current("n000")
			if !b.start(row) {
				t.Fatal("the first node does not start")
			}
			before := read()
			b.finish(row, true)
			released := 0
			for _, next := range []string{"n004", "n005", "n006", "n007"} {
				if b.current(next).Status != "" {
					released++
				}
			}
			if released != 1 {
				t.Errorf("%d of the next four in line were released", released)
			}
			return read() - before
		}
		small, large := each(20), each(500)
		t.Logf("%.1f and %.1f read units", small, large)
		if large > small+10 { // the line takes up to ten more
			t.Errorf("%.1f read units of 500 nodes, and %.1f of 20", large, small)
		}
	})
	t.Run("an end of an item under max_parallel reads as much with many items as with ten", func(t *testing.T) {
		t.Parallel()
		each := func(n int) float64 {
			b := setup(t)
			list, _ := json.Marshal(make([]int, n))
			b.create(dag.Definition{Nodes: map[string]dag.Node{"m": {Task: "echo", ForEach: "${params.l}",
				MaxParallel: 3}}, Params: map[string]json.RawMessage{"l": list}},
				func(r *runs.Request) { r.Params = []byte(`{"l":` + string(list) + `}`) })
			rows, err := b.Store.Nodes(context.Background(), []job.Key{b.key.Job("m", 1, 1)})
			b.Must(err)
			if !b.start(rows[0]) {
				t.Fatal("the first item does not start")
			}
			before := b.World.Counts().Tables[contract.Jobs].Read
			b.finish(rows[0], true)
			after := b.World.Counts().Tables[contract.Jobs].Read
			rows, err = b.Store.Nodes(context.Background(), []job.Key{b.key.Job("m", 1, 4)})
			b.Must(err)
			if rows[0].Status == "" {
				t.Error("the next item was not released")
			}
			return after - before
		}
		small, large := each(20), each(1000)
		t.Logf("%.1f and %.1f read units", small, large)
		if large > small+30 {
			t.Errorf("%.1f read units of 1,000 items, and %.1f of 20", large, small)
		}
	})
	for _, wide := range []int{5, 50, 499} {
		t.Run(fmt.Sprintf("an edge of a join of %d costs at most 3 write units", wide), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			d := dag.Definition{Nodes: map[string]dag.Node{}}
			last := dag.Node{Task: "echo"}
			for i := range wide {
				name := fmt.Sprint("p", i)
				d.Nodes[name] = dag.Node{Task: "echo"}
				last.DependsOn = append(last.DependsOn, name)
			}
			d.Nodes["z"] = last
			b.create(d)
			made := b.World.Counts().Tables[contract.Runs]
			rows := b.rows()
			for _, row := range rows {
				b.start(row)
			}
			var took time.Duration
			for _, row := range rows {
				at := time.Now()
				b.finish(row, true)
				took = time.Since(at)
			}
			b.calm()
			b.runIs(run.Succeeded)
			// The cost of the parents' jobs does not depend on edges. What an edge adds is written to the run.
			n := b.World.Counts().Tables[contract.Runs]
			edge := (n.Write + n.IndexWrite - made.Write - made.IndexWrite) / float64(wide)
			t.Logf("%.2f write units an edge; it opened %s after the last end", edge, took)
			if edge > 3 {
				t.Errorf("%.2f write units an edge", edge)
			}
		})
	}
}

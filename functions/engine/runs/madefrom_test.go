package runs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"punctual/functions/engine/runs"
	"punctual/functions/stagetest"
	"punctual/shared/dag"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
)

// payloads are those of the items of a mapped node in a generation, by number; "" where there is no item yet.
func (b *bench) payloads(node string, generation, n int64) (list []string) {
	b.Helper()
	for no := range n {
		rows, err := b.Store.Nodes(context.Background(), []job.Key{b.key.Job(node, generation, no+1)})
		b.Must(err)
		list = append(list, rows[0].Payload)
	}
	return list
}

// one works on the first job that may start.
func (b *bench) one() {
	b.Helper()
	for _, row := range b.rows() {
		if b.start(row) {
			b.finish(row, true)
			return
		}
	}
	b.Error("no job may start")
}

// TestMapped_MakesAllItemsFromOneList retries, skips and completes the failed node from which a list was made while
// its items are made one by one.
//
//proof:of F64
func TestMapped_MakesAllItemsFromOneList(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	long := strings.Repeat("x", 400)
	lists := map[string]string{
		"of another length":      `nodes.a.status == "DEAD" ? [1, 2, 3, 4] : [5, 6]`,
		"of the same length":     `nodes.a.status == "DEAD" ? [1, 2, 3, 4] : [5, 6, 7, 8]`,
		"that is not in the row": `nodes.a.status == "DEAD" ? [1, 2, 3, 4, "` + long + `"] : [5]`,
	}
	operations := map[string]func(b *bench) error{
		"is retried": func(b *bench) error { _, err := b.rel.RetryNode(ctx, b.key, "a", by); return err },
		"is skipped": func(b *bench) error { _, err := b.rel.Skip(ctx, b.key, "a", false, by); return err },
		"is completed": func(b *bench) error {
			_, err := b.rel.Complete(ctx, b.key, "a", json.RawMessage("1"), by)
			return err
		},
	}
	for of, list := range lists {
		for how, operate := range operations {
			t.Run("the node before it "+how+", and would now give a list "+of, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				d := def("a", "m: a")
				m := d.Nodes["m"]
				m.RunIf, m.MaxParallel = dag.AllDone, 1
				m.ForEach, m.Payload = "${"+list+"}", []byte(`["${item}","${nodes.a.status}"]`)
				d.Nodes["m"] = m
				b.fails = func(r job.Row) bool { return r.Node == "a" && r.Generation == 1 }
				b.create(d)
				b.one()
				b.one()
				b.Must(operate(b))
				b.settle()
				own := b.current("m")
				if own.Status != job.Succeeded || own.Generation != 1 || own.Items < 4 {
					t.Fatalf("m is %s in generation %d with %d items", own.Status, own.Generation, own.Items)
				}
				for i, got := range b.payloads("m", 1, 4) {
					if want := fmt.Sprintf(`[%d,"DEAD"]`, i+1); got != want {
						t.Errorf("item %d has the payload %s, want %s", i, got, want)
					}
				}
				b.runIs(run.Succeeded)
			})
		}
	}
}

func TestMapped_CarriesOnlyItemsOverThatAreStillInItsList(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	d := def("a", "b: a", "m: b")
	wide := d.Nodes["b"]
	wide.RunIf = dag.AllDone
	d.Nodes["b"] = wide
	m := d.Nodes["m"]
	m.ForEach, m.Payload = `${nodes.a.status == "DEAD" ? [1, 2, 3] : [1, 9, 3]}`, []byte(`"${item}"`)
	d.Nodes["m"] = m
	b.fails = func(r job.Row) bool { return r.Generation == 1 && (r.Node == "a" || r.ItemNo == 3) }
	b.create(d)
	b.settle()
	b.runIs(run.Failed)
	_, err := b.rel.Retry(ctx, b.key, "", by)
	b.Must(err)
	b.settle()
	b.runIs(run.Succeeded)
	for i, want := range []int{0, 1, 1} {
		if got := b.started[b.key.Job("m", 2, int64(i)+1).ID]; got != want {
			t.Errorf("item %d of the second generation started %d times, want %d", i, got, want)
		}
	}
}

func TestMapped_OfARowWithoutItsListEndsIfTheListHasChanged(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	d := def("a", "m: a")
	m := d.Nodes["m"]
	m.RunIf, m.MaxParallel, m.ForEach = dag.AllDone, 1, `${nodes.a.status == "DEAD" ? [1, 2, 3] : [5]}`
	d.Nodes["m"] = m
	b.fails = func(r job.Row) bool { return r.Node == "a" && r.Generation == 1 }
	b.create(d)
	b.one()
	b.Must(b.Store.Put(ctx, item.Write{Ref: b.current("m").Ref(), Name: "test.older",
		Set: map[string]any{"payload": nil, "payload_size": nil}}))
	_, err := b.rel.RetryNode(ctx, b.key, "a", by)
	b.Must(err)
	b.settle()
	b.is("m", job.Dead, dag.ReasonExpressionFailed)
	b.runIs(run.Failed)
}

// TestRelease_WaitsForEveryNodeThatItReads lets propagation alone bring the runs to their end.
//
//proof:of F64
func TestRelease_WaitsForEveryNodeThatItReads(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	defined := func() dag.Definition {
		d := def("a", "b: a", "c: b")
		wide := d.Nodes["b"]
		wide.RunIf = dag.AllDone
		d.Nodes["b"] = wide
		n := d.Nodes["c"]
		n.Payload = []byte(`"${nodes.a.status} ${nodes.a.attempt}"`)
		d.Nodes["c"] = n
		return d
	}
	for name, story := range map[string]func(b *bench){
		"that runs once more": func(b *bench) {
			b.fails = func(r job.Row) bool { return r.Node == "a" && r.Generation == 1 }
			b.create(defined())
			b.one() // a dies
			_, err := b.rel.RetryNode(ctx, b.key, "a", by)
			b.Must(err)
			bRow := b.current("b")
			b.start(bRow)
			b.finish(bRow, true)
		},
		"that runs while the node between was completed": func(b *bench) {
			b.create(defined())
			_, err := b.rel.Complete(ctx, b.key, "b", nil, by)
			b.Must(err)
		},
		"that runs while the node between was skipped": func(b *bench) {
			b.create(defined())
			_, err := b.rel.Skip(ctx, b.key, "b", false, by)
			b.Must(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			story(b)
			if row := b.current("c"); row.Status != "" {
				t.Fatalf("c is %s with the payload %s before a has ended", row.Status, row.Payload)
			}
			b.runIs(run.Running)
			b.calm()
			if got := b.current("c").Payload; got != `"SUCCEEDED 1"` {
				t.Errorf("c has the payload %s", got)
			}
			b.runIs(run.Succeeded)
		})
	}
	t.Run("a run is held while the node that is read cannot go on", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		d := def("x", "a: x", "b: a", "c: b")
		n := d.Nodes["c"]
		n.Payload = []byte(`"${nodes.a.status}"`)
		d.Nodes["c"], d.OnFailure = n, dag.Hold
		b.fails = func(r job.Row) bool { return r.Node == "x" }
		b.create(d)
		b.calm()
		_, err := b.rel.Complete(ctx, b.key, "b", nil, by)
		b.Must(err)
		b.settle()
		b.runIs(run.Held)
		_, err = b.rel.Skip(ctx, b.key, "a", false, by)
		b.Must(err)
		b.calm()
		if got := b.current("c").Payload; got != `"SKIPPED"` {
			t.Errorf("c has the payload %s", got)
		}
	})
}

func TestMapped_OverAnEmptyListHasAnEmptyResult(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]dag.Rule{"all_done": dag.AllDone, "none_failed": dag.NoneFailed} {
		t.Run("behind "+name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			d := def("m", "z: m", "never: m")
			m := d.Nodes["m"]
			m.ForEach = "${[]}"
			z := d.Nodes["z"]
			z.RunIf, z.Payload = rule, []byte(`{"all":"${nodes.m.result}","n":"${size(nodes.m.result)}"}`)
			never := z
			never.Payload, never.When = nil, "size(nodes.m.result) > 0"
			d.Nodes["m"], d.Nodes["z"], d.Nodes["never"] = m, z, never
			b.create(d)
			b.calm()
			b.runIs(run.Succeeded)
			if got := b.current("z").Payload; got != `{"all":[],"n":0}` {
				t.Errorf("z has the payload %s", got)
			}
			b.is("never", job.Skipped, dag.ReasonWhenFalse)
		})
	}
	t.Run("but not one that an operator skipped", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		d := def("a", "m: a", "z: m")
		m := d.Nodes["m"]
		m.ForEach = "${[]}"
		z := d.Nodes["z"]
		z.Payload = []byte(`"${nodes.m.result}"`)
		d.Nodes["m"], d.Nodes["z"] = m, z
		b.create(d)
		_, err := b.rel.Skip(context.Background(), b.key, "m", false, by)
		b.Must(err)
		b.calm()
		if got := b.current("z").Payload; got != "null" {
			t.Errorf("z has the payload %s", got)
		}
	})
}

// TestRefusedOperation_LeavesNoContents fails the write that decides.
//
//proof:of F65
func TestRefusedOperation_LeavesNoContents(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	large := json.RawMessage(`"` + strings.Repeat("r", 500) + `"`)
	for name, c := range map[string]struct {
		node  string
		fails bool   // a has failed before
		write string // that decides
		of    func(b *bench) (string, error)
	}{
		"a complete of a node that waits": {"a", false, run.WriteTouch, func(b *bench) (string, error) {
			return b.Store.Content(ctx, b.key.Job("a", 1, 0), job.ResultContent)
		}},
		"a complete of a blocked node": {"b", false, run.WriteTouch, func(b *bench) (string, error) {
			return b.Store.Content(ctx, b.key.Job("b", 1, 0), job.ResultContent)
		}},
		"a complete of a node that failed": {"a", true, run.WriteBegin, func(b *bench) (string, error) {
			return b.Store.RunContent(ctx, b.key, "result#a#2")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.fails = func(job.Row) bool { return c.fails }
			b.create(def("a", "b: a"))
			if c.fails {
				b.calm()
			}
			b.Fail(stagetest.Named(c.write))
			if _, err := b.rel.Complete(ctx, b.key, c.node, large, by); err == nil {
				t.Fatal("the complete was not refused")
			}
			b.World.SetFaults(nil)
			if body, err := c.of(b); err == nil {
				t.Errorf("its result is there: %d bytes", len(body))
			}
		})
	}
	t.Run("a second request for a run", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		params := func(c string) func(*runs.Request) {
			return func(r *runs.Request) {
				r.Params = json.RawMessage(`{"p":"` + strings.Repeat(c, 500) + `"}`)
			}
		}
		d := def("a")
		d.Params = map[string]json.RawMessage{"p": []byte(`""`)}
		b.create(d, params("1"))
		b.create(d, params("2"))
		if got, err := b.Store.Params(ctx, b.run()); err != nil || !strings.Contains(got, "1111") {
			t.Errorf("the run has the params of the second request, %v", err)
		}
	})
}

// TestRelease_KeepsThePayloadOfTheWinner lets a release by older facts write its payload after the winner has.
//
//proof:of F65
func TestRelease_KeepsThePayloadOfTheWinner(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	second := strings.Repeat("2", 2000)
	row := job.Row{Key: b.key.Job("a", 1, 0), Version: 1, Attempt: 1, CreatedAt: b.now}
	winner, loser := row, row
	for r, payload := range map[*job.Row]string{&winner: strings.Repeat("1", 2000), &loser: second} {
		r.Hold(job.Contents{Payload: []byte(payload)})
	}
	b.Must(b.Store.KeepContents(ctx, winner, job.Contents{Payload: []byte(strings.Repeat("1", 2000))}))
	b.Must(b.Store.KeepContents(ctx, loser, job.Contents{Payload: []byte(second)}))
	if got, err := b.Store.Payload(ctx, winner); err != nil || string(got[:1]) != "1" {
		t.Errorf("the winner has the payload %.5s, %v", got, err)
	}
}

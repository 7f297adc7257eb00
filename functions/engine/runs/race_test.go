package runs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"punctual/functions/engine/runs"
	"punctual/functions/stagetest"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
)

func TestRace_HasOneResult(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, story := range map[string]func(b *bench){
		"a retry just before a child is cancelled gives the child a new generation": func(b *bench) {
			b.fails = func(r job.Row) bool { return r.Generation == 1 }
			b.create(def("a", "b: a"))
			b.Before(stagetest.Named(job.WriteAcceptEnded), func() {
				_, err := b.rel.Retry(ctx, b.key, "", by)
				b.Must(err)
			})
			b.settle()
			b.runIs(run.Succeeded)
			b.is("b", job.Succeeded, "")
		},
		"a cancel just before a release ends the released job": func(b *bench) {
			b.create(def("a", "b: a"))
			b.Before(stagetest.Named(job.WriteAccept), func() {
				_, err := b.rel.Cancel(ctx, b.key, by)
				b.Must(err)
			})
			b.settle()
			b.runIs(run.Cancelled)
			b.is("b", job.Cancelled, run.ReasonCancelled)
			if b.started[b.current("b").ID] > 0 {
				b.Error("b has started")
			}
		},
		"a skip just before a release keeps the node skipped": func(b *bench) {
			b.create(def("a", "b: a", "c: b"))
			b.Before(stagetest.Named(job.WriteAccept), func() {
				_, err := b.rel.Skip(ctx, b.key, "b", true, by)
				b.Must(err)
			})
			b.settle()
			b.runIs(run.Succeeded)
			b.is("b", job.Skipped, dag.ReasonSkippedByOperator)
			b.is("c", job.Skipped, dag.ReasonParentSkipped)
		},
		"a pause just before a release keeps the job from starting": func(b *bench) {
			b.create(def("a", "b: a"))
			b.Before(stagetest.Named(job.WriteAccept), func() {
				_, err := b.rel.Pause(ctx, b.key, by)
				b.Must(err)
			})
			b.settle()
			if b.started[b.current("b").ID] > 0 {
				b.Error("b has started")
			}
			_, err := b.rel.Resume(ctx, b.key, by)
			b.Must(err)
			b.settle()
			b.runIs(run.Succeeded)
		},
		"a cancel just before the run's end makes the run cancelled": func(b *bench) {
			b.create(def("a"))
			b.Before(stagetest.Named(run.WriteEnd), func() {
				_, err := b.rel.Cancel(ctx, b.key, by)
				b.Must(err)
			})
			b.settle()
			b.runIs(run.Cancelled)
			b.is("a", job.Succeeded, "")
		},
		"two parents that end at once release a join once": func(b *bench) {
			b.create(def("a", "c", "d: a c"))
			a, c := b.current("a"), b.current("c")
			b.start(a)
			b.start(c)
			b.finish(a, false)
			b.finish(c, false)
			b.Before(stagetest.Named(job.WriteAccept), func() {
				b.now = b.now.Add(time.Millisecond)
				b.Must(b.rel.Ended(ctx, b.current("c")))
			})
			b.Must(b.rel.Ended(ctx, b.current("a")))
			b.settle()
			b.runIs(run.Succeeded)
			if d := b.current("d").ID; b.started[d] != 1 || b.fired[d] != 1 {
				b.Errorf("d was fired %d times and started %d times", b.fired[d], b.started[d])
			}
		},
		"two retries from a node at once begin one generation": func(b *bench) {
			b.create(def("a", "b: a"))
			b.settle()
			b.Before(stagetest.Named(run.WriteBegin), func() {
				_, err := b.rel.Retry(ctx, b.key, "a", by)
				b.Must(err)
			})
			is, err := b.rel.Retry(ctx, b.key, "a", by)
			b.Must(err)
			if is.Generation("a") != 2 || is.Generation("b") != 2 {
				b.Errorf("the nodes are %v", is.Nodes)
			}
			b.settle()
			b.runIs(run.Succeeded)
		},
		"a retry from a node is refused where another began at the same time": func(b *bench) {
			b.fails = func(r job.Row) bool { return r.Node == "a" && r.Generation == 1 }
			b.create(def("a", "b: a"))
			b.settle()
			b.Before(stagetest.Named(run.WriteBegin), func() {
				_, err := b.rel.RetryNode(ctx, b.key, "a", by)
				b.Must(err)
			})
			var wrong *runs.WrongState
			if _, err := b.rel.Retry(ctx, b.key, "a", by); !errors.As(err, &wrong) {
				b.Errorf("the second one is answered %v", err)
			}
			if g := b.run().Generation("a"); g != 2 {
				b.Errorf("a is of generation %d", g)
			}
		},
		"a cancel between the two writes of a retry wins": func(b *bench) {
			b.fails = func(r job.Row) bool { return r.Node == "a" }
			b.create(def("a", "x"))
			b.start(b.current("a"))
			b.finish(b.current("a"), true)
			b.Before(stagetest.Named(run.WriteFinish), func() {
				_, err := b.rel.Cancel(ctx, b.key, by)
				b.Must(err)
			})
			if _, err := b.rel.Retry(ctx, b.key, "", by); err == nil {
				b.Error("the retry was answered")
			}
			b.settle()
			b.runIs(run.Cancelled)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(setup(t))
		})
	}
}

// TestRun_OpensAWideJoinOnce is case S34: many parents that end at the same time.
//
//proof:of 74 135 S34
func TestRun_OpensAWideJoinOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const wide = 200
	d := dag.Definition{Nodes: map[string]dag.Node{}}
	all := dag.Node{Task: "echo"}
	for i := range wide {
		name := "p" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		d.Nodes[name] = dag.Node{Task: "echo"}
		all.DependsOn = append(all.DependsOn, name)
	}
	d.Nodes["z"] = all
	b.create(d)
	before := b.World.Counts().Tables
	b.calm()
	b.runIs(run.Succeeded)
	if z := b.current("z").ID; b.started[z] != 1 || b.fired[z] != 1 {
		t.Errorf("z was fired %d times and started %d times", b.fired[z], b.started[z])
	}
	runs := b.World.Counts().Tables["runs"]
	edge := (runs.Write - before["runs"].Write) / wide
	read := (b.World.Counts().Tables["jobs"].Read - before["jobs"].Read) / wide
	t.Logf("%.2f write units of the run and %.1f read units of rows an edge", edge, read)
	if edge > 3 {
		t.Errorf("%.2f write units an edge", edge)
	}
	if read > 20 { // only who may be the last reads all parents
		t.Errorf("%.1f read units an edge", read)
	}
}

func TestRun_EndsByTheReportsOfManyLastNodes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(def("a", "b", "c", "d", "e", "f", "g"))
	b.calm()
	b.runIs(run.Succeeded)
}

func TestEnded_ReleasesAJoinThatWasCountedAcrossAResume(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	parents := []string{"p1", "p2", "p3", "p4", "p5"}
	b.create(def(append(parents, "z: p1 p2 p3 p4 p5")...))
	rows := make([]job.Row, len(parents))
	for n, p := range parents {
		rows[n] = b.current(p)
		b.start(rows[n])
	}
	for _, row := range rows[:3] {
		b.finish(row, true)
	}
	_, err := b.rel.Pause(ctx, b.key, by)
	b.Must(err)
	b.Before(stagetest.Named(run.WriteCountEnd), func() { // p4 has read the paused run, and counts after p5
		_, err := b.rel.Resume(ctx, b.key, by)
		b.Must(err)
		b.finish(rows[4], true)
	})
	b.finish(rows[3], true)
	b.is("z", job.Scheduled, "")
}

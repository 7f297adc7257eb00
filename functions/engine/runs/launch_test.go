package runs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"punctual/functions/engine/runs"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/run"
)

// launch puts a dag and begins the run of a schedule's row.
func (b *bench) launch(d dag.Definition, change func(*job.Row)) job.Reason {
	b.Helper()
	ctx := context.Background()
	b.Must(b.Store.PutDefinition(ctx, b.key.Tenant, d.Hash(), d.Encode()))
	_, _, err := b.Store.PutDag(ctx, b.key.Tenant, "etl", d.Hash(), b.now, nil)
	b.Must(err)
	row := job.Row{Key: job.Key{Tenant: b.key.Tenant, ID: b.key.ID}, DagRef: job.DagRef{Dag: "etl"},
		ScheduleRef: job.ScheduleRef{ScheduleID: "nightly"}, DueAt: b.now,
		NominalAt: b.now}
	change(&row)
	why, err := b.rel.Launch(ctx, row)
	b.Must(err)
	return why
}

func TestLaunch_TakesTheExpiryOfItsRowBeforeThatOfTheDag(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of   time.Duration // zero: the row has none
		want time.Duration
	}{"the row has one": {time.Minute, time.Minute}, "the row has none": {0, time.Hour}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			d := def("a")
			d.ExpireAfter = time.Hour
			why := b.launch(d, func(r *job.Row) {
				if c.of > 0 {
					r.ExpiryAt = noon.Add(c.of)
				}
			})
			if is := b.run(); why.Code != "" || !is.ExpiryAt.Equal(noon.Add(c.want)) {
				t.Errorf("it expires at %s: %+v", is.ExpiryAt, why)
			}
			events, _, err := b.Store.Events(context.Background(), b.key, "", 1)
			b.Must(err)
			if len(events) != 1 || events[0].By != "schedule" || events[0].Reason != "nightly" {
				t.Errorf("its events are %+v", events)
			}
		})
	}
}

func TestLaunch_SaysWhyThereIsNoRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	why := b.launch(def("a"), func(r *job.Row) { r.DagVersion = 7 })
	if why.Code != job.CodeUnknownDag || why.Message != `version 7 of the dag "etl" is gone` {
		t.Errorf("of a version that is gone it says %+v", why)
	}
	d := def("a")
	d.ParamsSchema = []byte(`{"required":["n"]}`)
	why = b.launch(d, func(*job.Row) {})
	if why.Code != job.CodeParams || !strings.Contains(why.Message, `"n" is missing`) {
		t.Errorf("without params that the schema requires it says %+v", why)
	}
}

func TestCancelLaunched_IsNoErrorWithoutARunThatGoesOn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	row := job.Row{Key: job.Key{Tenant: b.key.Tenant, ID: b.key.ID}}
	b.Must(b.rel.CancelLaunched(ctx, row, "overlap"))
	b.create(def("a"))
	b.Must(b.rel.CancelLaunched(ctx, row, "overlap"))
	b.runIs(run.Cancelled)
	if why := b.run().Reason; why.Message != "overlap" {
		t.Errorf("the run says %+v", why)
	}
	b.Must(b.rel.CancelLaunched(ctx, row, "overlap"))
}

func TestEvents_SayWhoDidWhatAndWhy(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := setup(t)
	b.fails = func(r job.Row) bool { return r.Node == "a" }
	b.create(def("a", "b", "c"), func(n *runs.Request) { n.By = runs.By{Who: "bob", Reason: "at last"} })
	a := b.current("a")
	b.start(a)
	b.finish(a, true)
	for n, operate := range []func() error{
		func() error { _, err := b.rel.Pause(ctx, b.key, by); return err },
		func() error { _, err := b.rel.Skip(ctx, b.key, "b", false, by); return err },
		func() error { _, _, err := b.rel.Redrive(ctx, a.Key); return err },
		func() error { _, err := b.rel.Cancel(ctx, b.key, by); return err },
		func() error { _, err := b.rel.Cancel(ctx, b.key, by); return err }, // refused: the run has ended
		func() error { _, err := b.rel.Retry(ctx, b.key, "a", by); return err },
	} {
		b.now = b.now.Add(time.Second)
		if err := operate(); (err != nil) != (n == 4) {
			t.Errorf("act %d: %v", n, err)
		}
	}
	b.is("b", job.Skipped, dag.ReasonSkippedByOperator)
	if why := b.current("b").Reason.Message; why != by.Reason {
		t.Errorf("the skipped node says %q", why)
	}
	events, _, err := b.Store.Events(ctx, b.key, "", 100)
	b.Must(err)
	got := ""
	for _, e := range events {
		got += fmt.Sprintf("%s %s %s by %s, because %s, %s>%s\n", e.At.Sub(noon), e.Action, e.Node, e.By, e.Reason,
			e.From, e.To)
	}
	want := fmt.Sprintf(`0s create  by bob, because at last, >BUILDING
1s pause  by alice, because because, RUNNING>PAUSED
2s skip b by alice, because because, PAUSED>PAUSED
3s retry a by redrive, because job %s was redriven, PAUSED>PAUSED
4s cancel  by alice, because because, PAUSED>CANCELLED
6s retry a by alice, because because, CANCELLED>RUNNING
`, a.ID)
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestCreate_KeepsLargeParamsBesideTheRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	large := strings.Repeat("x", run.MaxInlineParams)
	d := def("a")
	d.Params = map[string]json.RawMessage{"p": json.RawMessage(`""`)}
	d = with(d, "a", func(n *dag.Node) { n.Payload = []byte(`"${size(params.p)}"`) })
	b.create(d, func(n *runs.Request) { n.Params = []byte(`{"p":"` + large + `"}`) })
	if got := b.run().Params; got != run.ParamsInItem {
		t.Errorf("the run holds params of %d bytes", len(got))
	}
	if got := b.current("a").Payload; got != fmt.Sprint(len(large)) {
		t.Errorf("the node sees %s", got)
	}
}

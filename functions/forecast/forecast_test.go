package forecast_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"punctual/functions/forecast"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
)

type bench struct {
	*stagetest.Bench
	stage *forecast.Stage
}

func bubble(t *testing.T, name string, do func(b *bench)) {
	stagetest.Bubble(t, name, memory.Options{}, func(s *stagetest.Bench) {
		do(&bench{s, forecast.New(forecast.Deps{
			Store: s.Store, Base: s.ProcessBase(),
		})})
	})
}

func (b *bench) pass() forecast.Summary {
	b.Helper()
	sum, err := b.stage.Handle(b.Context(), nil)
	b.Must(err)
	return sum
}

func long(r *job.Row) { r.Pool = "long" }

// ran puts a job as it is after one attempt of that length.
func (b *bench) ran(r job.Row, took time.Duration) {
	r.Status, r.WakeAt = job.Succeeded, time.Time{}
	r.FinishedAt = r.DueAt.Add(took)
	r.Attempts = []job.Attempt{{Attempt: 1, StartedAt: r.DueAt, FinishedAt: r.FinishedAt, Outcome: "succeeded"}}
	b.Put(r)
}

//proof:of 127
func TestForecast_MakesAPass(t *testing.T) {
	t.Parallel()
	bubble(t, "counts what is due in the next half hour, by pool", func(b *bench) {
		for n := range 10 {
			b.Due(n, 20*time.Minute)
		}
		b.Due(10, 5*time.Minute, long)
		b.Due(11, 45*time.Minute)
		sum := b.pass()
		short, long := sum.Pools["short"], sum.Pools["long"]
		if short.Due != 10 || short.Slots != 12 || long.Due != 1 || long.Slots != 2 || sum.Cut {
			b.Errorf("found %+v", sum)
		}
		var lines bytes.Buffer
		b.Must(b.Meter.Flush(&lines, time.Now()))
		if s := lines.String(); !strings.Contains(s, `"slots_wanted":12`) || !strings.Contains(s, `"due_ahead":10`) {
			b.Errorf("reported %s", s)
		}
	})
	bubble(t, "learns how long jobs take from those it saw coming", func(b *bench) {
		r := b.Due(1, time.Minute)
		for n := 2; n < 12; n++ { // one each ten seconds
			b.Due(n, 20*time.Minute+time.Duration(n)*10*time.Second)
		}
		if first := b.pass().Pools["short"]; first.Slots != 2 || first.Average != time.Second {
			b.Errorf("before any has run: %+v", first)
		}
		b.ran(r, 50*time.Second)
		time.Sleep(4 * time.Minute)
		if then := b.pass().Pools["short"]; then.Average != 50*time.Second || then.Slots != 6 {
			b.Errorf("after one of 50 s: %+v; want five at once and headroom", then)
		}
	})
	bubble(t, "compares what came with what was expected ten minutes before", func(b *bench) {
		b.Due(1, 10*time.Minute+30*time.Second)
		b.Due(2, 10*time.Minute+30*time.Second)
		if b.pass().Pools["short"].Error != nil {
			b.Error("an error was found without a forecast")
		}
		time.Sleep(9 * time.Minute)
		for n := 3; n < 6; n++ {
			b.Due(n, 90*time.Second)
		}
		e := b.pass().Pools["short"].Error
		if e == nil || *e != 3 {
			b.Errorf("the error is %v; three came in between", e)
		}
	})
	bubble(t, "takes no wake-up for a start that is none", func(b *bench) {
		b.Due(1, -time.Minute,
			func(r *job.Row) { r.WakeAt = time.Now().UTC().Truncate(time.Millisecond).Add(10 * time.Minute) })
		if sum := b.pass(); sum.Pools["short"].Due != 0 {
			b.Errorf("counted %+v", sum)
		}
	})
	bubble(t, "goes on over entries that nobody can read and a memo that is broken", func(b *bench) {
		at := time.Now().Add(10 * time.Minute)
		ref := item.Ref{Table: contract.Jobs, PK: "acme#1", SK: "not-an-id"}
		if err := b.Store.Put(b.Context(), item.Write{Ref: ref, Name: "test.put", Put: item.Item{
			contract.AttrPK: ref.PK, contract.AttrJobID: ref.SK,
			contract.AttrWakeSlice: horizon.SliceOf(at, 0).String(), contract.AttrWakeAt: at.UnixMilli(),
		}}); err != nil {
			b.Fatal(err)
		}
		b.Must(b.Store.SetForecast(b.Context(), "{broken"))
		b.Due(1, 10*time.Minute)
		if sum := b.pass(); sum.Pools["short"].Due != 1 {
			b.Errorf("counted %+v", sum)
		}
	})
	bubble(t, "fails when the index does not answer", func(b *bench) {
		b.Fault(stagetest.Every(memory.TableQuery), memory.Fault{Fail: "unavailable"})
		if _, err := b.stage.Handle(b.Context(), nil); err == nil {
			b.Error("it reported a forecast")
		}
	})
}

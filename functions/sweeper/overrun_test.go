package sweeper_test

import (
	"fmt"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/run"
	"punctual/shared/telemetry"
)

// stuck is a run whose derivation does not end: each read of the run blocks, and so do those of its job's wake-ups.
func (b *bench) stuck(heeds bool) run.Key {
	b.Helper()
	k := run.Key{Tenant: "noisy", ID: job.DeterministicID(time.Now(), "stuck")}
	b.CreateRun(k, stagetest.Graph("a"))
	end := make(chan struct{})
	b.Cleanup(func() { close(end) })
	b.World.SetFaults(func(c memory.Call) memory.Fault {
		if c.Op != memory.TableGet || c.Ref != k.Ref() {
			return memory.Fault{}
		}
		if heeds {
			return memory.Fault{Hang: true}
		}
		<-end
		return memory.Fault{Fail: fault.Unavailable}
	})
	return k
}

// TestSweeper_GoesOnWithoutARunThatDoesNotEnd sweeps for hours while the reconcile of one run never returns.
//
//proof:of F62
func TestSweeper_GoesOnWithoutARunThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	for _, heeds := range []bool{true, false} {
		bubble(t, fmt.Sprintf("the work heeds its context: %v", heeds), func(b *bench) {
			b.sweep() // the watermarks do not move
			k := b.stuck(heeds)
			at := time.Now()
			for n := range 8 * 60 {
				time.Sleep(time.Until(at.Add(time.Duration(n+1) * time.Minute)))
				lost := b.lost(n, -contract.Grace-time.Minute)
				began := time.Now()
				b.sweep()
				if took := time.Since(began); took > 25*time.Second {
					t.Fatalf("pass %d took %s", n, took)
				}
				if row := b.Row(lost.Key); !row.WakeAt.After(began) {
					t.Fatalf("pass %d left the job of another tenant as it was", n)
				}
			}
			b.World.SetFaults(nil)
			// After 15, 30 and 45 minutes, and then after 30 minutes, 1, 2 and 4 hours.
			if r, err := b.Store.Run(b.Context(), k); err != nil || r.Tries < 5 || r.Tries > 7 {
				t.Errorf("the run was derived %d times in eight hours, %v", r.Tries, err)
			}
			if aside, over := b.Meter.Total(telemetry.Quarantined), b.Meter.Total(telemetry.Overrun); aside == 0 ||
				over < 5 {
				t.Errorf("%v were set aside, and %v did not end", aside, over)
			}
		})
	}
}

func TestSweeper_RetriesARunSoonThatFailedForAMoment(t *testing.T) {
	t.Parallel()
	bubble(t, "a throttled table costs a run a minute", func(b *bench) {
		b.sweep()
		k := run.Key{Tenant: "acme", ID: job.DeterministicID(time.Now(), "run")}
		b.CreateRun(k, stagetest.Graph("a"))
		due := func() (at time.Time, tries int64) {
			r, err := b.Store.Run(b.Context(), k)
			b.Must(err)
			return r.WakeAt, r.Tries
		}
		at, _ := due()
		// what keeps the run reads it as well
		b.FaultFirst(2, stagetest.On(memory.TableGet, k.Ref()), memory.Fault{Fail: fault.Throttled})
		time.Sleep(time.Until(at) + time.Second)
		_, _ = b.stage.Handle(b.Context(), nil)
		if next, tries := due(); next.After(time.Now()) || tries != 1 {
			t.Errorf("it wakes at %s after %d tries", next, tries)
		}
		time.Sleep(time.Minute)
		b.sweep()
		if next, tries := due(); !next.After(time.Now()) || tries != 0 {
			t.Errorf("it wakes at %s after %d tries", next, tries)
		}
	})
}

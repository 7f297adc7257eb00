package decide_test

import (
	"fmt"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/job"
)

//proof:of 170
func TestDecider_RepeatsAWakeUpThatCrashed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*job.Row)
		end    func(b *bench, r job.Row) bool // it is done
	}{
		"fires": {nil, func(b *bench, r job.Row) bool { return b.HasFired(r) }},
		"finishes a stop": {func(r *job.Row) { r.Stop = job.StopCancel }, func(b *bench, r job.Row) bool {
			return b.Row(r.Key).Status == job.Cancelled && b.Claim(r.Key).Token > 0
		}},
		"expires": {func(r *job.Row) { r.StartWithin = time.Second }, func(b *bench, r job.Row) bool {
			return b.Row(r.Key).Status == job.Expired && b.Claim(r.Key).Token > 0
		}},
		"sends a dead letter": {stagetest.Dead, func(b *bench, r job.Row) bool {
			return len(b.Received(contract.RedriveQueue)) > 0
		}},
		"unparks": {func(r *job.Row) { r.Parked, r.WakeAt = true, r.DueAt },
			func(b *bench, r job.Row) bool { return b.HasFired(r) }},
	} {
		for _, lost := range []bool{false, true} {
			bubble(t, fmt.Sprintf("%s after any crash, last answer lost: %v", name, lost), func(b *bench) {
				var r job.Row
				bring := func() error {
					if now := b.Row(r.Key); now.Parked {
						_, err := b.engine.Parked(b.Context(), r.Key)
						return err
					}
					_, err := b.engine.Entry(b.Context(), stagetest.Entry(b.Row(r.Key)))
					return err
				}
				b.Crashes(lost, func(n int) {
					r = b.Overdue(n, stagetest.Late)
					if c.change != nil {
						c.change(&r)
						b.Put(r)
					}
				}, func() error {
					if r.Parked {
						_, err := b.engine.Parked(b.Context(), r.Key)
						return err
					}
					_, err := b.engine.Entry(b.Context(), stagetest.Entry(r))
					return err
				}, func(n int) {
					b.engine = b.Engine() // of a new process, which remembers nothing
					for range 4 {
						if c.end(b, r) {
							return
						}
						now := b.Row(r.Key)
						if now.WakeAt.IsZero() && (!now.Status.Final() || now.PendingEffects != job.NoPendingEffects) {
							b.Fatalf("crashed at call %d: nothing brings the job back", n)
						}
						time.Sleep(contract.Grace + time.Minute)
						b.Must(bring())
					}
					b.Errorf("crashed at call %d: it is %+v", n, b.Row(r.Key))
				})
			})
		}
	}
}

func TestDecider_FindsAJobWhoseParkingCrashed(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		bubble(t, fmt.Sprintf("finds the job after any crash, last answer lost: %v", lost), func(b *bench) {
			var r job.Row
			b.Crashes(lost, func(n int) {
				b.Pause(job.PauseAll, time.Time{})
				time.Sleep(2 * time.Second) // longer than pauses are kept
				r = b.Overdue(n, stagetest.Late)
			}, func() error {
				_, err := b.engine.Entry(b.Context(), stagetest.Entry(r))
				return err
			}, func(n int) {
				b.engine = b.Engine()
				b.Lift(job.PauseAll)
				now := b.Row(r.Key)
				if tenants, err := b.Store.ParkedTenants(b.Context()); now.Parked && (err != nil || len(tenants) == 0) {
					b.Fatalf("crashed at call %d: it is parked, and the sweeper does not know of it, %v", n, err)
				}
				time.Sleep(2 * time.Second)
				bring := func() (job.Step, error) { return b.engine.Entry(b.Context(), stagetest.Entry(now)) }
				if now.Parked {
					bring = func() (job.Step, error) { return b.engine.Parked(b.Context(), r.Key) }
				}
				if step, err := bring(); err != nil || step != job.StepFire {
					b.Fatalf("crashed at call %d: %q, %v", n, step, err)
				}
				b.RequireFired(r)
			})
		})
	}
}

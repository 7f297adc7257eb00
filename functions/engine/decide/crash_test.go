package decide_test

import (
	"fmt"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
)

// dieAt lets the first n calls be and fails everything after; the first that fails may have
// taken effect all the same. asked counts the calls.
func (b *bundle) dieAt(n int, lost bool) (asked *int) {
	asked = new(int)
	b.w.SetFaults(func(memory.Call) memory.Fault {
		*asked++
		switch {
		case *asked <= n:
			return memory.Fault{}
		case *asked == n+1 && lost:
			return memory.Fault{Lost: true}
		}
		return memory.Fault{Fail: fault.Unavailable}
	})
	return asked
}

// crashes prepares job 0, 1, 2 … and acts on it, crashing one call later each time, until the
// act gets through; after each crash, recovered looks what becomes of the job.
func (b *bundle) crashes(lost bool, prepare func(n int), act func() error, recovered func(n int)) {
	b.Helper()
	for n := range 50 {
		prepare(n)
		asked := b.dieAt(n, lost)
		err := act()
		b.w.SetFaults(nil)
		if *asked <= n {
			if n < 2 || err != nil {
				b.Errorf("%d points of crash, then %v", n, err)
			}
			return
		}
		b.waker = b.another() // the process died, and with it what it remembered
		recovered(n)
	}
	b.Error("it never gets through")
}

func TestAWakeUpThatCrashedAnywhereIsMadeGoodByTheNextOnes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*job.Row)
		end    func(b *bundle, r job.Row) bool // it came to its end
	}{
		"fire": {nil, firedOne},
		"finish a stop": {func(r *job.Row) { r.Stop = job.StopCancel }, func(b *bundle, r job.Row) bool {
			return b.row(r.Key).Status == job.Cancelled && b.claim(r.Key).Token > 0
		}},
		"expire": {func(r *job.Row) { r.StartWithin = time.Second }, func(b *bundle, r job.Row) bool {
			return b.row(r.Key).Status == job.Expired && b.claim(r.Key).Token > 0
		}},
		"send a letter": {dead, func(b *bundle, r job.Row) bool {
			return len(b.drain(contract.RedriveQueue)) > 0
		}},
		"unpark": {func(r *job.Row) { r.Parked, r.WakeAt = true, r.DueAt }, firedOne},
	} {
		for _, lost := range []bool{false, true} {
			bubble(t, fmt.Sprintf("%s, the last answer lost: %v", name, lost), func(b *bundle) {
				var r job.Row
				bring := func() error {
					if now := b.row(r.Key); now.Parked {
						_, err := b.waker.Parked(b.Context(), r.Key)
						return err
					}
					_, err := b.waker.Entry(b.Context(), entry(b.row(r.Key)))
					return err
				}
				b.crashes(lost, func(n int) {
					r = b.overdue(n, found)
					if c.change != nil {
						c.change(&r)
						b.put(r)
					}
				}, func() error {
					if r.Parked {
						_, err := b.waker.Parked(b.Context(), r.Key)
						return err
					}
					_, err := b.waker.Entry(b.Context(), entry(r))
					return err
				}, func(n int) {
					for range 4 {
						if c.end(b, r) {
							return
						}
						now := b.row(r.Key)
						if now.WakeAt.IsZero() && (!now.Status.Final() || now.Owes != job.OwesNothing) {
							b.Fatalf("crashed at call %d: nothing brings the job back", n)
						}
						time.Sleep(contract.Grace + time.Minute)
						if err := bring(); err != nil {
							b.Fatal(err)
						}
					}
					b.Errorf("crashed at call %d: it is %+v", n, b.row(r.Key))
				})
			})
		}
	}
}

// firedOne says whether the job's firing is there; what else is there is left over from others.
func firedOne(b *bundle, r job.Row) bool {
	for _, f := range b.firings() {
		if f.JobID == string(r.ID) {
			return true
		}
	}
	return false
}

func TestAParkingThatCrashedAnywhereIsFoundWhenThePauseIsLifted(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		bubble(t, fmt.Sprintf("the last answer lost: %v", lost), func(b *bundle) {
			var r job.Row
			b.crashes(lost, func(n int) {
				b.pause(job.PauseAll, time.Time{})
				time.Sleep(2 * time.Second) // what was read before the pause is old by then
				r = b.overdue(n, found)
			}, func() error {
				_, err := b.waker.Entry(b.Context(), entry(r))
				return err
			}, func(n int) {
				b.lift(job.PauseAll)
				now := b.row(r.Key)
				if tenants, err := b.store.ParkedTenants(b.Context()); now.Parked && (err != nil || len(tenants) == 0) {
					b.Fatalf("crashed at call %d: it is parked, and nobody knows, %v", n, err)
				}
				time.Sleep(2 * time.Second)
				bring := func() (job.Step, error) { return b.waker.Entry(b.Context(), entry(now)) }
				if now.Parked {
					bring = func() (job.Step, error) { return b.waker.Parked(b.Context(), r.Key) }
				}
				if step, err := bring(); err != nil || step != job.StepFire {
					b.Fatalf("crashed at call %d: %q, %v", n, step, err)
				}
				b.requireFired(r)
			})
		})
	}
}

func TestARedriveThatCrashedAnywhereMakesOneJobInTheEnd(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		bubble(t, fmt.Sprintf("the last answer lost: %v", lost), func(b *bundle) {
			var r job.Row
			b.crashes(lost, func(n int) {
				r = jobtest.Row(n, time.Now(), time.Now(), dead, func(r *job.Row) {
					r.Tagged = true
					r.SetPayload(job.Payload{In: job.InItem, Size: 7})
				})
				b.put(r)
				if err := b.store.PutPayload(b.Context(), r, []byte(`"hello"`)); err != nil {
					b.Fatal(err)
				}
				b.write(r.PutContent(job.TagsContent, `{}`))
			}, func() error {
				_, _, err := b.waker.Redrive(b.Context(), r.Key)
				return err
			}, func(n int) {
				by, _, err := b.waker.Redrive(b.Context(), r.Key)
				if err != nil {
					b.Fatal(err)
				}
				next := b.row(job.Key{Tenant: r.Tenant, ID: by})
				if got, err := b.store.Payload(b.Context(), next); err != nil || string(got) != `"hello"` {
					b.Errorf("crashed at call %d: its payload is %s, %v", n, got, err)
				}
				if next.WakeAt.IsZero() || b.row(r.Key).RedrivenBy != by {
					b.Errorf("crashed at call %d: nothing brings it back", n)
				}
			})
		})
	}
}

package decide_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
)

func TestARedrive(t *testing.T) {
	t.Parallel()
	redrive := func(b *bundle, r job.Row) (job.ID, bool) {
		b.Helper()
		by, already, err := b.waker.Redrive(b.Context(), r.Key)
		if err != nil {
			b.Fatal(err)
		}
		return by, already
	}
	bubble(t, "makes a new job of the same work, linked both ways, due now and fired", func(b *bundle) {
		r := b.overdue(1, time.Hour, dead, func(r *job.Row) { r.Attempt, r.Failures, r.Payload = 6, 6, `{"n":1}` })
		by, already := redrive(b, r)
		old, next := b.row(r.Key), b.row(job.Key{Tenant: jobtest.Tenant, ID: by})
		if already || old.RedrivenBy != by || old.Owes != job.OwesNothing || !old.WakeAt.IsZero() || old.Status != job.Dead {
			b.Errorf("already %v, old %+v", already, old)
		}
		if next.RedriveOf != r.ID || next.HandlerKey() != r.ID || next.Attempt != 1 || next.Failures != 0 || next.Payload != r.Payload || next.WakeAt.IsZero() {
			b.Errorf("new %+v", next)
		}
		b.requireFired(next)
	})
	bubble(t, "a second time answers with the job of the first", func(b *bundle) {
		r := b.overdue(1, time.Hour, dead)
		first, _ := redrive(b, r)
		time.Sleep(time.Minute)
		second, already := redrive(b, r)
		if first != second || !already || len(b.firings()) != 1 {
			b.Errorf("%s, then %s; already: %v", first, second, already)
		}
	})
	bubble(t, "that meets another one makes one job", func(b *bundle) {
		r := b.overdue(1, time.Hour, dead)
		var theirs job.ID
		inside := false
		b.w.SetFaults(func(c memory.Call) memory.Fault {
			if c.Op == memory.TableCommit && !inside {
				inside = true
				theirs, _, _ = b.another().Redrive(b.Context(), r.Key)
			}
			return memory.Fault{}
		})
		ours, already := redrive(b, r)
		if theirs == "" || theirs != ours || !already || len(b.firings()) != 1 {
			b.Errorf("they made %q and we %q, already: %v", theirs, ours, already)
		}
	})
	bubble(t, "that meets the letter's burial goes through", func(b *bundle) {
		r := b.overdue(1, time.Hour, dead)
		done := false
		b.w.SetFaults(func(c memory.Call) memory.Fault {
			if c.Op == memory.TableCommit && !done {
				done = true
				_, w := job.Bury(r, time.Now())
				b.write(w)
			}
			return memory.Fault{}
		})
		if by, already := redrive(b, r); already || b.row(r.Key).RedrivenBy != by {
			b.Errorf("already %v", already)
		}
	})
	for place, size := range map[string]int{job.InItem: 2_000, job.InBlob: 300_000} {
		bubble(t, "takes along a payload kept in a "+place+", and tags, before the new row stands", func(b *bundle) {
			payload := `"` + strings.Repeat("x", size) + `"`
			r := jobtest.Row(1, time.Now(), time.Now(), dead, func(r *job.Row) {
				r.Version, r.Tagged = 3, true
				r.SetPayload(job.Payload{In: place, Size: int64(len(payload))})
			})
			if err := b.store.PutPayload(b.Context(), r, []byte(payload)); err != nil {
				b.Fatal(err)
			}
			b.write(r.PutContent(job.TagsContent, `{"team":"billing"}`))
			b.put(r)
			var early error
			b.w.SetFaults(func(c memory.Call) memory.Fault {
				if c.Op == memory.TableCommit {
					next := job.RedriveOf(r, time.Now())
					_, errPayload := b.store.Payload(b.Context(), next)
					_, errTags := b.store.Content(b.Context(), next.Key, job.TagsContent)
					early = errors.Join(errPayload, errTags)
				}
				return memory.Fault{}
			})
			by, _ := redrive(b, r)
			next := b.row(job.Key{Tenant: jobtest.Tenant, ID: by})
			got, err := b.store.Payload(b.Context(), next)
			if err != nil || string(got) != payload || early != nil || !next.Tagged {
				b.Errorf("%d bytes came along, %v; before the row: %v", len(got), err, early)
			}
		})
	}
	bubble(t, "whose firing cannot be sent has its new job wait for the sweeper", func(b *bundle) {
		r := b.overdue(1, time.Hour, dead)
		b.failSends(firingQueue)
		by, _ := redrive(b, r)
		if next := b.row(job.Key{Tenant: jobtest.Tenant, ID: by}); !next.WakeAt.Equal(time.Now()) || next.Near {
			b.Errorf("it wakes at %s", next.WakeAt)
		}
	})
	bubble(t, "of a job that is not dead is refused, of one that is gone not found", func(b *bundle) {
		r := b.overdue(1, time.Hour)
		if _, _, err := b.waker.Redrive(b.Context(), r.Key); fault.KindOf(err) != fault.Refused {
			b.Errorf("waiting: %v", err)
		}
		if _, _, err := b.waker.Redrive(b.Context(), jobtest.Key(2)); fault.KindOf(err) != fault.NotFound {
			b.Errorf("gone: %v", err)
		}
	})
	bubble(t, "that cannot copy the payload changes nothing", func(b *bundle) {
		r := b.overdue(1, time.Hour, dead, func(r *job.Row) { r.SetPayload(job.Payload{In: job.InBlob, Size: 9}) })
		if _, _, err := b.waker.Redrive(b.Context(), r.Key); err == nil {
			b.Fatal("it went through")
		}
		if b.row(r.Key).RedrivenBy != "" {
			b.Error("the old job is linked to one without its payload")
		}
		b.requireSilence()
	})
}

package accept_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"punctual/functions/engine"
	"punctual/functions/engine/accept"
	"punctual/functions/stagetest"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
)

type bench struct {
	*stagetest.Bench
	engine *engine.Engine
}

func bubble(t *testing.T, name string, do func(b *bench)) {
	stagetest.Bubble(t, name, memory.Options{EmptyPages: true},
		func(s *stagetest.Bench) { do(&bench{s, s.Engine()}) })
}

//proof:of 109
func TestAcceptor_Redrives(t *testing.T) {
	t.Parallel()
	redrive := func(b *bench, r job.Row) (job.ID, bool) {
		b.Helper()
		by, already, err := b.engine.Redrive(b.Context(), r.Key, nil)
		b.Must(err)
		return by, already
	}
	//proof:of 194
	bubble(t, "makes a new job that is linked both ways, due now and fired", func(b *bench) {
		r := b.Overdue(1, time.Hour, stagetest.Dead,
			func(r *job.Row) { r.Attempt, r.Failures, r.Payload = 6, 6, `{"n":1}` })
		by, already := redrive(b, r)
		old, next := b.Row(r.Key), b.Row(job.Key{Tenant: jobtest.Tenant, ID: by})
		if already || old.RedrivenBy != by || old.PendingEffects != job.NoPendingEffects || !old.WakeAt.IsZero() ||
			old.Status != job.Dead {
			b.Errorf("already %v, old %+v", already, old)
		}
		if next.RedriveOf != r.ID || next.HandlerKey() != r.ID || next.Attempt != 1 || next.Failures != 0 ||
			next.Payload != r.Payload || next.WakeAt.IsZero() {
			b.Errorf("new %+v", next)
		}
		b.RequireFired(next)
	})
	bubble(t, "a second redrive answers with the job of the first", func(b *bench) {
		r := b.Overdue(1, time.Hour, stagetest.Dead)
		first, _ := redrive(b, r)
		time.Sleep(time.Minute)
		second, already := redrive(b, r)
		if first != second || !already {
			b.Errorf("%s, then %s; already: %v", first, second, already)
		}
	})
	bubble(t, "a second redrive sends the firing again until a worker has claimed the new job", func(b *bench) {
		r := b.Overdue(1, time.Hour, stagetest.Dead)
		b.Fail(stagetest.To(memory.QueueSend, stagetest.FiringQueue))
		by, _ := redrive(b, r)
		b.World.SetFaults(nil)
		redrive(b, r)
		next := b.Row(job.Key{Tenant: jobtest.Tenant, ID: by})
		b.RequireFired(next)
		b.Own(next, time.Minute)
		redrive(b, r)
		b.RequireSilence()
	})
	bubble(t, "two redrives at once make one job", func(b *bench) {
		r := b.Overdue(1, time.Hour, stagetest.Dead)
		var theirs job.ID
		b.Before(stagetest.Every(memory.TableCommit), func() {
			theirs, _, _ = b.Engine().Redrive(b.Context(), r.Key, nil)
		})
		ours, already := redrive(b, r)
		if fired := b.Fired(); theirs == "" || theirs != ours || !already || len(fired) != 1 {
			b.Errorf("the other redrive made %q and this one %q, already: %v", theirs, ours, already)
		}
	})
	bubble(t, "of two redrives with other corrections at once one makes the job, payload and labels", func(b *bench) {
		r := jobtest.Row(1, time.Now(), time.Now(), stagetest.Dead,
			func(r *job.Row) { r.Payload, r.Tagged = `"old"`, true })
		b.Write(r.PutContent(job.TagsContent, `{"by":"old"}`))
		b.Put(r)
		corrected := func(by string) accept.Correct {
			return func(_ job.Row, next *accept.Draft, now time.Time) error {
				next.Payload = []byte(`"` + by + strings.Repeat("x", 2_000) + `"`)
				next.Labels = job.Labels{Tags: `{"by":"` + by + `"}`}
				next.Row.Priority, next.Row.DueAt = job.High, now.Add(time.Hour)
				return nil
			}
		}
		b.Before(stagetest.Every(memory.TableCommit), func() {
			_, _, err := b.Engine().Redrive(b.Context(), r.Key, corrected("theirs"))
			b.Must(err)
		})
		by, already, err := b.engine.Redrive(b.Context(), r.Key, corrected("ours"))
		b.Must(err)
		next := b.Row(job.Key{Tenant: jobtest.Tenant, ID: by})
		payload, err := b.Store.Payload(b.Context(), next)
		b.Must(err)
		labels, err := b.Store.LabelsOf(b.Context(), next)
		b.Must(err)
		if !already || !strings.HasPrefix(string(payload), `"theirs`) || labels[0].Tags != `{"by":"theirs"}` {
			b.Errorf("already %v, payload %.10s, tags %s", already, payload, labels[0].Tags)
		}
		if next.Priority != job.High || !next.DueAt.Equal(time.Now().Add(time.Hour)) || next.RedriveOf != r.ID {
			b.Errorf("%+v", next)
		}
		b.RequireSilence()
	})
	bubble(t, "a redrive succeeds while the dead letter is buried", func(b *bench) {
		r := b.Overdue(1, time.Hour, stagetest.Dead)
		b.Before(stagetest.Every(memory.TableCommit), func() {
			_, w := job.Bury(r, time.Now())
			b.Write(w)
		})
		if by, already := redrive(b, r); already || b.Row(r.Key).RedrivenBy != by {
			b.Errorf("already %v", already)
		}
	})
	for in, size := range map[string]int{job.InItem: 2_000, job.InBlob: 300_000} {
		bubble(t, "copies a payload in a "+in+" before the new row is written, and the tags with it", func(b *bench) {
			payload := `"` + strings.Repeat("x", size) + `"`
			r := jobtest.Row(1, time.Now(), time.Now(), stagetest.Dead, func(r *job.Row) {
				r.Version, r.Tagged = 3, true
				r.SetPayload(job.Payload{In: in, Size: int64(len(payload))})
			})
			b.Must(b.Store.PutPayload(b.Context(), r, []byte(payload)))
			b.Write(r.PutContent(job.TagsContent, `{"team":"billing"}`))
			b.Put(r)
			var early error
			b.Each(stagetest.Every(memory.TableCommit), func(memory.Call) {
				next := job.RedriveOf(r, time.Now())
				next.Hold(job.Contents{Payload: []byte(payload)})
				_, early = b.Store.Payload(b.Context(), next)
			})
			by, _ := redrive(b, r)
			next := b.Row(job.Key{Tenant: jobtest.Tenant, ID: by})
			got, err := b.Store.Payload(b.Context(), next)
			tags, errTags := b.Store.Content(b.Context(), next.Key, job.TagsContent)
			if err != nil || string(got) != payload || early != nil || !next.Tagged || tags != `{"team":"billing"}` {
				b.Errorf("%d bytes came along, %v; before the row: %v; tags %s, %v", len(got), err, early, tags,
					errTags)
			}
		})
	}
	bubble(t, "a new job whose firing cannot be sent waits for the sweeper", func(b *bench) {
		r := b.Overdue(1, time.Hour, stagetest.Dead)
		b.Fail(stagetest.To(memory.QueueSend, stagetest.FiringQueue))
		by, _ := redrive(b, r)
		if next := b.Row(job.Key{Tenant: jobtest.Tenant, ID: by}); !next.WakeAt.Equal(time.Now()) || next.Near {
			b.Errorf("it wakes at %s", next.WakeAt)
		}
	})
	bubble(t, "a job that is not dead is refused, and one that is gone is not found", func(b *bench) {
		r := b.Overdue(1, time.Hour)
		if _, _, err := b.engine.Redrive(b.Context(), r.Key, nil); fault.KindOf(err) != fault.Refused {
			b.Errorf("waiting: %v", err)
		}
		if _, _, err := b.engine.Redrive(b.Context(), jobtest.Key(2), nil); fault.KindOf(err) != fault.NotFound {
			b.Errorf("gone: %v", err)
		}
	})
	bubble(t, "a redrive that cannot copy the payload changes nothing", func(b *bench) {
		r := b.Overdue(1, time.Hour, stagetest.Dead,
			func(r *job.Row) { r.SetPayload(job.Payload{In: job.InBlob, Size: 9}) })
		if _, _, err := b.engine.Redrive(b.Context(), r.Key, nil); err == nil {
			b.Fatal("it went through")
		}
		if b.Row(r.Key).RedrivenBy != "" {
			b.Error("the old job is linked to one without its payload")
		}
		b.RequireSilence()
	})
}

func TestAcceptor_RedrivesOnceAfterACrash(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		bubble(t, fmt.Sprintf("redrives once after any crash, last answer lost: %v", lost), func(b *bench) {
			var r job.Row
			b.Crashes(lost, func(n int) {
				r = jobtest.Row(n, time.Now(), time.Now(), stagetest.Dead, func(r *job.Row) {
					r.Tagged = true
					r.SetPayload(job.Payload{In: job.InItem, Size: 7})
				})
				b.Put(r)
				b.Must(b.Store.PutPayload(b.Context(), r, []byte(`"hello"`)))
				b.Write(r.PutContent(job.TagsContent, `{}`))
			}, func() error {
				_, _, err := b.engine.Redrive(b.Context(), r.Key, nil)
				return err
			}, func(n int) {
				b.engine = b.Engine() // of a new process, which remembers nothing
				by, _, err := b.engine.Redrive(b.Context(), r.Key, nil)
				b.Must(err)
				next := b.Row(job.Key{Tenant: r.Tenant, ID: by})
				if got, err := b.Store.Payload(b.Context(), next); err != nil || string(got) != `"hello"` {
					b.Errorf("crashed at call %d: its payload is %s, %v", n, got, err)
				}
				if next.WakeAt.IsZero() || b.Row(r.Key).RedrivenBy != by {
					b.Errorf("crashed at call %d: nothing brings it back", n)
				}
			})
		})
	}
}

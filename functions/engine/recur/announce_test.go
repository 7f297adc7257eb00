package recur_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"punctual/functions/engine"
	"punctual/functions/stagetest"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/schedule"
)

// announcing continues in a new process that announces events.
func (b *bench) announcing() {
	base := b.ProcessBase()
	base.Announced = true
	b.engine = engine.New(engine.Deps{Base: base, Store: b.Store, Queue: b.World.Queues()})
}

// hook puts a webhook that asks for these events, and begins a new process.
func (b *bench) hook(events ...string) {
	b.Helper()
	b.Subscribe(events...)
	b.announcing()
}

// sent are the events of a schedule that are delivered, the oldest first, each by one job: its type and what it says.
func (b *bench) sent(name string) (list []string) {
	b.Helper()
	type data struct {
		Sequence    int64
		First, Last time.Time
		Count       int
		Reason      job.Reason `json:"status_reason"`
		Paused      struct{ By string }
	}
	type event struct {
		Type string
		Data data
	}
	var events []event
	for _, e := range b.Delivered() {
		if e.Subject == "schedule/"+name {
			var d data
			b.Must(json.Unmarshal(e.Data, &d))
			events = append(events, event{e.Type, d})
		}
	}
	slices.SortFunc(events, func(a, c event) int { return int(a.Data.Sequence - c.Data.Sequence) })
	for n, e := range events {
		if n > 0 && e.Data.Sequence == events[n-1].Data.Sequence {
			b.Errorf("two events have the sequence %d", e.Data.Sequence)
		}
		says := strings.TrimPrefix(e.Type, "punctual.schedule.")
		if d := e.Data; d.Count > 0 {
			says += fmt.Sprintf(" %d %s-%s", d.Count, d.First.Format("15:04"), d.Last.Format("15:04"))
		}
		if e.Data.Reason.Code != "" {
			says += " " + e.Data.Reason.Code
		}
		if by := e.Data.Paused.By; by != "" {
			says += " by " + by
		}
		list = append(list, says)
	}
	return list
}

func (b *bench) requireSent(s schedule.Schedule, want ...string) {
	b.Helper()
	if got := b.sent(s.Name); !slices.Equal(got, want) {
		b.Errorf("sent %q, want %q", got, want)
	}
	if is := b.Schedule(s.Key); len(is.Events) != 0 {
		b.Errorf("still pending: %+v", is.Events)
	}
}

func TestRecurrer_AnnouncesWhatBecomesOfSchedules(t *testing.T) {
	t.Parallel()
	bubble(t, "times that were missed, one event for an entry of the ledger", func(b *bench) {
		b.hook("schedule.*")
		s := b.put()
		b.promote(s)
		time.Sleep(3 * time.Hour)
		from := b.Schedule(s.Key).Next
		b.promote(s)
		entries, _, err := b.Store.Recorded(b.Context(), s.Key, time.Time{}, time.Time{}, false, 10, "")
		b.Must(err)
		e := entries[0]
		b.requireSent(s, fmt.Sprintf("missed %d %s-%s outage", e.Count, from.Format("15:04"), e.To.Format("15:04")))
		b.promote(s)
		b.requireSent(s, b.sent(s.Name)...)
	})
	bubble(t, "its end, once, when it has no more times", func(b *bench) {
		b.hook("schedule.ended")
		end := stagetest.Now().Add(3 * time.Minute).Format(time.RFC3339)
		s := b.put(func(s *schedule.Schedule) { s.Spec.EndAt = &end })
		b.promote(s)
		b.promote(s)
		b.requireSent(s, "ended")
	})
	bubble(t, "its pause after failures", func(b *bench) {
		b.hook("schedule.paused")
		s := b.put(func(s *schedule.Schedule) { s.PauseAfter = 1 })
		b.promote(s)
		r := b.rows(s)[0]
		r.Status, r.FinishedAt, r.WakeAt = job.Dead, stagetest.Now(), time.Time{}
		b.Must(b.engine.Ended(b.Context(), b.Put(r)))
		b.requireSent(s, "paused by punctual")
	})
	bubble(t, "only what a webhook asks for is noted, and without one nothing is written", func(b *bench) {
		b.hook("schedule.ended")
		s := b.put()
		b.promote(s)
		time.Sleep(3 * time.Hour)
		b.promote(s)
		if b.requireSent(s); b.Schedule(s.Key).Sequence != 0 {
			b.Errorf("%+v", b.Schedule(s.Key))
		}
	})
	bubble(t, "its end at max_runs, by the next promotion if the process that noted it crashed", func(b *bench) {
		b.hook("schedule.*")
		s := b.put()
		b.promote(s)
		s = b.Schedule(s.Key)
		s.Announced = schedule.AllKinds
		_, w := schedule.End(s, job.CodeMaxRuns, stagetest.Now())
		b.Write(w)
		b.promote(s)
		b.requireSent(s, "ended max_runs")
	})
}

func TestRecurrer_LosesNoEventByACrash(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		bubble(t, fmt.Sprintf("missed times, last answer lost: %v", lost), func(b *bench) {
			b.hook("schedule.*")
			for n := range 200 {
				cron := "*/10 * * * *"
				s := b.put(func(s *schedule.Schedule) { s.Name, s.Spec.Cron = fmt.Sprintf("s%d", n), &cron })
				b.promote(s)
				time.Sleep(90 * time.Minute)
				asked := b.DieAt(n, lost)
				_, err := b.engine.Recur.Promote(b.Context(), s.Key)
				b.World.SetFaults(nil)
				b.announcing()
				if b.Schedule(s.Key).Slice() == "" {
					b.Fatalf("crashed at call %d: nothing brings it back", n)
				}
				done := *asked <= n
				time.Sleep(2 * time.Minute)
				b.promote(s)
				if got := b.sent(s.Name); len(got) != 1 || !strings.HasPrefix(got[0], "missed ") {
					b.Errorf("crashed at call %d: sent %q", n, got)
				}
				if done {
					if err != nil || n < 8 {
						b.Errorf("%d points of crash, then %v", n, err)
					}
					return
				}
			}
			b.Error("it never gets through")
		})
		bubble(t, fmt.Sprintf("a pause after failures, last answer lost: %v", lost), func(b *bench) {
			b.hook("schedule.paused")
			var s schedule.Schedule
			var r job.Row
			prepare := func(n int) {
				s = b.put(func(s *schedule.Schedule) { s.Name, s.PauseAfter = fmt.Sprintf("p%d", n), 1 })
				b.promote(s)
				r = b.rows(s)[0]
				r.Status, r.FinishedAt, r.WakeAt = job.Dead, stagetest.Now(), time.Time{}
				b.Put(r)
				b.announcing()
			}
			b.Crashes(lost, prepare, func() error { return b.engine.Ended(b.Context(), r) }, func(n int) {
				b.announcing()
				b.Must(b.engine.Ended(b.Context(), r)) // its dead letter is sent once more
				b.promote(s)
				b.requireSent(s, "paused by punctual")
			})
		})
	}
}

// Two promotions at once may both record times; each event is delivered once.
func TestRecurrer_AnnouncesOnceWhenTwoPromote(t *testing.T) {
	t.Parallel()
	for _, op := range []string{memory.TableGet, memory.TableCommit, memory.TableWrite} {
		bubble(t, "another promotion before "+op, func(b *bench) {
			b.hook("schedule.*")
			s := b.put()
			b.promote(s)
			time.Sleep(3 * time.Hour)
			b.Before(stagetest.Every(op), func() { b.promote(s) })
			_, err := b.engine.Recur.Promote(b.Context(), s.Key)
			b.Must(err)
			b.requireSent(s, b.sent(s.Name)[0])
		})
	}
}

package recur_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"punctual/functions/engine"
	"punctual/functions/engine/recur"
	"punctual/functions/engine/scan"
	"punctual/functions/stagetest"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/schedule"
	"punctual/shared/store"
)

type bench struct {
	*stagetest.Bench
	engine *engine.Engine
}

// restart continues in a new process, which remembers nothing.
func (b *bench) restart() { b.engine = b.Engine() }

func bubble(t *testing.T, name string, do func(b *bench)) { bubbleOf(t, name, memory.Options{}, do) }

func bubbleOf(t *testing.T, name string, o memory.Options, do func(b *bench)) {
	stagetest.Bubble(t, name, o, func(s *stagetest.Bench) {
		b := &bench{Bench: s}
		b.restart()
		do(b)
	})
}

// put puts a minutely schedule, changed as each says.
func (b *bench) put(change ...func(*schedule.Schedule)) schedule.Schedule {
	b.Helper()
	return b.Create(stagetest.Schedule("s", "* * * * *", change...))
}

// sweep decides about the row as the sweeper does, and returns the step.
func (b *bench) sweep(r job.Row) job.Step { b.Helper(); return b.Sweep(b.engine, r) }

func (b *bench) promote(s schedule.Schedule) recur.Promoted {
	b.Helper()
	did, err := b.engine.Recur.Promote(b.Context(), s.Key)
	b.Must(err)
	return did
}

func (b *bench) rows(s schedule.Schedule) []job.Row {
	b.Helper()
	jobs, _, err := b.Store.JobsOf(b.Context(), s.Key, time.Time{}, time.Time{}, false, 1000, "")
	b.Must(err)
	var rows []job.Row
	for _, j := range jobs {
		r := b.Row(j.Key)
		rows = append(rows, r)
	}
	return rows
}

func TestRecurrer_Promotes(t *testing.T) {
	t.Parallel()
	bubble(t, "makes each job inside the horizon once", func(b *bench) {
		s := b.put()
		if did := b.promote(s); did.Made != 30 {
			b.Errorf("it did %+v", did)
		}
		if did := b.promote(s); did != (recur.Promoted{}) {
			b.Errorf("the second promotion did %+v", did)
		}
		rows := b.rows(s)
		if len(rows) != 30 || b.Schedule(s.Key).WakeAt.Before(time.Now().Add(contract.Horizon)) {
			b.Errorf("%d rows, wake-up %s", len(rows), b.Schedule(s.Key).WakeAt)
		}
		for n, r := range rows {
			if !r.Near || r.Epoch != 1 || !r.DueAt.Equal(rows[0].DueAt.Add(time.Duration(n)*time.Minute)) {
				b.Errorf("row %+v", r)
			}
		}
	})
	//proof:of 12
	bubble(t, "two promotions at once make each job once and move the schedule on", func(b *bench) {
		s := b.put()
		var both sync.WaitGroup
		made := make([]int, 2)
		for n := range 2 {
			both.Go(func() {
				did, err := b.Engine().Recur.Promote(b.Context(), s.Key)
				if err != nil {
					b.Error(err)
				}
				made[n] = did.Made
			})
		}
		both.Wait()
		if made[0]+made[1] != 30 || len(b.rows(s)) != 30 {
			b.Errorf("made %v, %d rows", made, len(b.rows(s)))
		}
	})
	bubble(t, "leaves the contents of a newer template as they are", func(b *bench) {
		template := func(s *schedule.Schedule, digit string) {
			body := []byte(strings.Repeat(digit, 2000))
			s.SetPayload(body)
			s.Template.Labels = job.Labels{Tags: `{"of":"` + digit + `"}`}
			b.Must(b.Store.PutSchedulePayload(b.Context(), *s, body))
		}
		s := b.put(func(s *schedule.Schedule) { template(s, "1") })
		b.Before(stagetest.Named(job.WriteAccept), func() { // the first row, after its payload
			edited := b.Schedule(s.Key)
			template(&edited, "2")
			_, w, err := schedule.Edit(b.Schedule(s.Key), edited, nil, stagetest.Now())
			if err != nil {
				b.Error(err)
			}
			b.Write(w...)
			b.promote(s)
		})
		_, _ = b.engine.Recur.Promote(b.Context(), s.Key)
		b.World.SetFaults(nil)
		b.promote(s)
		for _, r := range b.rows(s) {
			got, err := b.Store.Payload(b.Context(), r)
			kept, err2 := b.Store.LabelsOf(b.Context(), r)
			if err != nil || err2 != nil || !strings.HasPrefix(string(got), "2") || kept[0].Tags != `{"of":"2"}` {
				b.Errorf(
					"epoch %d has the payload %.3s and the labels %s, %v, %v",
					r.Epoch,
					got,
					kept[0].Tags,
					err,
					err2,
				)
			}
		}
	})
	bubble(t, "keeps the payload and the labels of each job", func(b *bench) {
		labels := job.Labels{Tags: `{"team":"billing"}`, Metadata: `{"a":1}`}
		body := make([]byte, 2000)
		for i := range body {
			body[i] = '1'
		}
		s := b.put(func(s *schedule.Schedule) {
			s.SetPayload(body)
			s.Template.Labels = labels
			b.Must(b.Store.PutSchedulePayload(b.Context(), *s, body))
		})
		b.promote(s)
		edited := b.Schedule(s.Key)
		edited.Template.Priority = job.High
		_, w, err := schedule.Edit(b.Schedule(s.Key), edited, nil, stagetest.Now())
		b.Must(err)
		b.Write(w...)
		if did := b.promote(s); did.Adopted != 30 {
			b.Errorf("adopted %+v", did)
		}
		for _, r := range b.rows(s) {
			got, err := b.Store.Payload(b.Context(), r)
			kept, err2 := b.Store.LabelsOf(b.Context(), r)
			if err != nil || err2 != nil || string(got) != string(body) || kept[0] != labels || r.Version != 2 ||
				r.Epoch != 2 || r.Priority != job.High || r.PayloadVer == 0 {
				b.Fatalf("%d bytes, labels %q, %v, %v: %+v", len(got), kept, err, err2, r)
			}
			if r.Size() > contract.MaxRow {
				b.Errorf("%d bytes", r.Size())
			}
		}
	})
	bubble(t, "decides anew when an edit replaces the payload that it is about to read", func(b *bench) {
		body := func(char string) []byte { return []byte(`"` + strings.Repeat(char, 300<<10) + `"`) }
		set := func(s *schedule.Schedule, payload []byte) {
			s.SetPayload(payload)
			b.Must(b.Store.PutSchedulePayload(b.Context(), *s, payload))
		}
		hourly := "0 * * * *"
		time.Sleep(45 * time.Minute)
		s := b.put(func(s *schedule.Schedule) { s.Spec.Cron = &hourly; set(s, body("a")) })
		b.Before(stagetest.Every(memory.BlobGet), func() {
			edited := s
			set(&edited, body("b"))
			after, w, err := schedule.Edit(s, edited, nil, stagetest.Now())
			b.Must(err)
			b.Write(w...)
			b.Must(b.Store.ForgetReplaced(b.Context(), s, after))
		})
		if did := b.promote(s); did.Made != 1 {
			b.Errorf("it did %+v", did)
		}
		if got, err := b.Store.Payload(b.Context(), b.rows(s)[0]); err != nil || string(got) != string(body("b")) {
			b.Errorf("the job has %.5s, %v", got, err)
		}
	})
	bubble(t, "leaves a paused, a deleted and an absent schedule alone", func(b *bench) {
		s := b.put()
		paused, w := schedule.PauseSchedule(s, schedule.Pause{}, stagetest.Now())
		b.Write(w)
		if did := b.promote(s); did.Made != 0 {
			b.Errorf("paused: %+v", did)
		}
		_, ws := schedule.Delete(paused, nil, stagetest.Now())
		b.Write(ws...)
		if did := b.promote(s); did.Made != 0 {
			b.Errorf("deleted: %+v", did)
		}
		s.Name = "other"
		if did := b.promote(s); did.Made != 0 {
			b.Errorf("absent: %+v", did)
		}
	})
	bubble(t, "resumes a schedule whose pause has passed its until, and unparks its jobs", func(b *bench) {
		s := b.put()
		_, w := schedule.PauseSchedule(s, schedule.Pause{Until: stagetest.Now().Add(time.Hour)}, stagetest.Now())
		b.Write(w)
		time.Sleep(time.Hour - time.Millisecond)
		if did := b.promote(s); did.Made != 0 || b.Schedule(s.Key).Paused == nil {
			b.Error("resumed early")
		}
		time.Sleep(time.Millisecond)
		b.promote(s)
		if now := b.Schedule(s.Key); now.Paused != nil || now.Epoch != 3 || len(b.rows(s)) == 0 {
			b.Errorf("epoch %d, %d rows", now.Epoch, len(b.rows(s)))
		}
		if n := b.Visible(contract.DispatchQueue); n != contract.ParkShards {
			b.Errorf("%d messages", n)
		}
	})
	bubble(t, "parks a schedule under a pause of everything", func(b *bench) {
		s := b.put()
		ref := job.PauseRef("acme", job.PauseAll)
		b.Write(item.Write{Ref: ref, Name: "test.pause",
			Put: job.Pause{Scope: job.PauseAll, Since: stagetest.Now(), Missed: "last"}.Item("acme")})
		if did := b.promote(s); !did.Held || did.Made != 0 {
			b.Errorf("%+v", did)
		}
		held := b.Schedule(s.Key)
		tenants, err := b.Store.ParkedTenants(b.Context())
		if !held.Parked || err != nil || len(tenants) != 1 || !held.Next.Equal(s.Next) {
			b.Errorf("held %+v, %v, %v", held, tenants, err)
		}
		time.Sleep(3 * time.Hour)
		b.Write(item.Write{Ref: ref, Name: "test.lift", Delete: true})
		b.engine.Recur.Reread("acme")
		var came scan.Counter
		b.Must(b.engine.Recur.Slice(b.Context(), held.Slice(), time.Time{}, &came))
		late := 0
		for _, r := range b.rows(s) {
			if !r.DueAt.After(stagetest.Now()) {
				late++
			}
		}
		if late != 1 || b.Schedule(s.Key).Parked {
			b.Errorf("%d missed times run, parked %v", late, b.Schedule(s.Key).Parked)
		}
	})
	bubble(t, "ends a schedule that has reached its max_runs", func(b *bench) {
		one := 1
		s := b.put(func(s *schedule.Schedule) { s.Spec.MaxRuns = &one })
		b.Write(s.CountRun(job.Row{Key: job.Key{Tenant: "acme", ID: "X"}, DueAt: stagetest.Now()}, []bool{false})...)
		if did := b.promote(s); did.Made != 0 || b.Schedule(s.Key).EndedBy != job.CodeMaxRuns {
			b.Errorf("%+v, ended by %q", did, b.Schedule(s.Key).EndedBy)
		}
	})
	bubble(t, "goes on with the calendars of a list that have not reached their max_runs", func(b *bench) {
		minutes, days, one := "* * * * *", "0 9 * * *", 1
		s := b.put(func(s *schedule.Schedule) {
			s.Spec = calendar.Spec{}
			s.Specs = []calendar.Spec{{Cron: &minutes, MaxRuns: &one}, {Cron: &days}}
		})
		first := job.Row{Key: job.Key{Tenant: "acme", ID: "X"}, NominalAt: s.Next, DueAt: stagetest.Now()}
		b.Write(s.CountRun(first, make([]bool, 2))...)
		did := b.promote(s)
		after := b.Schedule(s.Key)
		if did.Made != 0 || after.EndedBy != "" || after.Next.Hour() != 9 || !after.Spent[0] || after.Spent[1] {
			b.Errorf("%+v, next %s, spent %v, ended by %q", did, after.Next, after.Spent, after.EndedBy)
		}
		if did = b.promote(after); did.Made != 0 || !b.Schedule(s.Key).Next.Equal(after.Next) {
			b.Errorf("a second promotion: %+v, next %s", did, b.Schedule(s.Key).Next)
		}
	})
	bubble(t, "sends the firing of a job that is due now, and repeats it if it may be lost", func(b *bench) {
		time.Sleep(time.Until(stagetest.Now().Truncate(time.Minute).Add(59 * time.Second)))
		s := b.put()
		b.promote(s)
		if n := b.Visible(stagetest.FiringQueue); n != 1 {
			b.Errorf("%d firings", n)
		}
	})
}

func TestRecurrer_Adopts(t *testing.T) {
	t.Parallel()
	claim := func(b *bench, r job.Row) job.Claim {
		b.Write(job.ClaimNew(r.Key, 1,
			job.Owner{Worker: "w", Nonce: "n", LeaseUntil: stagetest.Now().Add(contract.Lease), DueAt: r.DueAt}))
		c := b.Claim(r.Key)
		return c
	}
	bubble(t, "adopts a job after its worker has let it go", func(b *bench) {
		s := b.put()
		b.promote(s)
		s = edit(b, s)
		first := b.rows(s)[0]
		c := claim(b, first)
		time.AfterFunc(100*time.Millisecond, func() { b.Write(job.LetGo(first.Key, 1, c.Token)) })
		if did := b.promote(s); did.Adopted != 30 {
			b.Errorf("%+v", did)
		}
		if now := b.rows(s)[0]; now.Epoch != 2 || now.Version != 2 {
			b.Errorf("%+v", now)
		}
	})
	bubble(t, "does not move on when the contents of the jobs are missing", func(b *bench) {
		s := b.put()
		b.promote(s)
		after := s
		body := []byte(`"` + strings.Repeat("x", 5000) + `"`) // too large for a row, and not stored
		after.SetPayload(body)
		after, _, err := schedule.Edit(s, after, nil, stagetest.Now())
		b.Must(err)
		after.AdoptThrough = after.Next.Add(contract.Horizon) // all jobs are adopted, none is made
		b.Write(item.Write{Ref: s.Ref(), Name: "test.edit", Put: after.Item()})
		if _, err := b.engine.Recur.Promote(b.Context(), s.Key); fault.KindOf(err) != fault.NotFound {
			b.Errorf("it says %v", err)
		}
		if got := b.Schedule(s.Key); !got.Next.Equal(after.Next) {
			b.Errorf("next is %s, and was %s", got.Next, after.Next)
		}
	})
	bubble(t, "does not move on while a worker holds a job, and passes the job once it runs", func(b *bench) {
		s := b.put()
		b.promote(s)
		s = edit(b, s)
		first := b.rows(s)[0]
		claim(b, first)
		if _, err := b.engine.Recur.Promote(b.Context(), s.Key); fault.KindOf(err) != fault.Conflict {
			b.Errorf("it says %v", err)
		}
		if got := b.Schedule(s.Key); !got.Next.Equal(s.Next) || len(b.rows(s)) != 30 || b.rows(s)[1].Epoch != 2 {
			b.Errorf("next %s; the others: %+v", got.Next, b.rows(s)[1])
		}
		b.Write(job.MarkRunning(first.Key, 1, 1, stagetest.Now(), 0)) // its first heartbeat has been seen
		b.promote(s)
		if now := b.rows(s)[0]; now.Epoch != 1 || now.Status != job.Running {
			b.Errorf("%+v", now)
		}
	})
	for name, change := range map[string]func(*job.Row){
		"a job that retries":        func(r *job.Row) { r.Attempt = 2 },
		"a job with a stop":         func(r *job.Row) { r.Stop = job.StopCancel },
		"a job that is over":        func(r *job.Row) { r.Status = job.Succeeded },
		"a job of this epoch":       func(r *job.Row) { r.Epoch = 2 },
		"a job of a later epoch":    func(r *job.Row) { r.Epoch = 3 },
		"a running job":             func(r *job.Row) { r.Status = job.Running },
		"a job that cannot be read": nil,
		"a forgotten job":           nil,
	} {
		bubble(t, "leaves alone "+name, func(b *bench) {
			s := b.put()
			b.promote(s)
			s = edit(b, s)
			first := b.rows(s)[0]
			i := first.Item()
			switch {
			case change != nil:
				change(&first)
				i = first.Item()
			case name == "a job that cannot be read":
				i["status"] = "LOST"
			default:
				i["status"] = string(job.Gone)
			}
			b.Overwrite(first.Ref(), i)
			if did := b.promote(s); did.Adopted != 29 {
				b.Errorf("%+v", did)
			}
			got, err := b.World.Table().Get(b.Context(), first.Ref())
			if err != nil || fmt.Sprint(got) != fmt.Sprint(i) {
				b.Errorf("it was changed: %v, %v", got, err)
			}
		})
	}
}

//proof:of 12
func TestRecurrer_RepeatsAPromotionThatCrashed(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		bubble(t, fmt.Sprintf("accounts for each time after any crash, last answer lost: %v", lost), func(b *bench) {
			for n := range 200 {
				cron := "*/10 * * * *"
				s := b.put(func(s *schedule.Schedule) { s.Name, s.Spec.Cron = fmt.Sprintf("s%d", n), &cron })
				b.promote(s)
				from := b.Schedule(s.Key).Next
				time.Sleep(90 * time.Minute) // so that some times are missed
				asked := b.DieAt(n, lost)
				_, err := b.Engine().Recur.Promote(b.Context(), s.Key)
				b.World.SetFaults(nil)
				if *asked <= n {
					if err != nil || n < 5 {
						b.Errorf("%d points of crash, then %v", n, err)
					}
					return
				}
				if w := b.Schedule(s.Key); w.Slice() == "" {
					b.Fatalf("crashed at call %d: nothing brings it back", n)
				}
				time.Sleep(2 * time.Minute)
				b.promote(s)
				account(b, s, from)
			}
			b.Error("it never gets through")
		})
	}
}

// A step that crashed after making its jobs has not moved the schedule on, and the index does not show the jobs yet.
func TestRecurrer_RecordsNoTimeThatACrashedPromotionMade(t *testing.T) {
	t.Parallel()
	const lag = time.Hour
	for how, then := range map[string]func(b *bench, s schedule.Schedule){
		"is promoted later": func(b *bench, s schedule.Schedule) {
			time.Sleep(5 * time.Minute) // some of those times are too old by now
			b.promote(s)
		},
		"is edited": func(b *bench, s schedule.Schedule) { edit(b, b.Schedule(s.Key)); b.promote(s) },
		"is paused and edited": func(b *bench, s schedule.Schedule) {
			paused, w := schedule.PauseSchedule(b.Schedule(s.Key), schedule.Pause{}, stagetest.Now())
			b.Write(w)
			edit(b, paused)
			_, w = schedule.Resume(b.Schedule(s.Key), "", stagetest.Now())
			b.Write(w)
			b.promote(s)
		},
		"is deleted": func(b *bench, s schedule.Schedule) {
			old := b.Schedule(s.Key)
			_, writes := schedule.Delete(old, haveJobs(b, old), stagetest.Now())
			b.Write(writes...)
		},
	} {
		bubble(t, "accounts for each time once when the schedule "+how, func(b *bench) {
			b.World = memory.New(memory.Options{IndexLag: memory.LagUpTo(lag)})
			b.Cleanup(b.World.Close)
			b.Store = store.New(b.World.Table(), b.World.Blobs())
			b.restart()
			s := b.put(func(s *schedule.Schedule) {
				s.CatchUp = schedule.CatchUp{Policy: schedule.CatchUpAll, Window: 20 * time.Minute, Cap: 100}
			})
			b.promote(s)
			from := b.Schedule(s.Key).Next
			time.Sleep(90 * time.Minute)
			b.Fail(stagetest.Named(schedule.WriteAdvance))
			if _, err := b.Engine().Recur.Promote(b.Context(), s.Key); err == nil {
				b.Fatal("it did not crash")
			}
			b.World.SetFaults(nil)
			time.Sleep(200 * time.Millisecond)
			then(b, s)
			until := schedule.Bound(time.Now())
			if b.Schedule(s.Key).Deleted() {
				until = time.Now()
			}
			time.Sleep(lag)
			accountUntil(b, s, from, until)
		})
	}
}

// A manual run of the same millisecond is in the same index.
func TestRecurrer_CountsNoManualRunAsANominalTime(t *testing.T) {
	t.Parallel()
	bubble(t, "records the nominal time of a manual run as missed", func(b *bench) {
		s := b.put()
		b.promote(s)
		from := b.Schedule(s.Key).Next
		r, _ := s.RunNow(job.NewID(from, [10]byte{}), false, 4, from)
		b.Write(job.Accept(r))
		time.Sleep(5 * time.Hour)
		b.promote(s)
		entries, _, err := b.Store.Recorded(b.Context(), s.Key, time.Time{}, time.Time{}, false, 0, "")
		if err != nil || len(entries) != 1 || !entries[0].From.Equal(from) {
			b.Errorf("recorded %+v, %v", entries, err)
		}
	})
}

// edit gives the schedule a new epoch with the same times.
func edit(b *bench, s schedule.Schedule) schedule.Schedule {
	b.Helper()
	s = b.Schedule(s.Key)
	after, w, err := schedule.Edit(s, s, haveJobs(b, s), stagetest.Now())
	b.Must(err)
	b.Write(w...)
	return after
}

// haveJobs says which of the times that an edit drops have jobs.
func haveJobs(b *bench, s schedule.Schedule) map[time.Time]bool {
	b.Helper()
	has, err := b.Store.HaveJobs(b.Context(), s.Key, s.Leaves(stagetest.Now()))
	b.Must(err)
	return has
}

// account checks that each time from the first on has a job or one entry of the ledger.
func account(b *bench, s schedule.Schedule, from time.Time) {
	b.Helper()
	accountUntil(b, s, from, schedule.Bound(time.Now()))
}

func accountUntil(b *bench, s schedule.Schedule, from, until time.Time) {
	b.Helper()
	cal, err := s.Calendar()
	b.Must(err)
	jobs := map[time.Time]int{}
	for _, r := range b.rows(s) {
		jobs[r.NominalAt]++
	}
	entries, _, err := b.Store.Recorded(b.Context(), s.Key, time.Time{}, time.Time{}, false, 1000, "")
	b.Must(err)
	for o, ok := cal.Next(from.Add(-time.Millisecond)); ok && o.NominalAt.Before(until); o, ok = cal.Next(o.NominalAt) {
		n := jobs[o.NominalAt]
		for _, e := range entries {
			if !o.NominalAt.Before(e.From) && !o.NominalAt.After(e.To) {
				n++
			}
		}
		if n != 1 {
			b.Errorf("%s is accounted for %d times", o.NominalAt, n)
		}
	}
}

func TestRecurrer_PromotesASlice(t *testing.T) {
	t.Parallel()
	bubble(t, "sets an unreadable schedule aside and fails for a throttled one", func(b *bench) {
		var all []schedule.Schedule
		for n := range 10 {
			all = append(all, b.put(func(s *schedule.Schedule) { s.Name = fmt.Sprintf("s%d", n) }))
		}
		bad := all[3].Item()
		bad["body"] = "{"
		b.Overwrite(all[3].Ref(), bad)
		b.Fault(stagetest.On(memory.TableGet, all[5].Ref()), memory.Fault{Fail: fault.Throttled})
		var came scan.Counter
		if err := b.engine.Recur.Slice(b.Context(), all[0].Slice(), time.Time{}, &came); !fault.Retryable(err) {
			b.Errorf("the slice returned %v", err)
		}
		b.World.SetFaults(nil)
		if got := came.Counts(); got["promoted"] != 8 || got["schedule_set_aside"] != 1 || got["schedule_failed"] != 1 {
			b.Errorf("came to %v", got)
		}
		if err := b.engine.Recur.Slice(b.Context(), all[0].Slice(), time.Time{}, &came); err != nil {
			b.Error(err)
		}
		due, _, err := b.Store.DueSchedules(context.Background(), store.DueQuery{Slice: all[0].Slice()})
		if err != nil || len(due) != 0 {
			b.Errorf("left in the slice: %v, %v", due, err)
		}
	})
}

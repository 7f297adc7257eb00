package recur_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"punctual/functions/engine/recur"
	"punctual/functions/engine/runs"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/message"
	"punctual/shared/run"
	"punctual/shared/schedule"
)

// etl makes a dag of two nodes, one after the other.
func (b *bench) etl(params string, change ...func(*dag.Definition)) {
	b.Helper()
	d := dag.Definition{Nodes: map[string]dag.Node{
		"a": {Task: "echo"}, "b": {Task: "echo", DependsOn: []string{"a"}},
	}}
	b.Must(json.Unmarshal([]byte(params), &d.Params))
	for _, c := range change {
		c(&d)
	}
	b.Must(b.Store.PutDefinition(b.Context(), jobtest.Tenant, d.Hash(), d.Encode()))
	if _, _, err := b.Store.PutDag(b.Context(), jobtest.Tenant, "etl", d.Hash(), stagetest.Now(), nil); err != nil {
		b.Fatal(err)
	}
}

// ofRuns makes a schedule's template a run of the dag.
func ofRuns(s *schedule.Schedule) {
	s.Template = schedule.Template{DagRef: job.DagRef{Dag: "etl"}, Settings: job.Settings{Pool: contract.RunPool,
		Priority: job.Normal}}
}

// overdueRun is the row of a run that should have begun.
func (b *bench) overdueRun(n int, s schedule.Schedule, change ...func(*job.Row)) job.Row {
	b.Helper()
	return b.Overdue(n, stagetest.Late+time.Duration(n)*time.Minute,
		append([]func(*job.Row){stagetest.Of(s), func(r *job.Row) {
			r.Dag, r.DagVersion, r.Pool, r.Task, r.Executor = "etl", s.Template.DagVersion, contract.RunPool, "", ""
		}}, change...)...)
}

// run reads the run of a row; the zero Run says that there is none.
func (b *bench) run(r job.Row) run.Run {
	b.Helper()
	is, err := b.Store.Run(b.Context(), run.Key{Tenant: r.Tenant, ID: r.ID})
	if err != nil && fault.KindOf(err) != fault.NotFound {
		b.Fatal(err)
	}
	return is
}

// end cancels the run of a row.
func (b *bench) end(r job.Row) {
	b.Helper()
	if _, err := b.engine.Runs.Cancel(b.Context(), run.Key{Tenant: r.Tenant, ID: r.ID},
		runs.By{Who: "test"}); err != nil {
		b.Fatal(err)
	}
}

//proof:of 8
func TestRecurrer_BeginsRuns(t *testing.T) {
	t.Parallel()
	limited := func(s *schedule.Schedule) {
		n := 5
		s.Overlap, s.Spec.MaxRuns = schedule.OverlapSkip, &n
	}
	bubble(t, "begins a run once, with its slot and count", func(b *bench) {
		b.etl(`{"x":1}`)
		s := b.Rule(ofRuns, limited)
		r := b.overdueRun(0, s)
		b.RequireStep(b.sweep(r), recur.Began)
		b.RequireStep(b.sweep(r), job.StepNothing)
		is, now := b.run(r), b.Row(r.Key)
		if is.Status != run.Running || is.Schedule != s.Name || !is.NominalAt.Equal(r.NominalAt) ||
			is.DagVersion != 1 || is.Params != `{"x":1}` {
			b.Errorf("the run is %+v", is)
		}
		if now.Status != job.Blocked || !now.WakeAt.IsZero() || now.StartedAt.IsZero() || now.LatenessMS == 0 {
			b.Errorf("the row is %+v", now)
		}
		slot, err := b.Store.Slot(b.Context(), s.Key)
		counted, full, err2 := b.Store.RunsOf(b.Context(), s, r.ID)
		if slot.Holder != r.ID || !counted || full[0] || err != nil || err2 != nil {
			b.Errorf("slot %+v, counted %v, full %v: %v, %v", slot, counted, full, err, err2)
		}
	})
	bubble(t, "begins a run early only if runs may overlap", func(b *bench) {
		b.etl(`{}`)
		for name, c := range map[string]struct {
			ahead   time.Duration
			overlap schedule.Overlap
			begins  bool
		}{
			"allowed to overlap": {time.Second, schedule.OverlapAllow, true},
			"far ahead":          {3 * time.Second, schedule.OverlapAllow, false},
			"alone":              {time.Second, schedule.OverlapSkip, false},
			"alone, and due":     {0, schedule.OverlapSkip, true},
		} {
			s := b.Rule(ofRuns,
				func(s *schedule.Schedule) { s.Name, s.Overlap = fmt.Sprintf("s%d", len(name)), c.overlap })
			r := b.overdueRun(len(name), s, func(r *job.Row) {
				r.DueAt = stagetest.Now().Add(c.ahead)
				r.WakeAt = r.DueAt
			})
			if _, err := b.engine.Reevaluate(b.Context(), r.Key, 1, 1); err != nil {
				b.Fatal(err)
			}
			if begun := b.Row(r.Key).Status == job.Blocked; begun != c.begins {
				b.Errorf("%s: it began: %v", name, begun)
			}
			time.Sleep(c.ahead + time.Second) // the repeated firing arrives
			repeated := b.Received(contract.DispatchQueue)
			if (len(repeated) == 1) == c.begins {
				b.Errorf("%s: %d firings arrived", name, len(repeated))
			}
			for _, d := range repeated {
				if f, err := message.Decode[message.Dispatch](d.Body); err != nil || f.Firing == nil ||
					f.Firing.JobID != string(r.ID) || f.Pool != contract.RunPool {
					b.Errorf("%s: %s, %v", name, d.Body, err)
				}
			}
		}
	})
	bubble(t, "begins a run completely or not at all after a crash at any call", func(b *bench) {
		b.etl(`{}`)
		for _, lost := range []bool{false, true} {
			var r job.Row
			var s schedule.Schedule
			b.Crashes(lost, func(n int) {
				s = b.Rule(ofRuns, limited, func(s *schedule.Schedule) { s.Name = fmt.Sprintf("s%v%d", lost, n) })
				r = b.overdueRun(n, s, func(r *job.Row) {
					if lost {
						r.ID = job.DeterministicID(r.DueAt, "lost", fmt.Sprint(n))
					}
				})
				b.restart()
			}, func() error {
				_, err := b.engine.Entry(b.Context(), stagetest.Entry(r))
				return err
			}, func(n int) {
				row, is := b.Row(r.Key), b.run(r)
				if (row.Status == job.Blocked) != (is.Status != "") {
					b.Errorf("crash %d left a row that is %s and a run that is %q", n, row.Status, is.Status)
				}
				b.restart()
				if row.Status != job.Blocked {
					b.RequireStep(b.sweep(row), recur.Began)
				}
				if is := b.run(r); is.Status != run.Building && is.Status != run.Running || is.WakeAt.IsZero() {
					b.Errorf("after crash %d the run is %+v", n, is)
				}
			})
		}
	})
	bubble(t, "begins no run of a schedule that has just changed", func(b *bench) {
		b.etl(`{}`)
		s := b.Rule(ofRuns)
		r := b.overdueRun(0, s)
		b.Before(stagetest.Named(run.WriteCreate), func() {
			_, w := schedule.PauseSchedule(s, schedule.Pause{}, stagetest.Now())
			b.Write(w)
		})
		b.RequireStep(b.sweep(r), job.StepPark)
		if now := b.Row(r.Key); now.Status != job.Scheduled || !now.Parked || b.run(r).Status != "" {
			b.Errorf("the row is %s, the run %q", now.Status, b.run(r).Status)
		}
	})
	bubble(t, "refuses a skip, a park and an adoption after the run has begun", func(b *bench) {
		b.etl(`{}`)
		s := b.Rule(ofRuns)
		r := b.overdueRun(0, s)
		b.RequireStep(b.sweep(r), recur.Began)
		made := r
		made.Epoch++
		_, skip := job.Skip(r, job.Reason{Code: job.CodeEdited}, stagetest.Now())
		_, park := job.Park(r, stagetest.Now())
		_, stop := job.RequestStop(r, job.StopExpire, job.Reason{Code: job.CodeStartWithin}, stagetest.Now())
		_, adopt, _ := job.Adopt(r, made, stagetest.Now())
		for _, w := range []item.Write{skip, park, stop, adopt} {
			if err := b.Store.Put(b.Context(), w); err == nil {
				b.Errorf("%s of a row whose run goes on is taken", w.Name)
			}
		}
	})
	for name, c := range map[string]struct {
		prepare func(b *bench)
		change  func(*schedule.Schedule)
		payload string
		code    string
	}{
		"whose dag is gone": {func(*bench) {}, nil, "", job.CodeUnknownDag},
		"whose version was never made": {func(b *bench) { b.etl(`{}`) },
			func(s *schedule.Schedule) { s.Template.DagVersion = 7 }, "", job.CodeUnknownDag},
		"with params that the newest version does not know": {
			func(b *bench) { b.etl(`{"x":1}`); b.etl(`{"y":1}`) }, nil, `{"x":2}`, job.CodeParams,
		},
		"with params that do not fit the newest version's schema": {
			func(b *bench) {
				b.etl(`{"x":1}`)
				b.etl(`{"x":1}`, func(d *dag.Definition) {
					d.ParamsSchema = json.RawMessage(`{"properties":{"x":{"maximum":10}}}`)
				})
			}, nil, `{"x":11}`, job.CodeParams,
		},
	} {
		bubble(t, "skips a run "+name+" and says why", func(b *bench) {
			c.prepare(b)
			s := b.Rule(ofRuns, func(s *schedule.Schedule) {
				if c.change != nil {
					c.change(s)
				}
			})
			r := b.overdueRun(0, s, func(r *job.Row) { r.Payload = c.payload })
			b.RequireStep(b.sweep(r), recur.Skipped)
			now := b.Row(r.Key)
			outcome, reason, why := schedule.OfJob(now)
			if now.Status != job.Skipped || outcome != schedule.Skipped || reason != c.code || why == "" {
				b.Errorf("it is %s: %s, %s, %q", now.Status, outcome, reason, why)
			}
		})
	}
}

func TestRecurrer_EndsTheRowsOfRuns(t *testing.T) {
	t.Parallel()
	bubble(t, "ends the row of a run and begins the next one that is queued", func(b *bench) {
		b.etl(`{}`)
		s := b.Rule(ofRuns, func(s *schedule.Schedule) { s.Overlap = schedule.OverlapBufferAll })
		first, second := b.overdueRun(1, s), b.overdueRun(0, s)
		b.RequireStep(b.sweep(first), recur.Began)
		b.RequireStep(b.sweep(second), job.StepPark)
		if now := b.Row(second.Key); !now.QueuedBehind || b.run(second).Status != "" {
			b.Errorf("the second is %+v", now)
		}
		b.end(first)
		if now := b.Row(first.Key); now.Status != job.Cancelled || now.Reason.Code != run.ReasonCancelled {
			b.Errorf("the first is %s (%s)", now.Status, now.Reason.Code)
		}
		if is := b.run(first); !is.Notified || !is.WakeAt.IsZero() {
			b.Errorf("the run is %+v", is)
		}
		if is := b.run(second); is.Status != run.Running || b.Row(second.Key).Status != job.Blocked {
			b.Errorf("the second run is %q", is.Status)
		}
	})
	bubble(t, "cancels the earlier run under overlap cancel_running", func(b *bench) {
		b.etl(`{}`)
		s := b.Rule(ofRuns, func(s *schedule.Schedule) { s.Overlap = schedule.OverlapCancelRunning })
		first, second := b.overdueRun(1, s), b.overdueRun(0, s)
		b.RequireStep(b.sweep(first), recur.Began)
		b.sweep(second)
		if was, is := b.run(first), b.run(second); was.Status != run.Cancelled || is.Status != run.Running {
			b.Errorf("the first is %s, the second %q", was.Status, is.Status)
		}
	})
	bubble(t, "counts a failed run once after a crash at any call", func(b *bench) {
		b.etl(`{}`)
		for _, lost := range []bool{false, true} {
			var r job.Row
			var s schedule.Schedule
			b.Crashes(lost, func(n int) {
				s = b.Rule(ofRuns,
					func(s *schedule.Schedule) { s.Name, s.PauseAfter = fmt.Sprintf("s%v%d", lost, n), 9 })
				r = b.overdueRun(n, s, func(r *job.Row) {
					r.ID = job.DeterministicID(r.DueAt, "x", fmt.Sprint(lost, n))
				})
				b.restart()
				b.RequireStep(b.sweep(r), recur.Began)
				is := b.run(r)
				why := job.Reason{Code: run.ReasonExpired}
				_, w := is.Halt(run.StopExpire, why, stagetest.Now())
				b.Write(w)
			}, func() error {
				return b.engine.Runs.Reconcile(b.Context(), run.Key{Tenant: r.Tenant, ID: r.ID})
			}, func(n int) {
				is := b.run(r)
				if is.Status.Final() && !is.Notified && is.WakeAt.IsZero() {
					b.Errorf("after crash %d the run has no wake-up, and its schedule was not notified", n)
				}
				b.restart()
				b.Must(b.engine.Runs.Reconcile(b.Context(), is.Key))
				b.restart()
				b.Must(b.engine.Runs.Reconcile(b.Context(), is.Key))
				now, row, is := b.Schedule(s.Key), b.Row(r.Key), b.run(r)
				if now.Failures != 1 || row.Status != job.Dead || row.PendingEffects != job.NoPendingEffects ||
					!is.Notified {
					b.Errorf("after crash %d: %d failures, the row is %s with pending effects %q, notified %v", n,
						now.Failures, row.Status, row.PendingEffects, is.Notified)
				}
			})
		}
	})
	bubble(t, "keeps a run until its schedule was notified", func(b *bench) {
		b.etl(`{}`)
		s := b.Rule(ofRuns)
		r := b.overdueRun(0, s)
		b.RequireStep(b.sweep(r), recur.Began)
		b.Fail(stagetest.Writes(job.WriteCloseRun))
		b.end(r)
		b.World.SetFaults(nil)
		is := b.run(r)
		if !is.Status.Final() || is.Notified || is.WakeAt.IsZero() {
			b.Fatalf("the run is %+v", is)
		}
		if err := b.Store.Put(b.Context(), is.Forget()); err == nil {
			b.Error("it is forgotten")
		}
		b.Must(b.engine.Runs.Reconcile(b.Context(), is.Key))
		if err := b.Store.Put(b.Context(), b.run(r).Forget()); err != nil || b.Row(r.Key).Status != job.Cancelled {
			b.Errorf("the row is %s: %v", b.Row(r.Key).Status, err)
		}
	})
}

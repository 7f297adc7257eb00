package bulk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"punctual/functions/batch"
	"punctual/functions/bulk"
	"punctual/functions/engine/operate"
	"punctual/functions/engine/show"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/operation"
	"punctual/shared/search"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// bench is a world whose operations are continued by processes of their own.
type bench struct {
	*stagetest.Bench
	last      int
	find      store.SearchReader // nil: there is no index
	announced bool               // processes announce events
}

// index is the index of jobs as it was at a time.
type index struct {
	store.SearchReader
	asOf time.Time     // zero: now, but for lag
	lag  time.Duration // how long ago it was as it is found
}

func (x index) Search(ctx context.Context, t tenant.ID, q store.SearchQuery) (store.SearchPage, error) {
	page, err := x.SearchReader.Search(ctx, t, q)
	if page.AsOf = x.asOf; x.asOf.IsZero() {
		page.AsOf = time.Now().Add(-x.lag)
	}
	return page, err
}

func bubble(t *testing.T, name string, do func(b *bench)) {
	stagetest.Bubble(t, name, memory.Options{EmptyPages: true}, func(s *stagetest.Bench) { do(&bench{Bench: s}) })
}

func (b *bench) stage() *bulk.Stage {
	base := b.ProcessBase()
	base.Announced = b.announced
	return bulk.New(bulk.Deps{Base: base, Store: b.Store, Queue: b.World.Queues(), Search: b.find})
}

// letters puts n dead jobs that died one after the other.
func (b *bench) letters(n int, change ...func(*job.Row)) (rows []job.Row) {
	b.Helper()
	for range n {
		b.last++
		at := stagetest.Now().Add(-time.Hour + time.Duration(b.last)*time.Second)
		rows = append(rows, b.Put(jobtest.Row(b.last, at, at, append([]func(*job.Row){func(r *job.Row) {
			r.Status, r.DeadAt, r.FinishedAt, r.WakeAt = job.Dead, at, at, time.Time{}
			r.Reason = job.Reason{Code: "handler", Message: "no"}
			r.ExpiresAt = at.Add(contract.DeadKept)
		}}, change...)...)))
	}
	return rows
}

// begin makes an operation on what matches, and asks for its first steps.
func (b *bench) begin(a operation.Action, change ...func(*operation.Operation)) operation.Key {
	b.Helper()
	b.last++
	id := job.NewID(stagetest.Now(), [10]byte{byte(b.last), byte(b.last >> 8)})
	o := operation.Operation{
		Key: operation.Key{Tenant: jobtest.Tenant, ID: id}, Action: a, Status: operation.Counting,
		By: "ann", CreatedAt: stagetest.Now(), Version: 1,
		Bulk: operation.Bulk{Phase: operation.Counting},
	}
	for _, c := range change {
		c(&o)
	}
	op := &operate.Operator{Base: b.ProcessBase(), Store: b.Store, Queue: b.World.Queues()}
	b.Must(op.Create(b.Context(), o))
	op.Ask(b.Context(), o.Key, 0)
	return o.Key
}

func withCanary(count int) func(*operation.Operation) {
	return func(o *operation.Operation) {
		o.Bulk.Canary = operation.Canary{Count: count, MinSucceeded: 0.9, Within: operation.Span(10 * time.Minute)}
	}
}

func (b *bench) read(k operation.Key) operation.Operation {
	b.Helper()
	o, err := b.Store.Operation(b.Context(), k)
	b.Must(err)
	return o
}

// run continues an operation until it has ended or is paused. The sweeper asks for it each minute.
func (b *bench) run(k operation.Key) operation.Operation {
	b.Helper()
	for swept := time.Now(); ; {
		if o := b.read(k); o.Status.Over() || o.Status == operation.Paused {
			return o
		}
		if time.Since(stagetest.Now()) > 24*time.Hour {
			b.Fatalf("it does not end: %+v", b.read(k))
		}
		if b.Deliver(contract.BulkQueue, b.stage().Handle) > 0 {
			continue
		}
		time.Sleep(time.Second)
		if time.Since(swept) > time.Minute {
			swept = time.Now()
			_, _, err := b.Engine().Operation(b.Context(), k, func() bool { return true })
			b.Must(err)
		}
	}
}

// repeats returns the jobs that repeat dead ones, and fails the test unless each has one.
func (b *bench) repeats(rows []job.Row) (made []job.Row) {
	b.Helper()
	for _, r := range rows {
		is := b.Row(r.Key)
		if is.RedrivenBy == "" {
			b.Fatalf("job %s was not redriven", r.ID)
		}
		made = append(made, b.Row(job.Key{Tenant: r.Tenant, ID: is.RedrivenBy}))
	}
	return made
}

// end lets a job end as a process that is not the stage would.
func (b *bench) end(r job.Row, s job.Status) {
	b.Helper()
	r.Status, r.WakeAt, r.FinishedAt = s, time.Time{}, stagetest.Now()
	b.Put(r)
}

func requireCounts(t *bench, o operation.Operation, s operation.Status, matched, done, skipped, failed int) {
	t.Helper()
	if o.Status != s || o.Matched != matched || o.Done != done || o.Skipped != skipped || o.Failed != failed {
		t.Errorf("%s %s: %d matched, %d done, %d skipped, %d failed; want %s: %d, %d, %d, %d\n%+v",
			o.Status, o.Why.Code, o.Matched, o.Done, o.Skipped, o.Failed, s, matched, done, skipped, failed, o)
	}
}

func TestBulk_RedrivesWhatMatches(t *testing.T) {
	t.Parallel()
	bubble(t, "each once, and what dies meanwhile is left alone", func(b *bench) {
		rows := b.letters(730)
		other := b.letters(3, func(r *job.Row) { r.Task = "other" })
		k := b.begin(operation.RedriveJobs, func(o *operation.Operation) {
			o.Bulk.Filter = search.Filter{Task: rows[0].Task}
		})
		time.Sleep(time.Second)
		late := b.letters(1, func(r *job.Row) { r.DeadAt = stagetest.Now() })
		requireCounts(b, b.run(k), operation.Succeeded, 730, 730, 0, 0)
		b.repeats(rows)
		for _, r := range append(other, late...) {
			if is := b.Row(r.Key); is.RedrivenBy != "" {
				b.Errorf("job %s was redriven", r.ID)
			}
		}
		if o := b.read(k); len(o.Bulk.Chunk) > 0 || !o.Bulk.LeaseUntil.IsZero() {
			b.Errorf("%+v", o.Bulk)
		}
	})
	bubble(t, "and asks once for the removal of their dead letters", func(b *bench) {
		b.letters(120)
		k := b.begin(operation.RedriveJobs, func(o *operation.Operation) {
			o.Bulk.Rate = operation.Rate{Count: 2, Per: operation.Span(time.Second)}
		})
		requireCounts(b, b.run(k), operation.Succeeded, 120, 120, 0, 0)
		time.Sleep(contract.LettersCollectedAfter)
		asked, err := b.World.Queues().Receive(b.Context(), contract.RedriveQueue, 10, 0, 0)
		if err != nil || len(asked) != 1 {
			b.Errorf("%d messages, %v", len(asked), err)
		}
	})
	bubble(t, "at most as many in a time as the rate lets it", func(b *bench) {
		rows := b.letters(120)
		k := b.begin(operation.RedriveJobs,
			func(o *operation.Operation) {
				o.Bulk.Rate = operation.Rate{Count: 20, Per: operation.Span(time.Second)}
			})
		requireCounts(b, b.run(k), operation.Succeeded, 120, 120, 0, 0)
		perSecond := map[time.Time]int{}
		for _, r := range b.repeats(rows) {
			perSecond[r.CreatedAt.Truncate(time.Second)]++
		}
		if len(perSecond) < 6 || len(perSecond) > 8 {
			b.Errorf("it took %d s", len(perSecond))
		}
		for at, n := range perSecond {
			if n > 24 {
				b.Errorf("%d at %s", n, at)
			}
		}
	})
	bubble(t, "at times that are dealt out evenly, the oldest first", func(b *bench) {
		rows := b.letters(60)
		k := b.begin(operation.RedriveJobs, func(o *operation.Operation) { o.Bulk.Spread = operation.Span(time.Hour) })
		requireCounts(b, b.run(k), operation.Succeeded, 60, 60, 0, 0)
		begun := b.read(k).Bulk.BegunAt
		for n, r := range b.repeats(rows) {
			if want := begun.Add(time.Duration(n) * time.Minute); r.DueAt.Sub(want).Abs() > time.Second {
				b.Errorf("job %d is due at %s, want %s", n, r.DueAt, want)
			}
		}
	})
}

func TestBulk_FindsByTheIndex(t *testing.T) {
	t.Parallel()
	bubble(t, "dead letters of one cause", func(b *bench) {
		cause := func(message string) func(*job.Row) {
			return func(r *job.Row) { r.Reason = job.Reason{Code: "http_500", Message: message} }
		}
		rows := b.letters(250, cause("the mail server has no time"))
		other := b.letters(30, cause("the disk is full"))
		entries := make([]search.Update, 0, len(rows)+len(other))
		for _, r := range slices.Concat(rows, other) {
			entries = append(entries, search.Update{Entry: search.EntryOf(r, "", "")})
		}
		b.World.Search().PutEntries(b.Context(), entries)
		b.find = index{SearchReader: b.World.Search()}
		k := b.begin(operation.RedriveJobs, func(o *operation.Operation) {
			o.Bulk.Filter = search.Filter{Group: entries[0].Group}
		})
		requireCounts(b, b.run(k), operation.Succeeded, 250, 250, 0, 0)
		b.repeats(rows)
	})
	bubble(t, "to count them, once it has everything", func(b *bench) {
		r := b.letters(1)[0]
		b.World.Search().PutEntries(b.Context(), []search.Update{{Entry: search.EntryOf(r, "", "")}})
		time.Sleep(time.Minute)
		lagging := index{SearchReader: b.World.Search(), lag: time.Second}
		op := &operate.Operator{Base: b.ProcessBase(), Store: b.Store,
			Read: &show.Reader{Base: b.ProcessBase(), Store: b.Store, Search: lagging}}
		matched, _, all, err := op.DryRun(b.Context(), operation.Operation{Key: operation.Key{Tenant: jobtest.Tenant},
			Action: operation.PurgeJobs, CreatedAt: time.Now().UTC(),
			Bulk: operation.Bulk{Filter: search.Filter{Code: r.Reason.Code}}}, nil)
		if matched != 1 || !all || err != nil {
			b.Errorf("%d match, %t, %v", matched, all, err)
		}
	})
	bubble(t, "once it has everything", func(b *bench) {
		r := b.letters(1)[0]
		b.find = index{SearchReader: b.World.Search(), asOf: stagetest.Now().Add(-time.Millisecond)}
		k := b.begin(operation.PurgeJobs, func(o *operation.Operation) {
			o.Bulk.Filter = search.Filter{Code: r.Reason.Code}
		})
		b.Deliver(contract.BulkQueue, b.stage().Handle)
		if o := b.read(k); o.Status != operation.Counting || o.Matched != 0 {
			b.Fatalf("%+v", o)
		}
		b.World.Search().PutEntries(b.Context(), []search.Update{{Entry: search.EntryOf(r, "", "")}})
		b.find = index{SearchReader: b.World.Search(), asOf: stagetest.Now()}
		requireCounts(b, b.run(k), operation.Succeeded, 1, 1, 0, 0)
	})
}

func TestBulk_ChangesPayloads(t *testing.T) {
	t.Parallel()
	bubble(t, "of dead letters, as far as the schema of the task lets it", func(b *bench) {
		_, err := b.Store.UpdateTask(b.Context(), jobtest.Tenant, "strict", func(*job.Task) (job.Task, error) {
			return job.Task{Name: "strict", PayloadSchema: []byte(`{"required":["old"]}`)}, nil
		})
		b.Must(err)
		rows := b.letters(2, func(r *job.Row) { r.Hold(job.Contents{Payload: []byte(`{"old":true,"to":"a"}`)}) })
		strict := b.letters(1, func(r *job.Row) { r.Task = "strict" })
		k := b.begin(operation.RedriveJobs, func(o *operation.Operation) {
			o.Bulk.Set.Patch = []byte(`{"to":"b"}`)
		})
		o := b.run(k)
		requireCounts(b, o, operation.Succeeded, 3, 2, 0, 1)
		if len(o.Errors) != 1 || o.Errors[0].JobID != strict[0].ID || o.Errors[0].Code != "missing_field" {
			b.Errorf("%+v", o.Errors)
		}
		for _, r := range b.repeats(rows) {
			if c, err := b.Store.ContentsOf(b.Context(), r); err != nil || string(c.Payload) != `{"old":true,"to":"b"}` {
				b.Errorf("%s, %v", c.Payload, err)
			}
		}
	})
}

func TestBulk_WaitsForItsCanary(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		succeed int
		want    operation.Status
		done    int
	}{
		"and goes on if enough succeeded":  {9, operation.Succeeded, 300},
		"and ends if too many have failed": {8, operation.Failed, 10},
	} {
		bubble(t, name, func(b *bench) {
			rows := b.letters(300)
			k := b.begin(operation.RedriveJobs, withCanary(10))
			for b.read(k).Bulk.Canary.Begun() < 10 {
				b.Deliver(contract.BulkQueue, b.stage().Handle)
				time.Sleep(time.Second)
			}
			time.Sleep(20 * time.Second)
			b.Deliver(contract.BulkQueue, b.stage().Handle)
			if o := b.read(k); o.Status != operation.InCanary || o.Done != 10 || len(o.Bulk.Canary.Open) != 10 {
				b.Fatalf("%+v", o)
			}
			for n, r := range b.repeats(rows[:10]) { // the oldest
				if n < c.succeed {
					b.end(r, job.Succeeded)
				} else {
					b.end(r, job.Dead)
				}
			}
			o := b.run(k)
			if o.Status != c.want || o.Done != c.done || o.Bulk.Canary.Succeeded != c.succeed {
				b.Errorf("%+v", o)
			}
		})
	}
	bubble(t, "until the time is up, and is overruled", func(b *bench) {
		b.letters(30)
		k := b.begin(operation.RedriveJobs, withCanary(5))
		began := time.Now()
		o := b.run(k)
		if took := time.Since(began); o.Status != operation.Failed || o.Why.Code != operation.CodeCanaryFailed ||
			took < 10*time.Minute || took > 12*time.Minute {
			b.Fatalf("%s after %s: %+v", o.Status, took, o)
		}
		time.Sleep(2 * time.Hour)
		op := &operate.Operator{Base: b.ProcessBase(), Store: b.Store, Queue: b.World.Queues()}
		if _, err := op.Change(b.Context(), k, operation.Operation.Proceed); err != nil {
			b.Fatal(err)
		}
		requireCounts(b, b.run(k), operation.Succeeded, 30, 30, 0, 0)
	})
}

// actions are what each action does to a job or not.
func TestBulk_DoesEachActionByTheRulesOfASingleRow(t *testing.T) {
	t.Parallel()
	in := func(s job.Status) func(*job.Row) {
		return func(r *job.Row) {
			if r.Status = s; s.Final() {
				r.WakeAt, r.FinishedAt = time.Time{}, r.CreatedAt
			}
		}
	}
	paused := func(r *job.Row) { r.Paused = job.OwnPause{By: "eve", Since: r.CreatedAt} }
	for action, c := range map[operation.Action]struct {
		set     operation.Set
		may     func(*job.Row) // a job to which it is done
		not     func(*job.Row) // one that is left out
		changed func(b *bench, r job.Row) bool
	}{
		operation.CancelJobs: {may: in(job.Scheduled), not: in(job.Succeeded),
			changed: func(b *bench, r job.Row) bool { return b.Row(r.Key).Status == job.Cancelled }},
		operation.PauseJobs: {may: in(job.Scheduled), not: in(job.Dead),
			changed: func(b *bench, r job.Row) bool {
				is := b.Row(r.Key)
				return is.IsPaused() && is.Paused.By == "ann"
			}},
		operation.ResumeJobs: {may: paused, not: in(job.Scheduled),
			changed: func(b *bench, r job.Row) bool { is := b.Row(r.Key); return r.IsPaused() && !is.IsPaused() }},
		operation.RunJobs: {may: in(job.Scheduled), not: paused,
			changed: func(b *bench, r job.Row) bool { return b.Row(r.Key).DueAt.Before(r.DueAt) }},
		operation.RescheduleJobs: {may: in(job.Scheduled), not: in(job.Cancelled),
			set:     operation.Set{RunAt: time.Date(2000, 2, 1, 0, 0, 0, 0, time.UTC)},
			changed: func(b *bench, r job.Row) bool { return b.Row(r.Key).DueAt.Month() == time.February }},
		operation.ReprioritizeJobs: {may: in(job.Scheduled), not: func(r *job.Row) { r.Priority = job.High },
			set: operation.Set{Priority: job.High},
			changed: func(b *bench, r job.Row) bool {
				return r.Priority != job.High && b.Row(r.Key).Priority == job.High
			}},
		operation.DeleteJobs: {may: in(job.Succeeded), not: in(job.Scheduled),
			changed: func(b *bench, r job.Row) bool {
				_, err := b.Store.Row(b.Context(), r.Key)
				return fault.KindOf(err) == fault.NotFound
			}},
	} {
		bubble(t, string(action), func(b *bench) {
			due := stagetest.Now().Add(2 * time.Hour)
			may := b.Put(jobtest.Row(1, due, stagetest.Now(), c.may))
			not := b.Put(jobtest.Row(2, due, stagetest.Now(), c.not))
			gone := jobtest.Key(3).ID
			b.last = 9
			ids := []job.ID{gone, not.ID, may.ID}
			k := b.begin(action, func(o *operation.Operation) {
				o.Bulk.Named, o.Matched, o.Bulk.Set = true, 3, c.set
				o.Counted(stagetest.Now())
			})
			pages, _ := k.Pages(0, nil, ids, stagetest.Now())
			b.Write(pages...)
			o := b.run(k)
			requireCounts(b, o, operation.Succeeded, 3, 1, 2, 0)
			if !c.changed(b, may) || c.changed(b, not) {
				b.Errorf("%+v\n%+v", may, not)
			}
		})
	}
}

// A process crashes at each of its calls, with or without the effect of that call; another continues.
func TestBulk_DoesEachRowOnceWhateverCrashes(t *testing.T) {
	t.Parallel()
	for _, action := range []operation.Action{operation.RedriveJobs, operation.PurgeJobs} {
		for _, lost := range []bool{false, true} {
			name := fmt.Sprintf("%s, the effect of the last call is there: %v", action, lost)
			bubble(t, name, func(b *bench) {
				for at := int64(1); ; at += 7 {
					rows := b.letters(40)
					k := b.begin(action, withCanaryIf(action == operation.RedriveJobs, 4))
					var calls atomic.Int64
					b.World.SetFaults(func(memory.Call) memory.Fault {
						switch n := calls.Add(1); {
						case n == at && lost:
							return memory.Fault{Lost: true}
						case n >= at:
							return memory.Fault{Fail: fault.Unavailable}
						}
						return memory.Fault{}
					})
					_, _ = b.stage().Handle(b.Context(), batch.SQSEventOf(message.Delivery{Body: ask(k), ID: "1"}))
					ended := calls.Load() < at
					b.World.SetFaults(nil)
					stop := b.endRepeats(rows)
					o := b.run(k)
					close(stop)
					if o.Status != operation.Succeeded || o.Done != 40 {
						b.Fatalf("crash at call %d: %+v", at, o)
					}
					if ended || at > 600 {
						return
					}
				}
			})
		}
	}
}

func TestBulk_AnnouncesItsEndOnce(t *testing.T) {
	t.Parallel()
	bubble(t, "an operation that has ended, however often it is continued", func(b *bench) {
		b.announced = true
		b.Subscribe("operation.*")
		b.letters(3)
		k := b.begin(operation.PurgeJobs)
		b.run(k)
		_, err := b.stage().Handle(b.Context(), batch.SQSEventOf(message.Delivery{Body: ask(k), ID: "1"}))
		b.Must(err)
		got := b.Delivered()
		if len(got) != 1 || got[0].Type != "punctual.operation.ended" || got[0].Subject != "operation/"+string(k.ID) {
			b.Fatalf("delivered %+v", got)
		}
		var data struct {
			Status operation.Status
			Done   int
		}
		b.Must(json.Unmarshal(got[0].Data, &data))
		if data.Status != operation.Succeeded || data.Done != 3 || len(b.read(k).Ends) != 0 {
			b.Errorf("delivered %s, and %v is pending", got[0].Data, b.read(k).Ends)
		}
	})
}

func withCanaryIf(on bool, count int) func(*operation.Operation) {
	if !on {
		return func(*operation.Operation) {}
	}
	return withCanary(count)
}

func ask(k operation.Key) string {
	return message.Encode(message.Ask(message.Verb{
		Operate: &message.Operation{Tenant: string(k.Tenant), OperationID: string(k.ID)}}))
}

// endRepeats lets the jobs that repeat dead ones succeed, until the channel is closed.
func (b *bench) endRepeats(rows []job.Row) chan struct{} {
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Second):
			}
			for _, r := range rows {
				is, err := b.Store.Row(context.Background(), r.Key)
				if err != nil || is.RedrivenBy == "" {
					continue
				}
				next, err := b.Store.Row(context.Background(), job.Key{Tenant: r.Tenant, ID: is.RedrivenBy})
				if err == nil && !next.Status.Final() {
					b.end(next, job.Succeeded)
				}
			}
		}
	}()
	return stop
}

func TestBulk_IsPausedResumedAndStoppedInTheMiddle(t *testing.T) {
	t.Parallel()
	bubble(t, "and its figures are right", func(b *bench) {
		b.letters(200)
		k := b.begin(operation.RedriveJobs,
			func(o *operation.Operation) {
				o.Bulk.Rate = operation.Rate{Count: 10, Per: operation.Span(time.Second)}
			})
		op := &operate.Operator{Base: b.ProcessBase(), Store: b.Store, Queue: b.World.Queues()}
		after := func(wait time.Duration, verb func(operation.Operation, time.Time) (operation.Operation, error)) {
			time.AfterFunc(wait, func() {
				if _, err := op.Change(context.Background(), k, verb); err != nil {
					b.Error(err)
				}
			})
		}
		pause := func(o operation.Operation, _ time.Time) (operation.Operation, error) { return o.Pause() }
		resume := func(o operation.Operation, _ time.Time) (operation.Operation, error) { return o.Resume() }
		after(3*time.Second+50*time.Millisecond, pause)
		o := b.run(k)
		if o.Status != operation.Paused || o.Done < 20 || o.Done > 50 || o.Bulk.Worked != o.Done {
			b.Fatalf("%+v", o)
		}
		time.Sleep(time.Minute)
		if b.Deliver(contract.BulkQueue, b.stage().Handle); b.read(k).Done != o.Done {
			b.Fatal("it went on while it was paused")
		}
		after(0, resume)
		time.Sleep(time.Second)
		after(3*time.Second, operation.Operation.Stop)
		b.run(k)
		time.Sleep(time.Minute)
		if o = b.read(k); o.Status != operation.Stopped || o.Done < 40 || o.Done > 100 || o.Bulk.Worked != o.Done {
			b.Errorf("%+v", o)
		}
	})
}

func TestBulk_LeavesAnOperationToTheProcessThatHasIt(t *testing.T) {
	t.Parallel()
	bubble(t, "until its lease has ended", func(b *bench) {
		b.letters(5)
		k := b.begin(operation.RedriveJobs, func(o *operation.Operation) {
			o.Bulk.Owner, o.Bulk.LeaseUntil = "other", stagetest.Now().Add(operation.Lease)
		})
		b.Deliver(contract.BulkQueue, b.stage().Handle)
		if o := b.read(k); o.Bulk.Owner != "other" || b.Depth(contract.BulkQueue) != 0 {
			b.Errorf("%+v", o)
		}
		requireCounts(b, b.run(k), operation.Succeeded, 5, 5, 0, 0)
	})
}

func TestBulk_QuarantinesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	bubble(t, "a body that names no operation", func(b *bench) {
		for _, body := range []string{"nonsense", message.Encode(message.Ask(message.Verb{
			Reconcile: &message.Run{Tenant: "acme", RunID: string(jobtest.Key(1).ID)}})),
			message.Encode(message.Ask(message.Verb{Operate: &message.Operation{Tenant: "acme", OperationID: "x"}}))} {
			if got := b.Handle(b.Context(), b.stage().Handle, 1, body); got != "0" {
				b.Errorf("%s was taken", body)
			}
		}
	})
	bubble(t, "and drops one that names an operation that is gone", func(b *bench) {
		k := operation.Key{Tenant: jobtest.Tenant, ID: jobtest.Key(1).ID}
		if got := b.Handle(b.Context(), b.stage().Handle, 1, ask(k)); got != "" {
			b.Error("it is kept")
		}
	})
}

package dispatch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"punctual/functions/batch"
	"punctual/functions/dispatch"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/process"
	"punctual/shared/telemetry"
)

type bench struct {
	*stagetest.Bench
	stage *dispatch.Stage
}

func bubble(t *testing.T, name string, do func(b *bench)) { bubbleOf(t, name, memory.Options{}, do) }

func bubbleOf(t *testing.T, name string, o memory.Options, do func(b *bench)) {
	stagetest.Bubble(t, name, o, func(s *stagetest.Bench) {
		b := &bench{Bench: s}
		b.stage = b.another()
		do(b)
	})
}

// another is the stage in another process.
func (b *bench) another() *dispatch.Stage {
	return dispatch.New(dispatch.Deps{
		Store: b.Store, Queue: b.World.Queues(), Timer: b.World.Timers(), Base: process.Base{Meter: b.Meter},
	})
}

// handle gives the stage those bodies and returns the indexes of those to redeliver.
func (b *bench) handle(ctx context.Context, bodies ...string) (failed string) {
	b.Helper()
	return b.Handle(ctx, b.stage.Handle, 1, bodies...)
}

func (b *bench) dispatch(d message.Dispatch) {
	b.Helper()
	d.V = message.V
	if failed := b.handle(b.Context(), message.Encode(d)); failed != "" {
		b.Fatal("it is to be redelivered")
	}
}

// pump waits and then gives the stage all messages of the dispatch queue.
func (b *bench) pump(ctx context.Context, after time.Duration) (n int) {
	b.Helper()
	time.Sleep(after)
	for _, d := range b.Received(contract.DispatchQueue) {
		n++
		if failed := b.handle(ctx, d.Body); failed != "" {
			b.Fatalf("%s is to be redelivered", d.Body)
		}
	}
	return n
}

func firing(in time.Duration) message.Dispatch {
	f := jobtest.Row(1, time.Now().Add(in), time.Now()).Firing().Message()
	return message.Dispatch{V: message.V, Firing: &f, Pool: "short", Priority: "normal"}
}

// After an update there are still timers of the version before, one for each job.
func TestDispatch_FiresForATimerOfOneJob(t *testing.T) {
	t.Parallel()
	bubble(t, "a firing goes to its queue with the exact delay", func(b *bench) {
		d := firing(97*time.Second + 300*time.Millisecond)
		b.dispatch(d)
		time.Sleep(95*time.Second - time.Millisecond)
		if got := b.Received(stagetest.FiringQueue); len(got) != 0 {
			b.Fatal("it came early")
		}
		time.Sleep(time.Millisecond)
		got := b.Received(stagetest.FiringQueue)
		if len(got) != 1 || got[0].Group != jobtest.Tenant {
			b.Fatalf("received %+v", got)
		}
		if f, err := message.Decode[message.Firing](got[0].Body); err != nil || f != *d.Firing {
			b.Errorf("received %+v, %v", f, err)
		}
	})
	bubble(t, "a late firing goes at once", func(b *bench) {
		b.dispatch(firing(-time.Minute))
		if got := b.Received(stagetest.FiringQueue); len(got) != 1 {
			b.Errorf("received %d", len(got))
		}
	})
	bubble(t, "a firing that a queue cannot delay long enough waits on the way", func(b *bench) {
		b.dispatch(firing(40 * time.Minute))
		for range 2 {
			if n := b.pump(b.Context(), contract.MaxDelay); n != 1 {
				b.Fatalf("%d dispatch messages", n)
			}
		}
		time.Sleep(10*time.Minute - contract.DelayLead - time.Second)
		if got := b.Received(stagetest.FiringQueue); len(got) != 0 {
			b.Fatal("it came early")
		}
		time.Sleep(time.Second)
		if got := b.Received(stagetest.FiringQueue); len(got) != 1 {
			b.Errorf("received %d", len(got))
		}
	})
}

// A due job does not wait for the queue's visibility because a queue was busy for a moment.
func TestDispatch_RepeatsAFailedFiringAfterSeconds(t *testing.T) {
	t.Parallel()
	bubble(t, "", func(b *bench) {
		b.Send(contract.DispatchQueue, message.Encode(firing(0)))
		b.FaultFirst(2, stagetest.To(memory.QueueSend, stagetest.FiringQueue), memory.Fault{Fail: fault.Unavailable})
		began := time.Now()
		for len(b.Received(stagetest.FiringQueue)) == 0 {
			if time.Since(began) > time.Minute {
				b.Fatal("it is not sent after a minute")
			}
			got, err := b.World.Queues().Receive(b.Context(), contract.DispatchQueue, 10, time.Second, 0)
			b.Must(err)
			if len(got) > 0 {
				if _, err := b.stage.Handle(b.Context(), batch.SQSEventOf(got...)); err != nil {
					b.Fatal(err)
				}
			}
		}
		if took := time.Since(began); took > 7*time.Second { // retries after 2 and 4 s
			b.Errorf("it is sent after %s", took)
		}
	})
}

//proof:of S21
func TestDispatch_RedeliversOnlyTheBadMessageOfTen(t *testing.T) {
	t.Parallel()
	for name, poison := range map[string]string{
		"a body that is not JSON":          "{",
		"an unknown version":               `{"v":2,"slice":"2027-03-28T00:05#17"}`,
		"a message without anything to do": `{"v":1}`,
		"a slice that cannot be parsed":    `{"v":1,"slice":"soon"}`,
		"a firing without a job id":        `{"v":1,"pool":"short","priority":"normal","firing":{"v":1,"tenant":"acme","job_id":"x","version":1,"attempt":1,"due_at":"2027-01-01T00:00:00Z"}}`,
		"a firing without a tenant":        `{"v":1,"pool":"short","priority":"normal","firing":{"v":1,"tenant":"a/b","job_id":"01KX0000000000000000000000","version":1,"attempt":1,"due_at":"1999-01-01T00:00:00Z"}}`,
		"a parking place without a tenant": `{"v":1,"slice":"parked#a/b#0"}`,
		"a schedule without a tenant":      `{"v":1,"slice":"promote#a/b#rule"}`,
		"a run without a tenant":           `{"v":1,"slice":"reconcile#a/b#01KX0000000000000000000000"}`,
		"a run without an id":              `{"v":1,"slice":"reconcile#acme#x"}`,
		"a line without a tenant":          `{"v":1,"slice":"line#a/b#rule"}`,
		"an unknown queue":                 `{"v":1,"pool":"gone","priority":"normal","firing":{"v":1,"tenant":"acme","job_id":"01KX0000000000000000000000","version":1,"attempt":1,"due_at":"1999-01-01T00:00:00Z"}}`,
	} {
		bubble(t, name, func(b *bench) {
			bodies := make([]string, 10)
			for i := range bodies {
				bodies[i] = message.Encode(firing(0))
			}
			bodies[7] = poison
			if failed := b.handle(b.Context(), bodies...); failed != "7" {
				b.Errorf("%q are redelivered", failed)
			}
			if got := b.Received(stagetest.FiringQueue); len(got) != 9 {
				b.Errorf("%d firings", len(got))
			}
		})
	}
}

// crowd puts n jobs into the slice of shard 0 that is so far ahead.
func (b *bench) crowd(ahead time.Duration, n int) horizon.Slice {
	minute := time.Now().Truncate(time.Minute).Add(ahead)
	for i := range n {
		due := minute.Add(time.Duration(i) * time.Minute / time.Duration(n))
		b.Put(jobtest.Row(i, due, time.Now().Add(-time.Hour), func(r *job.Row) { r.Shard = 0 }))
	}
	return horizon.SliceOf(minute, 0)
}

//proof:of 15 S19
func TestDispatch_MakesATimerForASlice(t *testing.T) {
	t.Parallel()
	// asked gives the stage the message for a slice.
	asked := func(b *bench, slice horizon.Slice) {
		b.Helper()
		if failed := b.handle(b.Context(), job.AskSlice(slice).Body); failed != "" {
			b.Fatal("it is to be redelivered")
		}
	}
	// fired pumps the dispatch queue until the slice has been read, and returns how often each job was fired.
	fired := func(b *bench, slice horizon.Slice) map[string]int {
		for time.Now().Before(slice.Minute.Add(time.Minute)) {
			b.pump(b.Context(), time.Second)
		}
		return b.Fired()
	}
	once := func(b *bench, got map[string]int, jobs int) {
		b.Helper()
		for id, n := range got {
			if n != 1 {
				b.Errorf("job %s was fired %d times", id, n)
			}
		}
		if len(got) != jobs {
			b.Errorf("%d jobs were fired, want %d", len(got), jobs)
		}
	}
	bubble(t, "a slice has one timer, however often it is asked for", func(b *bench) {
		slice := b.crowd(20*time.Minute, 40)
		asked(b, slice)
		asked(b, slice)
		b.stage = b.another()
		asked(b, slice)
		if armed := b.World.Timers().Armed(); len(armed) != 1 || armed[0] != job.SliceTimer(slice) {
			b.Fatalf("armed %+v", armed)
		}
		if n := b.Meter.Total(telemetry.TimersArmed); n != 2 {
			b.Errorf("counted %v by two processes", n)
		}
		once(b, fired(b, slice), 40)
	})
	for _, second := range []int{0, 30, 59} {
		bubbleOf(t, fmt.Sprintf("and each job is sent in time, also by a timer %d s late", second), memory.Options{
			TimerDelay: func(message.Timer) time.Duration { return time.Duration(second) * time.Second },
		}, func(b *bench) {
			slice := b.crowd(20*time.Minute, 60)
			asked(b, slice)
			for time.Now().Before(slice.Minute.Add(time.Minute)) {
				b.pump(b.Context(), time.Second)
				for _, d := range b.Received(stagetest.FiringQueue) {
					f, err := message.Decode[message.Firing](d.Body)
					if left := time.Until(f.DueAt); err != nil || left < 0 || left > contract.DelayLead+2*time.Second {
						b.Fatalf("a firing came with %s left, %v", left, err)
					}
				}
			}
		})
	}
	bubble(t, "a job that the direct lane fires is left out of its slice", func(b *bench) {
		slice := b.crowd(20*time.Minute, 4)
		asked(b, slice)
		time.Sleep(10 * time.Minute)
		b.Put(jobtest.Row(50, slice.Minute.Add(time.Second), time.Now(), func(r *job.Row) { r.Shard = 0 }))
		once(b, fired(b, slice), 4)
	})
	bubble(t, "a job that has left its slice is not sent", func(b *bench) {
		slice := b.crowd(20*time.Minute, 4)
		asked(b, slice)
		for n := range 4 {
			_, w := job.FinishStop(b.Row(jobtest.Key(n)), time.Now())
			if n == 0 {
				at := slice.Minute.Add(time.Hour)
				_, w, _ = job.Reschedule(b.Row(jobtest.Key(n)), job.Edit{DueAt: &at}, time.Now())
			}
			w.When = nil
			b.Write(w)
		}
		once(b, fired(b, slice), 0)
	})
	//proof:of S20
	bubble(t, "a slice without a timer waits in the queue, and other messages do not wait for it", func(b *bench) {
		slice, other := b.crowd(20*time.Minute, 40),
			horizon.Slice{Minute: time.Now().Truncate(time.Minute).Add(20 * time.Minute), Shard: 1}
		calls := 0
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			if c.Op != memory.TimerArm {
				return memory.Fault{}
			}
			calls++
			return memory.Fault{Wait: time.Hour}
		})
		began := time.Now()
		if failed := b.handle(b.Context(), message.Encode(firing(0)), job.AskSlice(slice).Body); failed != "" {
			b.Fatal("it is to be redelivered")
		}
		asked(b, other)
		if took := time.Since(began); took > 3*time.Second || calls != 1 {
			b.Errorf("it waited %s, and called %d times", took, calls)
		}
		if got := b.Received(stagetest.FiringQueue); len(got) != 1 {
			b.Fatalf("%d firings that were due came", len(got))
		}
		once(b, fired(b, slice), 40)
		if calls > 20 {
			b.Errorf("in 18 minutes it called %d times", calls)
		}
	})
	bubble(t, "a slice gets its timer once one can be made", func(b *bench) {
		slice := b.crowd(20*time.Minute, 3)
		b.Fail(stagetest.Every(memory.TimerArm))
		asked(b, slice)
		b.World.SetFaults(nil)
		b.pump(b.Context(), time.Minute)
		if n := len(b.World.Timers().Armed()); n != 1 {
			b.Fatalf("%d timers", n)
		}
		once(b, fired(b, slice), 3)
	})
	bubble(t, "a slice that is too near for a timer waits in the queue", func(b *bench) {
		slice := b.crowd(3*time.Minute, 3)
		asked(b, slice)
		if n := len(b.World.Timers().Armed()); n != 0 {
			b.Errorf("%d timers", n)
		}
		once(b, fired(b, slice), 3)
	})
	bubble(t, "an empty slice sends nothing", func(b *bench) {
		slice := b.crowd(20*time.Minute, 0)
		asked(b, slice)
		once(b, fired(b, slice), 0)
	})
}

func TestDispatch_FiresASlice(t *testing.T) {
	t.Parallel()
	crowd := func(b *bench, n int) string { return b.crowd(2*time.Minute, n).String() }
	//proof:of 15 203
	bubbleOf(t, "each job of a slice is sent just before it is due", memory.Options{EmptyPages: true}, func(b *bench) {
		b.dispatch(message.Dispatch{Slice: crowd(b, 350)})
		got := 0
		for range 60 * 4 {
			time.Sleep(time.Second)
			for _, d := range b.Received(stagetest.FiringQueue) {
				got++
				f, _ := message.Decode[message.Firing](d.Body)
				if left := time.Until(f.DueAt); left < 0 || left > contract.DelayLead+2*time.Second {
					b.Fatalf("a firing came with %s left", left)
				}
			}
		}
		if got != 350 {
			b.Errorf("%d of 350 were sent", got)
		}
		if calls := b.World.Counts().QueueCalls; calls > 35+240*2+350 {
			b.Errorf("%d calls: it did not send in tens", calls)
		}
	})
	//proof:of 178
	bubble(t, "a slice continues in another message when time runs short", func(b *bench) {
		slice := crowd(b, 350)
		short := func() context.Context {
			ctx, cancel := context.WithTimeout(b.Context(), 5*time.Second)
			b.Cleanup(cancel)
			return ctx
		}
		if failed := b.handle(short(), message.Encode(message.Dispatch{V: message.V, Slice: slice})); failed != "" {
			b.Fatal("it is to be redelivered")
		}
		messages := 0
		for n := 1; n > 0; messages += n {
			n = b.pump(short(), 0)
		}
		time.Sleep(5 * time.Minute)
		if got := b.Received(stagetest.FiringQueue); len(got) != 350 || messages != 3 {
			b.Errorf("%d of 350 were sent by %d more messages", len(got), messages)
		}
	})
	bubble(t, "a job that the sweeper has put off to that minute is left out", func(b *bench) {
		slice := crowd(b, 3)
		minute, err := horizon.ParseSlice(slice)
		b.Must(err)
		ago := time.Now().Add(-time.Hour)
		b.Put(jobtest.Row(9, ago, ago, func(r *job.Row) { r.Shard, r.WakeAt = 0, minute.Minute }))
		b.dispatch(message.Dispatch{Slice: slice})
		time.Sleep(contract.MaxDelay)
		if got := b.Received(stagetest.FiringQueue); len(got) != 3 {
			b.Errorf("%d firings of 3", len(got))
		}
	})
	bubble(t, "a slice that is over is left to the sweeper", func(b *bench) {
		slice := b.crowd(0, 3)
		time.Sleep(time.Minute + contract.Grace)
		b.dispatch(message.Dispatch{Slice: slice.String()})
		if got := b.Received(stagetest.FiringQueue); len(got) != 3 {
			b.Errorf("at the end of the grace %d were sent", len(got))
		}
		time.Sleep(time.Millisecond)
		b.dispatch(message.Dispatch{Slice: slice.String()})
		if got := b.Received(stagetest.FiringQueue); len(got) != 0 {
			b.Errorf("after the grace %d were sent", len(got))
		}
	})
	bubble(t, "a slice continues from the page that failed, and repeats no other", func(b *bench) {
		slice := crowd(b, 350)
		sends := 0
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			if c.Op == memory.QueueSend && c.Name == stagetest.FiringQueue {
				if sends++; sends == 25 { // entry 42 of the third page
					return memory.Fault{Entries: map[int]fault.Kind{42: fault.Throttled}}
				}
			}
			return memory.Fault{}
		})
		b.dispatch(message.Dispatch{Slice: slice})
		if n := b.pump(b.Context(), 2*time.Second); n != 1 {
			b.Fatalf("it goes on in %d messages", n)
		}
		time.Sleep(5 * time.Minute)
		if got := b.Received(stagetest.FiringQueue); len(got) < 350 || len(got) > 450 {
			b.Errorf("%d firings of 350", len(got))
		}
		if got := b.Received(contract.DispatchQueue); len(got) != 0 {
			b.Errorf("%d messages are left", len(got))
		}
	})
	bubble(t, "a slice with an unreadable row sends the other jobs", func(b *bench) {
		slice := crowd(b, 5)
		bad := jobtest.Row(99, time.Now(), time.Now()).Item()
		bad[contract.AttrWakeSlice], bad[contract.AttrPK] = slice, "nobody"
		unknown := jobtest.Row(98, time.Now(), time.Now(), func(r *job.Row) { r.Pool = "gone" }).Item()
		unknown[contract.AttrWakeSlice] = slice
		for _, i := range []item.Item{bad, unknown} {
			ref := item.Ref{Table: contract.Jobs, PK: i.Str(contract.AttrPK), SK: i.Str(contract.AttrJobID)}
			b.Overwrite(ref, i)
		}
		b.dispatch(message.Dispatch{Slice: slice})
		time.Sleep(5 * time.Minute)
		if got := b.Received(stagetest.FiringQueue); len(got) != 5 {
			b.Errorf("%d were sent", len(got))
		}
	})
	bubble(t, "a message whose first page was throttled is redelivered", func(b *bench) {
		slice := crowd(b, 5)
		b.FailEntries(map[int]fault.Kind{2: fault.Throttled})
		body := message.Encode(message.Dispatch{V: message.V, Slice: slice})
		if failed := b.handle(b.Context(), body); failed != "0" {
			b.Fatal("the one that was not sent is lost")
		}
	})
}

func TestDispatch_UnparksJobs(t *testing.T) {
	t.Parallel()
	parking := horizon.Parking(jobtest.Tenant, 0)
	// late puts the parked job n, which was due an hour ago.
	late := func(b *bench, n int, change ...func(*job.Row)) job.Row {
		b.Helper()
		at := time.Now().Add(-time.Hour)
		parked := func(r *job.Row) { r.Parked, r.WakeAt, r.Shard = true, r.DueAt, 0 }
		return b.Put(jobtest.Row(n, at, at, append(change, parked)...))
	}
	bubble(t, "all jobs of a lifted pause are fired within 5 s", func(b *bench) {
		for n := range 250 {
			late(b, n*8)
		}
		b.dispatch(message.Dispatch{Slice: parking})
		if got := b.Received(stagetest.FiringQueue); len(got) != 250 {
			b.Errorf("%d of 250 were woken", len(got))
		}
		if r := b.Row(jobtest.Key(8)); r.Parked ||
			r.Slice() != horizon.SliceOf(time.Now(), 0).String() {
			b.Errorf("it lies in %s", r.Slice())
		}
	})
	bubbleOf(t, "a parking place is read once more after 2, 10 and 60 s, because the index lags", memory.Options{
		IndexLag: func(string, item.Ref, int64) time.Duration { return 8 * time.Second },
	}, func(b *bench) {
		late(b, 0)
		b.dispatch(message.Dispatch{Slice: parking})
		for i, wait := range []time.Duration{2 * time.Second, 10 * time.Second, 60 * time.Second} {
			if n := b.pump(b.Context(), wait-time.Millisecond); n != 0 {
				b.Fatalf("round %d came early", i+1)
			}
			if n := b.pump(b.Context(), time.Millisecond); n != 1 {
				b.Fatalf("round %d did not come", i+1)
			}
		}
		if n := b.pump(b.Context(), time.Hour); n != 0 {
			b.Error("it goes on for ever")
		}
		if got := b.Received(stagetest.FiringQueue); len(got) != 1 {
			b.Errorf("%d firings, want 1", len(got))
		}
	})
	bubble(t, "a parking place continues in another message, and its next round starts from the front", func(b *bench) {
		for n := range 250 {
			late(b, n*8)
		}
		short := func() context.Context {
			ctx, cancel := context.WithTimeout(b.Context(), 5*time.Second)
			b.Cleanup(cancel)
			return ctx
		}
		body := message.Encode(message.Dispatch{V: message.V, Slice: parking})
		if failed := b.handle(short(), body); failed != "" {
			b.Fatal("it is to be redelivered")
		}
		rounds := 0
		for range 10 {
			time.Sleep(2 * time.Second)
			for _, d := range b.Received(contract.DispatchQueue) {
				m, err := message.Decode[message.Dispatch](d.Body)
				b.Must(err)
				if rounds = m.Round; m.Round > 0 && m.Cursor != "" {
					b.Fatal("the round would miss what lies before its cursor")
				}
				if failed := b.handle(short(), d.Body); failed != "" {
					b.Fatal("it is to be redelivered")
				}
			}
		}
		if got := b.Received(stagetest.FiringQueue); len(got) != 250 || rounds == 0 {
			b.Errorf("%d of 250 were woken, round %d", len(got), rounds)
		}
	})
	bubble(t, "a job that another pause holds stays parked", func(b *bench) {
		late(b, 0)
		mail := late(b, 8, func(r *job.Row) { r.Task = "mail" })
		b.Pause("task:echo", time.Time{})
		b.dispatch(message.Dispatch{Slice: parking})
		got := b.Received(stagetest.FiringQueue)
		if len(got) != 1 || got[0].Body != message.Encode(mail.Firing().Message()) {
			b.Errorf("fired %+v", got)
		}
	})
	bubble(t, "pauses are read after the message has arrived", func(b *bench) {
		late(b, 0)
		b.Pause(job.PauseAll, time.Time{})
		b.dispatch(message.Dispatch{Slice: parking})
		b.Lift(job.PauseAll)
		b.dispatch(message.Dispatch{Slice: parking})
		if got := b.Received(stagetest.FiringQueue); len(got) != 1 {
			b.Errorf("%d firings", len(got))
		}
	})
	bubble(t, "a parking place with an unreadable row unparks the other jobs", func(b *bench) {
		for n := range 3 {
			late(b, n*8)
		}
		bad := b.Row(jobtest.Key(8)).Item()
		bad["status"] = "LOST"
		b.Must(b.Store.Put(b.Context(),
			item.Write{Ref: jobtest.Key(8).Ref(), Name: "test.put", Put: bad}))
		b.dispatch(message.Dispatch{Slice: parking})
		if got := b.Received(stagetest.FiringQueue); len(got) != 2 {
			b.Errorf("%d were woken", len(got))
		}
	})
}

//proof:of F09
func TestDispatch_DeletesTheContentsOfAnExpiredRow(t *testing.T) {
	t.Parallel()
	// full puts a job with all contents that a row may have.
	full := func(b *bench) job.Row {
		b.Helper()
		r := jobtest.Row(1, time.Now(), time.Now(), func(r *job.Row) {
			r.Status, r.WakeAt, r.Tagged, r.PayloadIn, r.PayloadVer = job.Succeeded, time.Time{}, true, job.InBlob, 2
			r.ExpiresAt = time.Now().Add(time.Hour)
		})
		b.Put(r)
		b.Must(b.Store.PutPayload(b.Context(), r, []byte("{}")))
		open := r // contents are put before the job has ended
		open.ExpiresAt = time.Time{}
		for _, w := range []item.Write{open.PutContent(job.TagsContent, "{}"),
			open.PutAttempt(job.Attempt{Attempt: 1, Outcome: "failed"})} {
			b.Write(w)
		}
		return r
	}
	left := func(b *bench, r job.Row) int {
		b.Helper()
		page, err := b.World.Table().Query(b.Context(), item.Query{Table: contract.Jobs, PK: r.ContentRef("").PK})
		b.Must(err)
		return len(page.Items) + len(b.World.Blobs().Keys(contract.JobBlobs))
	}
	for name, c := range map[string]struct {
		gone bool
		left int
	}{"that is gone": {true, 0}, "that is there, whatever the message says": {false, 3}} {
		bubble(t, name, func(b *bench) {
			r := full(b)
			if c.gone {
				time.Sleep(time.Hour) // it has expired, although the table still has it
			}
			ask, _ := job.Forgotten(r)
			for range 2 {
				b.dispatch(ask)
			}
			if n := left(b, r); n != c.left {
				b.Errorf("%d items and blobs are left, want %d", n, c.left)
			}
		})
	}
	bubble(t, "a message that names no job is undecodable", func(b *bench) {
		if failed := b.handle(b.Context(), `{"v":1,"slice":"forget#acme#x#0"}`); failed != "0" {
			b.Error("it was taken")
		}
	})
}

package stagetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"punctual/functions/batch"
	"punctual/functions/engine"
	"punctual/shared/calendar"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Shards is how many the due index has; jobtest spreads its jobs over them.
const Shards = 4

// FiringQueue is where firings of jobtest's jobs go.
const FiringQueue = "firing-short-normal"

// Late is how long after its wake-up a sweeper meets a job.
const Late = contract.Grace + 20*time.Second

// Setup is one world with its store and a meter. It is a *testing.T as well.
type Setup struct {
	*testing.T
	World *memory.World
	Store *store.Store
	Meter *telemetry.Meter
}

// Bubble runs do as a parallel subtest in virtual time.
func Bubble(t *testing.T, name string, o memory.Options, do func(s *Setup)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { do(New(t, o)) })
	})
}

// New returns a set-up that ends with the test.
func New(t *testing.T, o memory.Options) *Setup {
	w := memory.New(o)
	t.Cleanup(w.Close)
	return &Setup{T: t, World: w, Store: store.New(w.Table(), w.Blobs()), Meter: new(telemetry.Meter)}
}

// Engine returns the verbs as a process of their own: it shares nothing with another but the world.
func (s *Setup) Engine() *engine.Engine {
	return engine.New(engine.Deps{
		Store: s.Store, Queue: s.World.Queues(), Clock: clock.System{}, Log: telemetry.Silent(), Meter: s.Meter,
		Shards: Shards,
	})
}

// Now is the time of the bubble as rows hold it: in UTC and whole milliseconds.
func Now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

func (s *Setup) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// Write commits writes in one transaction.
func (s *Setup) Write(writes ...item.Write) {
	s.Helper()
	if len(writes) == 1 {
		s.check(s.Store.Put(s.Context(), writes[0]))
		return
	}
	s.check(s.Store.Commit(s.Context(), writes...))
}

// PutItem stores an item of the jobs table as it is.
func (s *Setup) PutItem(i item.Item) {
	s.Helper()
	ref := item.Ref{Table: contract.Jobs, PK: i.Str(contract.AttrPK), SK: i.Str(contract.AttrJobID)}
	s.Write(item.Write{Ref: ref, Name: "test.put", Put: i})
}

// Put stores a row as it is and returns it.
func (s *Setup) Put(r job.Row) job.Row {
	s.Helper()
	s.PutItem(r.Item())
	return r
}

// Overdue puts job n, which was accepted a second before it became due that long ago.
func (s *Setup) Overdue(n int, ago time.Duration, change ...func(*job.Row)) job.Row {
	s.Helper()
	due := time.Now().Add(-ago)
	return s.Put(jobtest.Row(n, due, due.Add(-time.Second), change...))
}

// Spoil makes an item unreadable: of a schema that no version knows.
func (s *Setup) Spoil(ref item.Ref) {
	s.Helper()
	s.Write(item.Write{Ref: ref, Name: "test.spoil", Set: map[string]any{"schema_v": int64(99)}})
}

// Row reads a job's row, which must be there.
func (s *Setup) Row(k job.Key) job.Row {
	s.Helper()
	r, err := s.Store.Row(s.Context(), k)
	s.check(err)
	return r
}

// Claim reads a job's claim; the zero Claim if there is none.
func (s *Setup) Claim(k job.Key) job.Claim {
	s.Helper()
	c, err := s.Store.Claim(s.Context(), k)
	s.check(err)
	return c
}

// Own makes a worker claim the job's attempt for a lease from now.
func (s *Setup) Own(r job.Row, lease time.Duration) job.Claim {
	s.Helper()
	s.Write(job.ClaimNew(r.Key, r.Attempt, job.Owner{
		Worker: "w1", Nonce: "n1", LeaseUntil: time.Now().Add(lease), DueAt: r.DueAt,
	}))
	return s.Claim(r.Key)
}

// Pause puts a pause of jobtest's tenant; a zero until is none.
func (s *Setup) Pause(scope string, until time.Time) {
	s.Helper()
	p := job.Pause{Scope: scope, Since: time.Now(), EffectiveAt: time.Now(), Until: until}
	ref := job.PauseRef(jobtest.Tenant, scope)
	s.Write(item.Write{Ref: ref, Name: "test.pause", Put: p.Item(jobtest.Tenant)})
}

// Lift takes a pause away and leaves no trace of it.
func (s *Setup) Lift(scope string) {
	s.Helper()
	s.Write(item.Write{Ref: job.PauseRef(jobtest.Tenant, scope), Name: "test.lift", Delete: true})
}

// Schedule is one of jobtest's tenant that no caller has created yet.
func Schedule(name, cron string, change ...func(*schedule.Schedule)) schedule.Schedule {
	s := schedule.Schedule{
		Key: schedule.Key{Tenant: jobtest.Tenant, Name: name}, Spec: calendar.Spec{Cron: &cron},
		CatchUp: schedule.DefaultCatchUp,
		Template: schedule.Template{
			Settings: job.Settings{Task: "echo", Executor: "echo", Pool: "short", Priority: job.Normal,
				Timeout: time.Minute, Retry: job.DefaultRetry},
		},
	}
	for _, f := range change {
		f(&s)
	}
	return s
}

// Rule puts an hourly schedule that was made an hour ago and has no time before the next hour.
func (s *Setup) Rule(change ...func(*schedule.Schedule)) schedule.Schedule {
	s.Helper()
	cron := "0 * * * *"
	r := schedule.Schedule{Key: schedule.Key{Tenant: jobtest.Tenant, Name: "rule"}, Spec: calendar.Spec{Cron: &cron},
		CatchUp: schedule.CatchUp{Policy: schedule.CatchUpAll, Window: schedule.MaxCatchUpWindow, Cap: 1000}}
	for _, f := range change {
		f(&r)
	}
	r, w, err := schedule.Create(nil, r, Now().Add(-time.Hour))
	s.check(err)
	r.Next = Now().Add(time.Hour)
	w.Put = r.Item()
	s.Write(w)
	return r
}

// Of makes a row one of a schedule's jobs: of the time at which it is due.
func Of(s schedule.Schedule) func(*job.Row) {
	return func(r *job.Row) { r.ScheduleID, r.Epoch, r.NominalAt = s.Name, s.Epoch, r.DueAt }
}

// Dead makes a row one of a job that failed for good and whose dead letter is yet to be sent.
func Dead(r *job.Row) {
	r.Status, r.PendingEffects, r.Reason = job.Dead, job.PendingDeadLetter,
		job.Reason{Code: job.CodeHandler, Message: "no"}
	r.WakeAt, r.DeadAt, r.FinishedAt = r.DueAt, r.DueAt, r.DueAt
}

// Entry is how the due index lists a row.
func Entry(r job.Row) store.Entry {
	return store.Entry{
		Key: r.Key, Version: r.Version, Attempt: r.Attempt, Pool: r.Pool, Priority: string(r.Priority),
		DueAt: r.DueAt, WakeAt: r.WakeAt,
	}
}

// Create creates a schedule and promotes nothing.
func (s *Setup) Create(r schedule.Schedule) schedule.Schedule {
	s.Helper()
	r, w, err := schedule.Create(nil, r, Now())
	s.check(err)
	s.Write(w)
	return r
}

// Schedule reads a schedule, which must be there.
func (s *Setup) Schedule(k schedule.Key) schedule.Schedule {
	s.Helper()
	is, err := s.Store.Schedule(s.Context(), k)
	s.check(err)
	return is
}

// Received takes everything visible off a queue.
func (s *Setup) Received(queue string) []message.Delivery {
	s.Helper()
	var all []message.Delivery
	for {
		got, err := s.World.Queues().Receive(s.Context(), queue, 10, 0, time.Hour)
		s.check(err)
		if len(got) == 0 {
			return all
		}
		for _, d := range got {
			s.check(s.World.Queues().Delete(s.Context(), queue, d.Receipt))
		}
		all = append(all, got...)
	}
}

// Firings takes everything visible off the firing queue.
func (s *Setup) Firings() []message.Firing {
	s.Helper()
	var all []message.Firing
	for _, d := range s.Received(FiringQueue) {
		f, err := message.Decode[message.Firing](d.Body)
		s.check(err)
		all = append(all, f)
	}
	return all
}

// HasFired takes everything visible off the firing queue and says whether a firing of r was among it.
func (s *Setup) HasFired(r job.Row) bool {
	s.Helper()
	return s.Fired()[string(r.ID)] > 0
}

// Fired takes everything visible off the firing queue and counts it by job.
func (s *Setup) Fired() map[string]int {
	s.Helper()
	n := map[string]int{}
	for _, f := range s.Firings() {
		n[f.JobID]++
	}
	return n
}

// RequireFired says that exactly this firing of r was sent.
func (s *Setup) RequireFired(r job.Row) {
	s.Helper()
	if got := s.Firings(); len(got) != 1 || got[0] != r.Firing().Message() {
		s.Fatalf("fired %+v, want one firing of attempt %d", got, r.Attempt)
	}
}

// RequireSilence says that nothing visible was sent to any queue of ours.
func (s *Setup) RequireSilence() {
	s.Helper()
	for _, queue := range []string{FiringQueue, contract.ReportQueue, contract.RedriveQueue, contract.DispatchQueue} {
		if got := s.Received(queue); len(got) != 0 {
			s.Fatalf("%s holds %s", queue, got[0].Body)
		}
	}
}

// Depth says how much a queue holds, visible or not.
func (s *Setup) Depth(queue string) int {
	s.Helper()
	d, err := s.World.Queues().Depth(s.Context(), queue)
	s.check(err)
	return d.Visible + d.InFlight + d.Delayed
}

// SQS is the handler of a stage that consumes a queue.
type SQS func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)

// Handle hands a stage those bodies, each received for the n-th time, and returns the indexes of
// those that must come again, such as "02"; "" is none.
func (s *Setup) Handle(ctx context.Context, handle SQS, receives int, bodies ...string) (returned string) {
	s.Helper()
	var deliveries []message.Delivery
	for i, body := range bodies {
		deliveries = append(deliveries, message.Delivery{
			ID: fmt.Sprint(i), Body: body, Receives: receives, SentAt: time.Now(),
		})
	}
	resp, err := handle(ctx, batch.SQSEventOf(deliveries...))
	s.check(err)
	for _, f := range resp.BatchItemFailures {
		returned += f.ItemIdentifier
	}
	return returned
}

// DieAt lets the first n calls be and fails everything after; the first that fails may have taken
// effect all the same. asked counts the calls.
func (s *Setup) DieAt(n int, lost bool) (asked *int) {
	asked = new(int)
	var mu sync.Mutex // calls may come together
	s.World.SetFaults(func(memory.Call) memory.Fault {
		mu.Lock()
		defer mu.Unlock()
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

// Crashes prepares job 0, 1, 2 … and acts on it, crashing one call later each time, until the operation
// gets through; after each crash, recovered checks what becomes of the job. What the operation uses may
// remember nothing of the crash: recovered begins with a new process.
func (s *Setup) Crashes(lost bool, prepare func(n int), operation func() error, recovered func(n int)) {
	s.Helper()
	for n := range 50 {
		prepare(n)
		asked := s.DieAt(n, lost)
		err := operation()
		s.World.SetFaults(nil)
		if *asked <= n {
			if n < 2 || err != nil {
				s.Errorf("%d points of crash, then %v", n, err)
			}
			return
		}
		recovered(n)
	}
	s.Error("it never gets through")
}

// Twice makes the next write of that name happen twice, as an SDK does that never saw the first
// answer; what the second is answered is the first one's own effect.
func (s *Setup) Twice(write string) {
	done := false
	s.World.SetFaults(func(c memory.Call) memory.Fault {
		first := !done && c.Op == memory.TableWrite && c.Name == write
		done = done || first
		return memory.Fault{Twice: first}
	})
	s.Cleanup(func() {
		if !done {
			s.Errorf("nothing was written by the name of %s", write)
		}
	})
}

// Fail makes every call of that kind and name fail for now; an empty name is any.
func (s *Setup) Fail(op, name string) {
	s.World.SetFaults(func(c memory.Call) memory.Fault {
		if c.Op == op && (name == "" || c.Name == name) {
			return memory.Fault{Fail: fault.Unavailable}
		}
		return memory.Fault{}
	})
}

// Before does something once, before the next call that is; its caller knows nothing of it yet.
func (s *Setup) Before(is func(memory.Call) bool, do func()) {
	var done atomic.Bool // do may well make such a call itself
	s.World.SetFaults(func(c memory.Call) memory.Fault {
		if is(c) && done.CompareAndSwap(false, true) {
			do()
		}
		return memory.Fault{}
	})
}

// Named are the calls of a named write.
func Named(write string) func(memory.Call) bool {
	return func(c memory.Call) bool { return c.Name == write }
}

package stagetest

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"punctual/functions/engine"
	"punctual/functions/engine/runs"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/process"
	"punctual/shared/run"
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

// Bench is one world with its store and a meter, and the test that it serves. The tests of a stage embed it in a bench
// of their own, which adds the stage.
type Bench struct {
	testing.TB
	World *memory.World
	Store *store.Store
	Meter *telemetry.Meter
}

// Bubble runs do as a parallel subtest in virtual time.
func Bubble(t *testing.T, name string, o memory.Options, do func(s *Bench)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { do(New(t, o)) })
	})
}

// New returns a bench that ends with the test. Its store has the clock of the options, if they name one.
func New(t testing.TB, o memory.Options) *Bench {
	w := memory.New(o)
	t.Cleanup(w.Close)
	rows := store.New(w.Table(), w.Blobs())
	if o.Clock != nil {
		rows = store.By(o.Clock, w.Table(), w.Blobs())
	}
	return &Bench{TB: t, World: w, Store: rows, Meter: new(telemetry.Meter)}
}

// ProcessBase returns what the parts of a process share.
func (s *Bench) ProcessBase() process.Base {
	return process.Base{Meter: s.Meter, Shards: Shards}.WithDefaults()
}

// Engine returns the verbs as a process of their own: it shares nothing with another but the world.
func (s *Bench) Engine() *engine.Engine {
	return engine.New(engine.Deps{Base: s.ProcessBase(), Store: s.Store, Queue: s.World.Queues()})
}

// Now is the time of the bubble as rows hold it: in UTC and whole milliseconds.
func Now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// Must ends the test if there is an error.
func (s *Bench) Must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// Write commits writes in one transaction.
func (s *Bench) Write(writes ...item.Write) {
	s.Helper()
	if len(writes) == 1 {
		s.Must(s.Store.Put(s.Context(), writes[0]))
		return
	}
	s.Must(s.Store.Commit(s.Context(), writes...))
}

// PutItem stores an item of the jobs table as it is.
func (s *Bench) PutItem(i item.Item) {
	s.Helper()
	s.Overwrite(item.Ref{Table: contract.Jobs, PK: i.Str(contract.AttrPK), SK: i.Str(contract.AttrJobID)}, i)
}

// Overwrite stores an item as it is, whatever is there.
func (s *Bench) Overwrite(ref item.Ref, i item.Item) {
	s.Helper()
	s.Write(item.Write{Ref: ref, Name: "test.put", Put: i})
}

// Put stores a row as it is and returns it.
func (s *Bench) Put(r job.Row) job.Row {
	s.Helper()
	s.PutItem(r.Item())
	return r
}

// Overdue puts job n, which was accepted a second before it became due that long ago.
func (s *Bench) Overdue(n int, ago time.Duration, change ...func(*job.Row)) job.Row {
	s.Helper()
	due := time.Now().Add(-ago)
	return s.Put(jobtest.Row(n, due, due.Add(-time.Second), change...))
}

// Due puts job n, which was accepted a day ago and becomes due in that time.
func (s *Bench) Due(n int, in time.Duration, change ...func(*job.Row)) job.Row {
	s.Helper()
	return s.Put(jobtest.Row(n, time.Now().Add(in), time.Now().Add(-24*time.Hour), change...))
}

// Spoil makes an item unreadable: of a schema that no version knows.
func (s *Bench) Spoil(ref item.Ref) {
	s.Helper()
	s.Write(item.Write{Ref: ref, Name: "test.spoil", Set: map[string]any{"schema_v": int64(99)}})
}

// Row reads a job's row, which must be there.
func (s *Bench) Row(k job.Key) job.Row {
	s.Helper()
	r, err := s.Store.Row(s.Context(), k)
	s.Must(err)
	return r
}

// Claim reads a job's claim; the zero Claim if there is none.
func (s *Bench) Claim(k job.Key) job.Claim {
	s.Helper()
	c, err := s.Store.Claim(s.Context(), k)
	s.Must(err)
	return c
}

// Own makes a worker claim the job's attempt for a lease from now.
func (s *Bench) Own(r job.Row, lease time.Duration) job.Claim {
	s.Helper()
	s.Write(job.ClaimNew(r.Key, r.Attempt, job.Owner{
		Worker: "w1", Nonce: "n1", LeaseUntil: time.Now().Add(lease), DueAt: r.DueAt,
	}))
	return s.Claim(r.Key)
}

// Pause puts a pause of jobtest's tenant; a zero until is none.
func (s *Bench) Pause(scope string, until time.Time) {
	s.Helper()
	p := job.Pause{Scope: scope, Since: time.Now(), EffectiveAt: time.Now(), Until: until}
	ref := job.PauseRef(jobtest.Tenant, scope)
	s.Write(item.Write{Ref: ref, Name: "test.pause", Put: p.Item(jobtest.Tenant)})
}

// Lift takes a pause away and leaves no trace of it.
func (s *Bench) Lift(scope string) {
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
func (s *Bench) Rule(change ...func(*schedule.Schedule)) schedule.Schedule {
	s.Helper()
	cron := "0 * * * *"
	r := schedule.Schedule{Key: schedule.Key{Tenant: jobtest.Tenant, Name: "rule"}, Spec: calendar.Spec{Cron: &cron},
		CatchUp: schedule.CatchUp{Policy: schedule.CatchUpAll, Window: schedule.MaxCatchUpWindow, Cap: 1000}}
	for _, f := range change {
		f(&r)
	}
	r, w, err := schedule.Create(nil, r, Now().Add(-time.Hour))
	s.Must(err)
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

// Graph is a definition of echo nodes from lines such as "child: parent parent".
func Graph(nodes ...string) dag.Definition {
	d := dag.Definition{Nodes: map[string]dag.Node{}}
	for _, line := range nodes {
		name, parents, _ := strings.Cut(line, ":")
		d.Nodes[name] = dag.Node{Task: "echo", DependsOn: strings.Fields(parents)}
	}
	return d
}

// CreateRun makes a run of a definition and starts it.
func (s *Bench) CreateRun(k run.Key, d dag.Definition) run.Run {
	s.Helper()
	r, _, err := s.Engine().Runs.Create(s.Context(), runs.Request{Key: k, Definition: d})
	s.Must(err)
	return r
}

// Create creates a schedule and promotes nothing.
func (s *Bench) Create(r schedule.Schedule) schedule.Schedule {
	s.Helper()
	r, w, err := schedule.Create(nil, r, Now())
	s.Must(err)
	s.Write(w)
	return r
}

// Schedule reads a schedule, which must be there.
func (s *Bench) Schedule(k schedule.Key) schedule.Schedule {
	s.Helper()
	is, err := s.Store.Schedule(s.Context(), k)
	s.Must(err)
	return is
}

// Mark reads a shard's watermark: the slices up to it are done.
func (s *Bench) Mark(w store.Watermark, shard int) time.Time {
	s.Helper()
	at, err := s.Store.Watermark(s.Context(), w, shard)
	s.Must(err)
	return at.Whole()
}

// Sweep decides about the row as the sweeper does, and returns the step.
func (s *Bench) Sweep(e *engine.Engine, r job.Row) job.Step {
	s.Helper()
	step, err := e.Entry(s.Context(), Entry(r))
	s.Must(err)
	return step
}

// RequireStep says that a decision was this one.
func (s *Bench) RequireStep(got, want job.Step) {
	s.Helper()
	if got != want {
		s.Fatalf("the step was %q, want %q", got, want)
	}
}

package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"punctual/shared/job"
	"punctual/shared/tenant"
	"punctual/workers/worker"
)

// taskOf returns the task of all jobs of a tenant. Each tenant has its own, so that a handler knows
// whose jobs it gets.
func taskOf(t tenant.ID) string {
	if t == tenant.Local {
		return "sim"
	}
	return "sim-" + string(t)
}

// Work is a job's payload: what its handler does.
type Work struct {
	Sleep     string `json:"sleep,omitempty"`     // how long it runs
	Fail      int64  `json:"fail,omitempty"`      // attempts up to this one fail
	Snooze    int64  `json:"snooze,omitempty"`    // attempts up to this one snooze
	Permanent bool   `json:"permanent,omitempty"` // it fails for good
	Mark      string `json:"mark,omitempty"`      // makes payloads differ
	Kill      bool   `json:"kill,omitempty"`      // it crashes its worker
	Text      string `json:"text,omitempty"`      // text of its errors and its progress
	Quarters  bool   `json:"quarters,omitempty"`  // see inQuarters
	Owner     string `json:"owner,omitempty"`     // the tenant's secret
	Lines     bool   `json:"lines,omitempty"`     // it writes a line to its log each second
	Heals     int64  `json:"heals,omitempty"`     // a node fails for good only in generations up to this one; 0: in all
}

var errAsked = errors.New("it was asked to fail")

// run is one execution of a handler.
type run struct {
	job.Key
	attempt, token int64
	key, mark      string
	alone, counted bool // alone: it must not overlap with others of its schedule; counted: it counts for max_runs
	process        *process
	from, to       time.Time // real time; to is zero while it runs
	late           time.Duration
	err            error
}

// open reports whether the handler still runs: its process lives and it has not returned.
func (r *run) open() bool { return r.to.IsZero() && !r.process.dead.Load() }

// history holds every start and end of a handler, in order.
type history struct {
	mu   sync.Mutex
	runs []*run
	of   map[job.Key][]*run
}

// registry returns the handlers of one worker process.
func (w *World) registry(p *process) *worker.Registry {
	r := worker.NewRegistry()
	for _, t := range tenants {
		w.register(r, p, t)
	}
	return r
}

// Tasks for jobs that need another one than taskOf.
func aloneTask(t tenant.ID) string   { return taskOf(t) + "-one" } // one attempt at a time in each worker
func unknownTask(t tenant.ID) string { return taskOf(t) + "-new" } // that workers do not know at first

func (w *World) register(r *worker.Registry, p *process, t tenant.ID) {
	handle := w.handler(p, t)
	worker.Register(r, taskOf(t), handle)
	worker.Register(r, aloneTask(t), handle, worker.Concurrency(1))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.knows {
		worker.Register(r, unknownTask(t), handle)
	}
}

func (w *World) handler(p *process, t tenant.ID) func(context.Context, worker.Job[Work]) (string, error) {
	return func(ctx context.Context, j worker.Job[Work]) (string, error) {
		if p.dead.Load() {
			<-w.released
			return "", context.Canceled
		}
		p.separate("start", j.JobID)
		r := w.starts(p, t, j)
		if j.Payload.Kill {
			p.die()
		}
		err := work(ctx, w.healed(t, inQuarters(j)))
		if p.dead.Load() {
			<-w.released
			return "", context.Canceled
		}
		w.ends(r, err)
		return j.Payload.Mark, err
	}
}

// inQuarters gives four jobs due a second apart different work, so that all end within one second:
// by the second of its due time a job succeeds after 3 s, fails after 2.2 s, succeeds after
// 1.5 s, or fails after 0.8 s.
func inQuarters(j worker.Job[Work]) worker.Job[Work] {
	if !j.Payload.Quarters {
		return j
	}
	n := j.DueAt.Second() % 4
	j.Payload.Sleep = []string{"3s", "2200ms", "1500ms", "800ms"}[n]
	j.Payload.Permanent = n%2 == 1
	return j
}

// healed lets a node of a later generation succeed where its payload says so.
func (w *World) healed(t tenant.ID, j worker.Job[Work]) worker.Job[Work] {
	row, _ := w.ledger.row(job.Key{Tenant: t, ID: job.ID(j.JobID)})
	if j.Payload.Heals > 0 && row.Generation > j.Payload.Heals {
		j.Payload.Permanent = false
	}
	return j
}

func work(ctx context.Context, j worker.Job[Work]) error {
	if d, err := time.ParseDuration(j.Payload.Sleep); err == nil && d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		for left := d; left > 0; left -= time.Second {
			j.Progress(int64(d-left), int64(d), j.Payload.Text)
			if j.Payload.Lines {
				worker.Log(ctx).Info("working", "left", left)
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-t.C:
				left = 0
			case <-time.After(min(left, time.Second)):
			}
		}
	}
	switch {
	case j.Attempt <= j.Payload.Snooze:
		return worker.Snooze(5 * time.Second)
	case j.Payload.Permanent:
		return worker.Permanent(asked(j.Payload.Text))
	case j.Attempt <= j.Payload.Fail:
		return asked(j.Payload.Text)
	}
	return nil
}

func asked(text string) error {
	if text == "" {
		return errAsked
	}
	return fmt.Errorf("%w: %s", errAsked, text)
}

// starts notes a start and verifies that it was allowed.
func (w *World) starts(p *process, t tenant.ID, j worker.Job[Work]) *run {
	now := time.Now()
	id := job.ID(j.JobID)
	k := job.Key{Tenant: t, ID: id}
	r := &run{Key: k, attempt: j.Attempt, token: j.Token, key: j.Key, mark: j.Payload.Mark, process: p, from: now}
	row, there := w.ledger.row(k)
	claim := w.ledger.claim(k)

	h := &w.history
	h.mu.Lock()
	defer h.mu.Unlock()
	w.note(p, fmt.Sprintf("START %s attempt %d token %d", short(id), j.Attempt, j.Token))
	bad := func(format string, args ...any) {
		w.violation("start of %s attempt %d token %d by %s: %s", short(id), j.Attempt, j.Token, p.name,
			fmt.Sprintf(format, args...))
	}
	switch {
	case !there:
		bad("there is no such job")
		return r
	case !row.Status.Open():
		bad("it is %s already", row.Status)
	case row.Attempt != j.Attempt:
		bad("the row is at attempt %d", row.Attempt)
	case !row.DueAt.Equal(j.DueAt):
		bad("for %s, but it is due at %s", j.DueAt, row.DueAt)
	}
	if row.IsPaused() {
		bad("it is paused since %s", clockTime(row.Paused.Since))
	}
	if mine := p.clock.Now(); mine.Before(row.DueAt) {
		bad("%s before it is due", row.DueAt.Sub(mine))
	}
	if row.StartWithin > 0 && !job.HasStarted(row, job.Claim{Attempt: j.Attempt, Lost: claim.Lost}) &&
		now.After(row.DueAt.Add(row.StartWithin+slack)) {
		bad("start_within passed %s ago", now.Sub(row.DueAt.Add(row.StartWithin)))
	}
	if !row.ExpiryAt.IsZero() && now.After(row.ExpiryAt.Add(slack)) {
		bad("expire_after passed %s ago", now.Sub(row.ExpiryAt))
	}
	if claim.Attempt != j.Attempt || claim.Token != j.Token || claim.Outcome != nil {
		bad("the claim is of attempt %d token %d, outcome %v", claim.Attempt, claim.Token, claim.Outcome != nil)
	}
	if at := w.cancelAnswered(k); !at.IsZero() && at.Before(row.DueAt.Add(-2*w.o.Skew)) && w.o.Hazards.LastSecond {
		bad("a cancel was answered %s before it was due", row.DueAt.Sub(at))
	}
	if reason := w.pausedBy(t, now); reason != "" && !row.Delivery() {
		bad("%s", reason)
	}
	if j.Payload.Owner != "" && j.Payload.Owner != secretOf(t) {
		bad("its payload is another tenant's")
	}
	if want := string(row.HandlerKey()); j.Key != want {
		bad("its key is %s, want %s", j.Key, want)
	}
	for _, before := range h.of[k] {
		if before.open() {
			bad("a run of attempt %d token %d by %s is under way", before.attempt, before.token, before.process.name)
		}
	}
	if n := len(h.of[k]); n > 0 {
		last := h.of[k][n-1]
		if j.Attempt < last.attempt || j.Attempt == last.attempt && j.Token <= last.token {
			bad("it comes after attempt %d token %d", last.attempt, last.token)
		}
	}
	if row.Unique.Key != "" {
		w.startsWithKey(row, bad)
	}
	if row.ScheduleID != "" {
		w.mayStart(r, row, bad)
	}
	if row.InRun() {
		w.mayRun(r, row, bad)
	}
	from := row.DueAt
	if row.CreatedAt.After(from) {
		from = row.CreatedAt
	}
	r.late = now.Sub(from)
	if h.of == nil {
		h.of = map[job.Key][]*run{}
	}
	h.of[k] = append(h.of[k], r)
	h.runs = append(h.runs, r)
	return r
}

// slack is how old the facts may be by which a job starts, plus how much clocks differ.
const slack = 5 * time.Second

func (w *World) ends(r *run, err error) {
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	r.to, r.err = time.Now(), err
	w.note(r.process, fmt.Sprintf("END %s attempt %d token %d: %v", short(r.ID), r.attempt, r.token, err))
}

// runs returns the runs of a job, in order.
func (w *World) runs(k job.Key) []*run {
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	return append([]*run(nil), w.history.of[k]...)
}

// short returns the part of an id that is enough in a trace.
func short(id job.ID) string {
	if len(id) < 6 {
		return string(id)
	}
	return "…" + string(id[len(id)-6:])
}

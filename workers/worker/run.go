package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/workers/executor"
)

const (
	// beatRetry is when a heartbeat that got no answer is retried.
	beatRetry = time.Second
	// checkTime bounds one look for a cancel.
	checkTime = time.Second
	// beatTime bounds one heartbeat.
	beatTime = 3 * time.Second
	// lateReturn is how long a handler may take to return after its timeout before the outcome is
	// recorded without it. The next attempt then rarely starts while it still runs.
	lateReturn = time.Second
	// drainGrace is how long a cancelled handler may take to return before it is given up.
	drainGrace = 2 * time.Second
)

// run is one attempt under way.
type run struct {
	w   *Worker
	f   *firing
	l   lease
	row *job.Row
	log *slog.Logger

	timed    context.Context // ends at the timeout
	ctx      context.Context // the handler's, within timed
	cancel   context.CancelCauseFunc
	done     chan ended
	progress *progress
	written  *logWriter
	started  time.Time
	lateness time.Duration
	leaseEnd *time.Timer
	reported bool // RUNNING was reported
	lost     bool // another process fenced us
	gone     bool // the message was deleted, its visibility being used up
}

// progress is the handler's latest note.
type progress struct {
	mu    sync.Mutex
	clock func() time.Time
	last  *job.Progress
}

func (p *progress) note(done, total int64, note string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = &job.Progress{Done: done, Total: total, Note: job.Cut(note, contract.MaxReason),
		At: p.clock().UTC().Truncate(time.Millisecond)}
}

// take returns the latest note that was not taken yet; nil for none.
func (p *progress) take() *job.Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.last
	p.last = nil
	return last
}

// putBack returns a note whose heartbeat failed, unless there is a newer one.
func (p *progress) putBack(note *job.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = note
	}
}

// execute runs the attempt and sees its end recorded. The slot is kept until the handler returns.
func (w *Worker) execute(a *attempt) disposition {
	f, row := a.f, &a.seen.row
	timeout := row.Timeout
	if timeout <= 0 {
		timeout = contract.DefaultTimeout
	}
	timed, stop := context.WithTimeoutCause(w.ctx, timeout, ErrTimeout)
	defer stop()
	ctx, cancel := context.WithCancelCause(timed)
	defer cancel(nil)

	r := &run{w: w, f: f, l: a.l, row: row, log: a.log, timed: timed, ctx: ctx, cancel: cancel,
		done: make(chan ended, 1), progress: &progress{clock: w.clock.Now}}
	r.started = w.clock.Now()
	r.written = newLogWriter(w, row, job.LogStart{Key: f.key, Attempt: f.attempt, Start: job.StartAfter(a.l.lost),
		Token: a.l.token}, r.markOf)
	// A one-off is late from when it was accepted, if that was after its time. A schedule's job is late
	// from its due time; but what the deployment is measured by does not count how late it was made.
	possible := row.DueAt
	if f.attempt == 1 && row.CreatedAt.After(possible) {
		possible = row.CreatedAt
	}
	from := possible
	if row.ScheduleID != "" {
		from = row.DueAt
	}
	r.lateness = max(r.started.Sub(from), 0)
	w.meter.Observe(telemetry.StartLateness, max(r.started.Sub(possible), 0), r.pool())
	if f.source.rank < urgentRanks {
		w.meter.Observe(telemetry.UrgentLateness, max(r.started.Sub(possible), 0), r.pool())
	}
	f.source.intake.running(1)
	defer f.source.intake.running(-1)
	work := r.work(a.payload)
	work.MaxResult = keepingOf(row).most
	go handle(ctx, w.executors[row.Executor], work, w.clock.Now, a.log, r.done)
	r.watch()
	return disposition{then: done}
}

// work is the attempt as its executor sees it.
func (r *run) work(payload []byte) executor.Work {
	row := r.row
	return executor.Work{
		Key: r.f.key, Task: row.Task, HandlerKey: row.HandlerKey(), Attempt: r.f.attempt, Token: r.l.token,
		DueAt: row.DueAt, NominalAt: row.NominalAt, Payload: payload, Progress: r.progress.note,
		Log:  r.written.lines.logger(r.w.clock.Now),
		Text: func(field string) bool { return !row.MayResolve(field) },
	}
}

// urgentRanks is how many priorities are urgent: critical and high.
const urgentRanks = 2

func (r *run) pool() telemetry.Dim { return telemetry.Dim{Key: "pool", Value: r.f.source.pool} }

// handle calls the executor, whatever it does, and says how it ended.
func handle(
	ctx context.Context, e executor.Executor, work executor.Work, now func() time.Time, log *slog.Logger,
	done chan<- ended,
) {
	end := ended{err: &executor.Failure{Code: job.CodePanic, Message: "the handler ended its goroutine"}}
	defer func() {
		if p := recover(); p != nil {
			line, _, _ := strings.Cut(fmt.Sprint(p), "\n")
			end.err = &executor.Failure{Code: job.CodePanic, Message: "the handler panicked: " + line}
			log.Error("recovered from a handler's panic", telemetry.Err, loggable(p), "stack", string(debug.Stack()))
		}
		end.cause, end.at = context.Cause(ctx), now()
		done <- end
	}()
	result, err := e.Run(ctx, work)
	end = ended{result: result, err: err}
	if _, end.shortens = e.(executor.Shortens); end.shortens && errors.Is(err, executor.ErrShortened) {
		end.shortened, end.err = true, nil
	}
}

// loggable says what a handler panicked with. Its own text may quote the payload, so that goes to the
// attempt, where the tenant reads it, and only its type to the log.
func loggable(panicked any) string {
	if err, ok := panicked.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a %T", panicked)
}

// Attempt runs one attempt by itself, without queue or table, and says how it would be recorded
// and what was returned. Package workertest is made of it.
func Attempt(ctx context.Context, e executor.Executor, work executor.Work) (job.Outcome, error) {
	done := make(chan ended, 1)
	go handle(ctx, e, work, time.Now, telemetry.Silent(), done)
	end := <-done
	return outcomeOf(end, keeping{most: work.Most()}), end.err
}

// watch beats until the handler has returned, and records what came of the attempt.
func (r *run) watch() {
	r.leaseEnd = time.AfterFunc(r.l.left(), func() { r.cancel(ErrLeaseLost) })
	defer r.leaseEnd.Stop()
	beat := time.NewTimer(max(contract.HeartbeatEvery-time.Since(r.l.from), 0))
	defer beat.Stop()
	check := time.NewTimer(r.w.opts.CancelCheck)
	defer check.Stop()
	var giveUp <-chan time.Time // no longer waiting for the handler
	var flush <-chan time.Time  // lines wait to be written
	over, expired := r.w.over, r.timed.Done()
	for {
		select {
		case end := <-r.done:
			r.conclude(end)
			return
		case <-beat.C:
			beat.Reset(r.beat())
			check.Reset(r.w.opts.CancelCheck)
		case <-check.C:
			if r.checkCancel() {
				check.Reset(r.w.opts.CancelCheck)
			}
		case <-r.written.lines.grown:
			if flush == nil {
				flush = time.After(contract.LogFlushAfter)
			}
		case <-flush:
			flush = nil
			go r.written.running()
		case <-expired:
			expired = nil
			giveUp = time.After(lateReturn)
		case <-over:
			over = nil
			r.cancel(ErrDraining)
			giveUp = time.After(drainGrace)
		case <-giveUp:
			r.abandon()
			return
		}
	}
}

// abandon goes on without the handler, which has not returned although its context ended.
func (r *run) abandon() {
	cause := context.Cause(r.ctx)
	r.log.Warn("went on without a handler that ignored the end of its context; it keeps its slot", "task", r.row.Task,
		"cause", cause)
	r.conclude(ended{err: cause, cause: cause, at: r.w.clock.Now()})
	select {
	case <-r.done:
	case <-r.w.over:
	}
}

// beat extends the lease and the message's visibility, and learns whether to stop. It returns
// when to beat again.
func (r *run) beat() time.Duration {
	if r.lost {
		return contract.HeartbeatEvery
	}
	w, f := r.w, r.f
	from, note := time.Now(), r.progress.take()
	ctx, cancel := context.WithTimeout(w.ctx, beatTime)
	defer cancel()
	c, err := w.store.WriteClaim(ctx, job.Heartbeat(f.key, f.attempt, r.l.token, w.clock.Now().Add(contract.Lease),
		r.row.DueAt, note))
	switch {
	case store.Refused(err) != nil:
		r.lost = true
		w.meter.Count(telemetry.ClaimsLost, 1)
		r.log.Warn("lost the lease of a running attempt")
		r.cancel(ErrLeaseLost)
		return contract.HeartbeatEvery
	case err != nil:
		w.fault("sending a heartbeat", err)
		r.progress.putBack(note)
		return beatRetry
	}
	r.l.from = from
	w.intake.reached()
	if !errors.Is(context.Cause(r.ctx), ErrLeaseLost) {
		r.leaseEnd.Reset(r.l.left())
	}
	if c.Cancel && r.ctx.Err() == nil {
		r.log.Info("cancelled a running attempt")
		r.cancel(ErrCancelled)
	}
	r.extend(ctx)
	if !r.reported {
		r.reported = w.reports.try(message.Report{
			Kind: message.Running, Tenant: string(f.key.Tenant), JobID: string(f.key.ID), Version: f.version,
			Attempt: f.attempt, Token: r.l.token,
			Outcome: json.RawMessage(job.EncodeOutcome(job.Outcome{Worker: w.opts.Name, StartedAt: r.startedAt(),
				LatenessMS: r.lateness.Milliseconds()})),
		})
	}
	return contract.HeartbeatEvery
}

// checkCancel looks for a cancel between two heartbeats. It reports whether to look again. What it cannot read, or
// reads too early, the next look or heartbeat brings.
func (r *run) checkCancel() bool {
	if r.lost || r.ctx.Err() != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(r.w.ctx, checkTime)
	defer cancel()
	c, err := r.w.store.PeekClaim(ctx, r.f.key)
	if err == nil && c.Cancel && c.Attempt == r.f.attempt && c.Token == r.l.token {
		r.log.Info("cancelled a running attempt")
		r.cancel(ErrCancelled)
		return false
	}
	return true
}

// extend keeps the message out of others' sight. SQS does so for twelve hours from the receive;
// an attempt that takes longer goes on without its message: should this worker die, the sweeper
// finds the job by its lease's end.
func (r *run) extend(ctx context.Context) {
	w, f := r.w, r.f
	if r.gone {
		return
	}
	if time.Since(f.received) > maxVisibility {
		r.gone = true
		w.deletes.add(f)
		return
	}
	if err := w.queues.SetVisibility(ctx, f.source.queue, f.receipt, contract.Lease); err != nil {
		w.fault("keeping a message of "+f.source.queue, err)
	}
}

func (r *run) startedAt() time.Time { return r.started.UTC().Truncate(time.Millisecond) }

// conclude records how the attempt ended, if that is still for this worker to say. The last lines of its log are
// written meanwhile.
func (r *run) conclude(end ended) {
	w, f := r.w, r.f
	written := r.written.last()
	defer func() { <-written }()
	w.meter.Observe(telemetry.RunDuration, end.at.Sub(r.started), r.pool())
	switch {
	case r.lost:
		return // fenced: nothing of this attempt is ours to write or say
	case end.err != nil && errors.Is(end.cause, ErrLeaseLost):
		// No heartbeat came through for a lease's time. The error may only say so; another
		// worker takes over. A success is worth recording, if no process has fenced us.
		r.log.Warn("left an attempt whose lease ran out without an answer")
		return
	case end.err != nil && errors.Is(end.cause, ErrDraining) && !r.row.Retry.FailOnLost:
		r.log.Info("released an unfinished attempt at the end of the drain")
		w.letGo(r.f, job.LetGoStarted(f.key, f.attempt, r.l.token, r.l.lost, r.broken(end)), r.log)
		w.giveBack(f, 0)
		return
	}
	o := outcomeOf(end, keepingOf(r.row))
	if end.err != nil && errors.Is(end.cause, ErrDraining) {
		o = job.Outcome{Kind: job.OutcomeFailed, FinishedAt: o.FinishedAt, Error: r.broken(end).Error}
	}
	o.StartedAt, o.LatenessMS = r.startedAt(), r.lateness.Milliseconds()
	if o.FinishedAt.Before(o.StartedAt) {
		o.FinishedAt = o.StartedAt // the wall clock was set back
	}
	f.node = r.row.InRun() || r.row.Limits != "" // nodes or jobs wait for its end
	if w.record(f, r.l, o, r.log) {
		freed := w.givePermits(f, r.l)
		waitFor(written, logBefore)
		w.ended(f, r.l.token, freed)
	}
}

// broken is the entry of a start that ended with the drain of its worker.
func (r *run) broken(end ended) job.Attempt {
	return job.Attempt{
		Attempt: r.f.attempt, Worker: r.w.opts.Name, StartedAt: r.startedAt(),
		FinishedAt: end.at.UTC().Truncate(time.Millisecond),
		LatenessMS: r.lateness.Milliseconds(), Outcome: job.OutcomeLost,
		Error: &job.Reason{Code: job.CodeWorkerLost, Message: "the worker shut down before the attempt ended"},
	}
}

// markOf is the first line of a start.
func (r *run) markOf() string {
	return fmt.Sprintf("%s INFO \"attempt %d began\" start=%d token=%d worker=%s\n",
		r.started.UTC().Format("2006-01-02T15:04:05.000Z"), r.f.attempt, job.StartAfter(r.l.lost), r.l.token,
		strings.Map(func(c rune) rune {
			if c <= ' ' || c > '~' {
				return '?'
			}
			return c
		}, job.Cut(r.w.opts.Name, contract.MaxName)))
}

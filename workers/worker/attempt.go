package worker

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	runs "punctual/shared/run" // run is a word of this package
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/workers/executor"
)

const (
	// callTime bounds one call; a claim that took longer would leave little of its lease.
	callTime = 10 * time.Second
	// busyRetry is when an attempt is retried whose task runs as often as its handler allows.
	busyRetry = 200 * time.Millisecond
	// noteIfLonger is how long a firing must stay away to be noted. The sweeper decides about no job
	// sooner than contract.Grace after it was due, and shorter stays are over by then.
	noteIfLonger = 30 * time.Second
	// laterMost is how often a message is retried here before it goes back to the queue.
	laterMost = 5
	// unansweredRetries is how often a claim that got no answer is retried.
	unansweredRetries = 5
	// letGoTries is how often a worker tries to let go of an attempt.
	letGoTries = 5
	// claimTries bounds how often one claim is decided about.
	claimTries = 4
)

// aliveRetries are the waits before a claim is retried that another worker holds. It may end soon.
var aliveRetries = []time.Duration{200 * time.Millisecond, time.Second}

// lease is the hold that this worker has on an attempt.
type lease struct {
	token     int64
	takeovers int64
	cancel    bool
	lost      []job.Attempt // starts of this attempt whose workers ended
	from      time.Time     // monotonic, from before the claim or heartbeat was asked for
}

// left is how much of the lease is sure to be left, on whoever's clock.
func (l lease) left() time.Duration {
	return contract.Lease - contract.SkewMargin - time.Since(l.from)
}

// facts is what an attempt's start is judged by, and since when that is known (monotonic). They
// are passed by pointer. A row is large: by value it makes the stack of every attempt grow, and
// growing copies the stack.
type facts struct {
	row      job.Row
	pauses   job.Pauses
	lifted   job.Pauses         // of a schedule's job that starts late: those that it may have fallen due under
	schedule *schedule.Schedule // that the row belongs to; nil for none
	run      *runs.Run          // that the row is a node of; nil for none
	at       time.Time
	clock    time.Time // the worker's clock when the row was asked for
}

// attend sees one message through that has a slot.
func (w *Worker) attend(f *firing) {
	defer w.Gauge()
	defer w.intake.release(f)
	log := w.log.With(telemetry.Tenant, f.key.Tenant, telemetry.JobID, f.key.ID, telemetry.Attempt, f.attempt)
	select {
	case <-w.draining:
		w.giveBack(f, 0)
		return
	default:
	}
	if d := w.troubles.away(f.key, time.Now()); d > 0 {
		w.giveBack(f, max(d, backoff(f.receives, time.Second, time.Minute)))
		return
	}

	limitedTask, ok := w.preflight(f, log)
	if !ok {
		return
	}
	leave, ok := w.registry.enter(limitedTask)
	if !ok {
		w.later(f, busyRetry)
		return
	}
	defer leave()

	l, ok := w.claim(f, log)
	if !ok {
		return
	}
	seen, ok := w.mayStart(f, l, log)
	if !ok {
		return
	}
	now := w.clock.Now()
	switch {
	case len(l.lost) > 0 && seen.row.Retry.FailOnLost:
		lost := job.LostOutcome(l.lost)
		l.lost = lost.Lost
		w.settle(f, l, lost, log)
		return
	case l.takeovers > contract.MaxTakeovers: // asked only now: a stale attempt is nobody's poison
		log.Error("gave up an attempt after too many lost workers", "takeovers", l.takeovers)
		w.settle(f, l, refusal(job.CodePoison, "too many workers ended while they ran this attempt", now), log)
		return
	case !w.knows(&seen.row):
		log.Warn("gave up a job whose task no worker has a handler for", "task", seen.row.Task)
		w.settle(f, l, refusal(job.CodeUnknownTask, job.Cut(w.registry.unknown(seen.row.Task),
			contract.MaxErrorMessage), now), log)
		return
	}
	payload, err := w.payload(&seen.row)
	switch {
	case err == nil:
	case fault.Retryable(err):
		w.fault("reading a payload", err)
		w.letGo(f, l, log)
		w.later(f, time.Second)
		return
	default:
		log.Error("could not read a payload", telemetry.Err, err)
		w.settle(f, l, refusal(job.CodeUnreadablePayload, "the payload cannot be read", now), log)
		return
	}
	if !w.waitUntil(seen.row.DueAt) {
		w.letGo(f, l, log)
		w.giveBack(f, 0)
		return
	}
	if seen.clock.Before(seen.row.DueAt) && !w.lastCheck(f, l, seen, log) {
		return
	}
	// being admitted may have taken long
	if !w.upToDate(f, l, seen, log) || !w.admitted(f, l, seen, log) || !w.upToDate(f, l, seen, log) {
		return
	}
	w.execute(f, l, &seen.row, payload, log)
}

// limitedTask names the task whose handler may limit how many attempts run at once; "" for none.
func limitedTask(r *job.Row) string {
	if r.Executor == job.ExecutorGo {
		return r.Task
	}
	return ""
}

// knows says whether this worker can run the row's task.
func (w *Worker) knows(r *job.Row) bool {
	if r.Executor == job.ExecutorGo {
		return w.registry.Knows(r.Task)
	}
	return w.executors[r.Executor] != nil
}

func (w *Worker) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.ctx, callTime)
}

// unanswered gives a message back because a call got no answer. The back-off belongs to the message, and to the tenant
// if calls for several of its jobs fail; only if the store does not answer a call for another key either, the worker
// polls less often. A claim of ours may be there: then it is first retried a few times under the same nonce, which
// shows whether it is. A claim that is left to run out delays the job and counts as one more owner who died.
func (w *Worker) unanswered(f *firing, kind access, doing string, err error) {
	w.fault(doing, err)
	if !ofOneKey(fault.KindOf(err)) {
		ctx, cancel := w.call()
		defer cancel()
		if w.probes.answered(ctx, kind) {
			w.intake.reached()
			w.troubles.failed(f.key, time.Now())
		} else {
			w.intake.unreached()
		}
	}
	if !f.asked.IsZero() && f.asks < unansweredRetries && fault.Retryable(err) {
		d := doubled(aliveRetries[0], f.asks, time.Second)
		f.asks++
		if w.intake.add(f, w.clock.Now().Add(d)) {
			return
		}
	}
	w.giveBack(f, backoff(f.receives, time.Second, time.Minute))
}

// reached notes that the store took a write for a firing.
func (w *Worker) reached(f *firing) {
	w.intake.reached()
	w.troubles.answered(f.key)
}

// ofOneKey says whether a fault concerns only the key that was asked for: a transaction holds it,
// its partition is hot, or its item is broken. Anything else, such as an outage or a missing grant,
// may concern the store.
func ofOneKey(kind fault.Kind) bool {
	switch kind {
	case fault.Conflict, fault.Throttled, fault.Undecodable, fault.Invalid, fault.TooLarge:
		return true
	}
	return false
}

// later tries the message again after d. One that was tried often enough goes back to the queue.
func (w *Worker) later(f *firing, d time.Duration) {
	if f.laters < laterMost {
		f.laters++
		if w.intake.add(f, w.clock.Now().Add(d)) {
			return
		}
	}
	select {
	case <-w.draining:
		w.giveBack(f, 0)
	default:
		d := backoff(f.receives, time.Second, 5*time.Minute)
		if d >= noteIfLonger {
			w.note(f, job.WaitsForPermit, d)
		}
		w.giveBack(f, d)
	}
}

// note tells the sweeper and readers that the firing is not lost while it stays away for d. A note
// that fails is not retried: without it the firing is sent once more after a while.
func (w *Worker) note(f *firing, what string, d time.Duration) {
	now := w.clock.Now()
	err := w.put(job.NoteWaits(f.key, job.Waits{Attempt: f.attempt, For: what, Until: now.Add(d)}, f.due, now))
	if err != nil && store.Refused(err) == nil {
		w.fault("noting what a firing waits for", err)
	}
}

// preflight reads the row before the claim. It gives back a task that this worker does not know, and
// drops a stale firing. Neither can change later: versions and attempts only grow, and a final status
// stays. Everything else is judged after the claim. It returns the task whose limit counts; false:
// the message needs nothing more.
func (w *Worker) preflight(f *firing, log *slog.Logger) (string, bool) {
	ctx, cancel := w.call()
	defer cancel()
	row, err := w.store.Row(ctx, f.key)
	switch kind := fault.KindOf(err); {
	case err == nil:
	case kind == fault.NotFound:
		w.deletes.add(f)
		return "", false
	case kind == fault.Undecodable:
		w.quarantine(f, "read a row that this worker cannot decode", err)
		return "", false
	default:
		w.unanswered(f, reading, "reading a row", err)
		return "", false
	}
	now := w.clock.Now()
	switch {
	case !row.Status.Open(), row.Version != f.version, row.Attempt != f.attempt:
		log.Debug("dropped a stale firing", "status", row.Status)
		w.deletes.add(f)
	case row.DueAt.Sub(now) > 2*contract.HoldUntil:
		f.due = row.DueAt // the firing was wrong about it; the row decides
		w.hold(f)
	case !w.knows(&row) && now.Before(row.DueAt.Add(contract.UnknownTaskFor)):
		w.unknown(f, &row, log)
	default:
		return limitedTask(&row), true
	}
	w.reached(f)
	return "", false
}

// unknown gives back the firing of a task that this worker does not know, and notes it where
// readers of the job see it. The log has it once for each task.
func (w *Worker) unknown(f *firing, row *job.Row, log *slog.Logger) {
	if _, said := w.unknowns.LoadOrStore(row.Task, true); !said {
		log.Warn("met a task that this worker has no handler for", "task", row.Task, "executor", row.Executor)
	}
	d := backoff(f.receives, time.Second, 5*time.Minute)
	w.note(f, job.WaitsForHandler, d)
	w.giveBack(f, d)
}

// claim makes this worker the attempt's owner; false: it is not, and the message needs nothing more.
func (w *Worker) claim(f *firing, log *slog.Logger) (lease, bool) {
	if f.nonce == "" {
		f.nonce = newNonce()
	}
	var over *job.Claim // to be taken over
	for range claimTries {
		from, now := time.Now(), w.clock.Now()
		if f.asked.IsZero() {
			f.asked = from
		}
		owner := job.Owner{Worker: w.opts.Name, Nonce: f.nonce, LeaseUntil: now.Add(contract.Lease), DueAt: f.due}
		write := job.ClaimNew(f.key, f.attempt, owner)
		if over != nil {
			write = job.TakeOver(f.key, *over, owner, now)
		}
		c, err := w.write(write)
		if err == nil {
			w.reached(f)
			f.asked = from // an earlier request had no effect, or this one would have been refused
			if c.Takeovers > 1 {
				w.meter.Count(telemetry.ClaimsTakenOver, 1)
				log.Info("took over an attempt", "token", c.Token, "takeovers", c.Takeovers)
			}
			return lease{token: c.Token, takeovers: c.Takeovers, cancel: c.Cancel, lost: c.Lost, from: from}, true
		}
		refused := store.Refused(err)
		if refused == nil {
			w.unanswered(f, writing, "claiming an attempt", err)
			return lease{}, false
		}
		w.reached(f)
		old, err := store.OldClaim(refused, 0)
		if err != nil {
			w.quarantine(f, "read a claim that this worker cannot decode", err)
			return lease{}, false
		}
		answer := explain(old, f.attempt, f.nonce, now)
		if answer == mine {
			return lease{token: old.Token, takeovers: old.Takeovers, cancel: old.Cancel, lost: old.Lost,
				from: f.asked}, true
		}
		f.asked = time.Time{}
		switch answer {
		case takeOver:
			over = &old
			continue
		case retry:
			over = nil
			continue
		case repeat:
			w.meter.Count(telemetry.Duplicates, 1)
			w.ended(f, old.Token)
		case outdated:
			w.meter.Count(telemetry.Duplicates, 1)
			w.deletes.add(f)
		case alive:
			w.waitForOwner(f, old, now)
		}
		return lease{}, false
	}
	// The claim changes owners faster than we can ask: other workers run the attempt.
	w.giveBack(f, backoff(f.receives, time.Second, time.Minute))
	return lease{}, false
}

// waitForOwner waits for the worker that runs the attempt: it may soon end, or be dead.
func (w *Worker) waitForOwner(f *firing, old job.Claim, now time.Time) {
	if f.waits == 0 {
		w.meter.Count(telemetry.Duplicates, 1)
	}
	if f.waits < len(aliveRetries) {
		d := aliveRetries[f.waits]
		f.waits++
		if w.intake.add(f, now.Add(d)) {
			return
		}
	}
	// One second more, since visibility has whole seconds. A copy that meets a live owner each time
	// stays away longer and longer, or it would use up the queue's receives.
	w.giveBack(f, max(old.LeaseUntil.Sub(now)+time.Second, backoff(f.receives-5, time.Second, 15*time.Minute)))
}

// mayStart reads the row and the pauses and judges the claimed attempt; false: it was let go.
func (w *Worker) mayStart(f *firing, l lease, log *slog.Logger) (*facts, bool) {
	seen, err := w.readFacts(f)
	switch kind := fault.KindOf(err); {
	case err == nil:
	case kind == fault.NotFound:
		w.letGo(f, l, log)
		w.deletes.add(f)
		return seen, false
	case kind == fault.Undecodable:
		w.letGo(f, l, log)
		w.quarantine(f, "read a row that this worker cannot decode", err)
		return seen, false
	default:
		w.letGo(f, l, log)
		w.unanswered(f, reading, "reading a row", err)
		return seen, false
	}
	return seen, w.admits(f, l, seen, log)
}

// admits says whether the attempt may start by what was seen; false: it was let go.
func (w *Worker) admits(f *firing, l lease, seen *facts, log *slog.Logger) bool {
	now := w.clock.Now()
	_, held := seen.pauses.Hold(seen.row.Task, now)
	verdict, why := job.MayStart(seen.row, l.lost, f.version, f.attempt, held, now)
	if verdict == job.Start && seen.schedule != nil {
		if ok, validity := seen.schedule.MayStart(seen.row, hasStarted(&seen.row, l)); !ok {
			verdict, why = job.Defer, validity
		} else if slices.ContainsFunc(seen.lifted, func(p job.Pause) bool {
			return seen.schedule.DroppedBy(p, seen.row)
		}) {
			verdict, why = job.Defer, "it passed under a pause"
		} else if late, is := w.missed(seen, l); is {
			verdict, why = job.Defer, late.Message
		}
	}
	if verdict == job.Start && seen.run != nil {
		if no := seen.run.MayStart(seen.row, now); no != "" {
			verdict, why = job.Defer, no
		}
	}
	if verdict == job.Start && l.cancel {
		verdict, why = job.Defer, "cancel requested"
	}
	switch verdict {
	case job.Start, job.Lost: // a lost attempt is not started: it ends as what it is, whatever holds the job
		return true
	case job.Stale:
		log.Debug("released a stale attempt", "why", why)
		w.letGo(f, l, log)
		w.deletes.add(f)
	case job.Defer:
		w.askToReevaluate(f, l, why, log)
	}
	return false
}

// lastCheck reads, once the attempt is due, what may have changed since the row was read: a cancel or
// an expiry sets a flag on the claim, a pause is an item of its own, and an edit of a claimed job is
// refused. So the row need not be read again. false: the attempt was let go.
func (w *Worker) lastCheck(f *firing, l lease, seen *facts, log *slog.Logger) bool {
	ctx, cancel := w.call()
	defer cancel()
	var (
		reads                             sync.WaitGroup
		claim                             job.Claim
		failed, failed2, failed3, failed4 error
	)
	reads.Go(func() { claim, failed = w.store.Claim(ctx, f.key) })
	reads.Go(func() { seen.pauses, _, failed2 = w.pauses.of(ctx, f.key.Tenant, lastCheckAge) })
	if seen.schedule != nil {
		k := schedule.Key{Tenant: seen.row.Tenant, Name: seen.row.ScheduleID}
		reads.Go(func() { seen.schedule, _, failed3 = w.rules.of(ctx, k, lastCheckAge) })
	}
	if seen.run != nil {
		reads.Go(func() { seen.run, failed4 = w.runOf(ctx, &seen.row) })
	}
	reads.Wait()
	seen.schedule = ruleOf(seen.schedule, &seen.row)
	if err := errors.Join(failed, failed2, failed3, failed4); err != nil {
		w.letGo(f, l, log)
		w.unanswered(f, reading, "looking at a claim before its start", err)
		return false
	}
	if claim.Attempt != f.attempt || claim.Token != l.token || claim.Outcome != nil {
		log.Warn("lost the lease of an attempt before it could start")
		w.giveBack(f, 0)
		return false
	}
	l.cancel = claim.Cancel
	return w.admits(f, l, seen, log)
}

// readFacts reads what a start is judged by.
func (w *Worker) readFacts(f *firing) (*facts, error) {
	ctx, cancel := w.call()
	defer cancel()
	pauses, at, err := w.pauses.of(ctx, f.key.Tenant, pausesAge)
	if err != nil {
		return nil, err
	}
	seen := &facts{pauses: pauses, at: at, clock: w.clock.Now()}
	seen.row, err = w.store.Row(ctx, f.key) // read after at, which therefore holds for both
	if err == nil {
		seen.run, err = w.runOf(ctx, &seen.row)
	}
	if err != nil || seen.row.ScheduleID == "" {
		return seen, err
	}
	seen.schedule, at, err = w.rules.of(ctx, schedule.Key{Tenant: seen.row.Tenant, Name: seen.row.ScheduleID},
		pausesAge)
	seen.schedule = ruleOf(seen.schedule, &seen.row)
	if at.Before(seen.at) {
		seen.at = at
	}
	// Nobody may have met its firing while the pause held: then nobody has parked it.
	if err == nil && seen.row.Attempt == 1 && seen.clock.After(seen.row.DueAt) {
		seen.lifted, err = w.pauses.lifted(ctx, seen.row.Tenant, seen.row.Task, seen.clock)
	}
	return seen, err
}

// upToDate checks the lease and the age of the facts right before the start, and reads old facts
// again. false: the attempt was let go.
func (w *Worker) upToDate(f *firing, l lease, seen *facts, log *slog.Logger) bool {
	for range claimTries {
		if l.left() <= 0 {
			log.Warn("released an attempt whose lease had nearly ended before its start")
			w.letGo(f, l, log)
			w.giveBack(f, 0)
			return false
		}
		if time.Since(seen.at) <= contract.RowMaxAge {
			return true
		}
		now, ok := w.mayStart(f, l, log)
		if !ok {
			return false
		}
		*seen = *now
	}
	// The answers are too old when they arrive: the table is too slow to start anything.
	w.letGo(f, l, log)
	w.giveBack(f, backoff(f.receives, time.Second, time.Minute))
	return false
}

// payload reads the job's payload.
func (w *Worker) payload(r *job.Row) ([]byte, error) {
	ctx, cancel := w.call()
	defer cancel()
	return w.store.Payload(ctx, *r)
}

// waitUntil waits for the due time, never less; false: the worker drains meanwhile.
func (w *Worker) waitUntil(due time.Time) bool {
	for {
		d := due.Sub(w.clock.Now())
		if d <= 0 {
			return true
		}
		if !w.pause(d) {
			return false
		}
	}
}

// write does one write of a claim.
func (w *Worker) write(claim item.Write) (job.Claim, error) {
	ctx, cancel := w.call()
	defer cancel()
	return w.store.WriteClaim(ctx, claim)
}

// put does one write of a claim whose result is not needed.
func (w *Worker) put(claim item.Write) error {
	ctx, cancel := w.call()
	defer cancel()
	return w.store.Put(ctx, claim)
}

// letGo gives the attempt back. If that fails, the lease runs out by itself.
func (w *Worker) letGo(f *firing, l lease, log *slog.Logger) {
	w.letGoBy(f, job.LetGo(f.key, f.attempt, l.token), log)
}

// letGoBy is letGo by that write.
func (w *Worker) letGoBy(f *firing, write item.Write, log *slog.Logger) {
	for n := range letGoTries {
		err := w.put(write)
		if err == nil || store.Refused(err) != nil {
			f.asked = time.Time{} // there is no claim of ours
			return
		}
		w.fault("letting go of an attempt", err)
		if !fault.Retryable(err) {
			return
		}
		select {
		case <-time.After(doubled(100*time.Millisecond, n, time.Second)):
		case <-w.ctx.Done():
			return
		}
	}
	log.Warn("could not release an attempt; its lease will run out")
}

// ruleOf returns a schedule with the rule that its job keeps; nil for none.
func ruleOf(s *schedule.Schedule, r *job.Row) *schedule.Schedule {
	if s == nil {
		return nil
	}
	own := s.For(*r)
	return &own
}

// hasStarted reports whether the job had started before this worker claimed its attempt.
func hasStarted(r *job.Row, l lease) bool {
	return job.HasStarted(*r, job.Claim{Attempt: r.Attempt, Lost: l.lost})
}

// refusal is the outcome of an attempt that never started and that fails for good.
func refusal(code, text string, now time.Time) job.Outcome {
	return job.Outcome{
		Kind: job.OutcomeFailed, Permanent: true, FinishedAt: now.UTC().Truncate(time.Millisecond),
		Error: &job.Reason{Code: code, Message: text},
	}
}

// work is the attempt as its executor sees it.
func (w *Worker) work(f *firing, l lease, r *job.Row, payload []byte, p *progress) executor.Work {
	return executor.Work{
		Key: f.key, Task: r.Task, HandlerKey: r.HandlerKey(), Attempt: f.attempt, Token: l.token,
		DueAt: r.DueAt, NominalAt: r.NominalAt, Payload: payload, Progress: p.note,
		Text: func(field string) bool { return !r.MayResolve(field) },
	}
}

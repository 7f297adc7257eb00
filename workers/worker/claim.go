package worker

import (
	"log/slog"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

const (
	// busyRetry is when an attempt is retried whose task runs as often as its handler allows.
	busyRetry = 200 * time.Millisecond
	// letGoTries is how often a worker tries to let go of an attempt.
	letGoTries = 5
	// claimTries bounds how often one claim is decided about.
	claimTries = 4
)

// preflight reads the row before the claim. It gives back a task that this worker does not know, and
// drops a stale firing. Neither can change later: versions and attempts only grow, and a final status
// stays. Everything else is decided after the claim.
func (w *Worker) preflight(a *attempt) disposition {
	f := a.f
	ctx, cancel := w.call()
	defer cancel()
	row, err := w.store.Row(ctx, f.key)
	if err != nil {
		return unread(err)
	}
	now := w.clock.Now()
	switch {
	case !row.Status.Open(), row.Version != f.version, row.Attempt != f.attempt:
		w.reached(f)
		a.log.Debug("dropped a stale firing", "status", row.Status)
		return disposition{then: deleted}
	case row.DueAt.Sub(now) > 2*contract.HoldUntil:
		w.reached(f)
		f.due = row.DueAt // the firing was wrong about it; the row decides
		return disposition{then: heldUntil}
	case !w.knows(&row) && now.Before(row.DueAt.Add(contract.UnknownTaskFor)):
		w.reached(f)
		return w.unknown(f, &row, a.log)
	}
	a.limited = limitedTask(&row)
	if row.Limits != "" {
		bounded := row // a pointer to row itself would have every row allocated
		a.bounded = &bounded
	}
	return disposition{}
}

// unknown gives back the firing of a task that this worker does not know, and notes it where
// readers of the job see it. The log has it once for each task.
func (w *Worker) unknown(f *firing, row *job.Row, log *slog.Logger) disposition {
	if _, said := w.unknowns.LoadOrStore(row.Task, true); !said {
		log.Warn("met a task that this worker has no handler for", "task", row.Task, "executor", row.Executor)
	}
	d := backoff(f.receives, time.Second, 5*time.Minute)
	w.note(f, job.WaitsForHandler, d)
	return giveBackFor(d)
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

// enterTask takes a place under the limit of the task that this worker's own handler may have.
func (w *Worker) enterTask(a *attempt) disposition {
	leave, ok := w.registry.enter(a.limited)
	if !ok {
		return disposition{then: triedLater, after: busyRetry}
	}
	a.leave = leave
	return disposition{}
}

// claim makes this worker the attempt's owner.
func (w *Worker) claim(a *attempt) disposition {
	f := a.f
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
				a.log.Info("took over an attempt", "token", c.Token, "takeovers", c.Takeovers)
			}
			return a.own(c, from)
		}
		refused := store.Refused(err)
		if refused == nil {
			return noAnswer(writing, "claiming an attempt", err)
		}
		w.reached(f)
		old, err := store.OldClaim(refused, 0)
		if err != nil {
			return cannotDecode("read a claim that this worker cannot decode", err)
		}
		answer := explain(old, f.attempt, f.nonce, now)
		if answer == mine {
			return a.own(old, f.asked)
		}
		f.asked = time.Time{}
		switch answer {
		case takeOver:
			over = &old
		case retry:
			over = nil
		case repeat:
			w.meter.Count(telemetry.Duplicates, 1)
			w.ended(f, old.Token, nil)
			return disposition{then: done}
		case outdated:
			w.meter.Count(telemetry.Duplicates, 1)
			return disposition{then: deleted}
		case alive:
			return w.waitForOwner(f, old, now)
		}
	}
	// The claim changes owners faster than we can ask: other workers run the attempt.
	return giveBackFor(backoff(f.receives, time.Second, time.Minute))
}

// own notes that this worker holds the claim since it asked for it.
func (a *attempt) own(c job.Claim, from time.Time) disposition {
	a.claimed = true
	a.l = lease{token: c.Token, takeovers: c.Takeovers, cancel: c.Cancel, lost: c.Lost, begun: c.Begun,
		from: from}
	return disposition{}
}

// waitForOwner waits for the worker that runs the attempt: it may soon end, or be dead.
func (w *Worker) waitForOwner(f *firing, old job.Claim, now time.Time) disposition {
	if f.waits == 0 {
		w.meter.Count(telemetry.Duplicates, 1)
	}
	if f.waits < len(aliveRetries) {
		d := aliveRetries[f.waits]
		f.waits++
		if w.intake.add(f, now.Add(d)) {
			return disposition{then: done}
		}
	}
	// One second more, since visibility has whole seconds. A copy that meets a live owner each time
	// stays away longer and longer, or it would use up the queue's receives.
	return giveBackFor(max(old.LeaseUntil.Sub(now)+time.Second, backoff(f.receives-5, time.Second, 15*time.Minute)))
}

// answer is what a refused claim means.
type answer string

const (
	mine     answer = "mine"      // this receive made the claim; only the answer was lost
	repeat   answer = "repeat"    // the attempt has ended: its report is repeated
	outdated answer = "outdated"  // a newer attempt is claimed
	takeOver answer = "take_over" // its owner's lease has ended
	alive    answer = "alive"     // its owner lives
	retry    answer = "retry"     // the other claim is gone
)

// explain says what a refused claim means, by the claim that was there.
func explain(old job.Claim, attempt int64, nonce string, now time.Time) answer {
	switch {
	case old.Attempt > attempt:
		return outdated
	case old.Attempt < attempt:
		return retry
	case old.Outcome != nil:
		return repeat
	case old.LeaseUntil.Before(now):
		return takeOver // even if it was mine: another process may have fenced it
	case old.Nonce == nonce:
		return mine
	}
	return alive
}

// letGo releases the claim of an attempt by that write. If it fails, the lease runs out by itself.
func (w *Worker) letGo(f *firing, write item.Write, log *slog.Logger) {
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

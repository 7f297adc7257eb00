package worker

import (
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/telemetry"
)

// steps are those of an attempt, in their order. Each goes on to the next or says what becomes of the attempt.
var steps = []func(*Worker, *attempt) disposition{
	(*Worker).mayBegin,
	(*Worker).preflight,
	(*Worker).hasPermit,
	(*Worker).enterTask,
	(*Worker).claim,
	(*Worker).check,
	(*Worker).isWorthStarting,
	(*Worker).readPayload,
	(*Worker).waitUntilDue,
	(*Worker).lastCheck,
	(*Worker).refresh,
	(*Worker).takeKey,
	(*Worker).admitToSchedule,
	(*Worker).takePermits,
	(*Worker).refresh, // admission may have taken long
	(*Worker).markStart,
	(*Worker).execute,
}

// attend takes one firing that has a slot through the steps of an attempt.
func (w *Worker) attend(f *firing) {
	defer w.Gauge()
	defer w.intake.release(f)
	a := &attempt{f: f, leave: func() {},
		log: w.log.With(telemetry.Tenant, f.key.Tenant, telemetry.JobID, f.key.ID, telemetry.Attempt, f.attempt)}
	defer func() { a.leave() }()
	for _, step := range steps {
		if d := step(w, a); d.then != goOn {
			w.carryOut(a, d)
			return
		}
	}
}

// carryOut does what a step has decided. A claim of ours is released first, unless it takes the outcome.
func (w *Worker) carryOut(a *attempt, d disposition) {
	f := a.f
	if a.claimed && d.then != done && d.then != settled {
		w.letGo(f, job.LetGo(f.key, f.attempt, a.l.token), a.log)
	}
	switch d.then {
	case goOn, done:
	case deleted:
		w.deletes.add(f)
	case givenBack:
		w.giveBack(f, d.after)
	case triedLater:
		w.later(f, d.after)
	case heldUntil:
		w.hold(f)
	case unanswered:
		w.unanswered(f, d.call, d.doing, d.err)
	case undecodable:
		w.quarantine(f, d.doing, d.err)
	case reevaluated:
		w.reports.add(message.Report{
			Kind: message.Reevaluate, Tenant: string(f.key.Tenant), JobID: string(f.key.ID),
			Version: f.version, Attempt: f.attempt, Token: a.l.token,
		}, f)
	case settled:
		w.settle(f, a.l, d.outcome, a.log)
	}
}

// mayBegin keeps firings away while the worker drains, and those of a tenant whose calls get no answers.
func (w *Worker) mayBegin(a *attempt) disposition {
	select {
	case <-w.draining:
		return giveBackFor(0)
	default:
	}
	if d := w.troubles.away(a.f.key, time.Now()); d > 0 {
		return giveBackFor(max(d, backoff(a.f.receives, time.Second, time.Minute)))
	}
	return disposition{}
}

// isWorthStarting ends an attempt that no start can help: its worker was lost and the job forbids another start, too
// many workers were, or no worker knows its task.
func (w *Worker) isWorthStarting(a *attempt) disposition {
	row, now := &a.seen.row, w.clock.Now()
	switch {
	case len(a.l.lost) > 0 && row.Retry.FailOnLost:
		lost := job.LostOutcome(a.l.lost)
		a.l.lost = lost.Lost
		return settleAs(lost)
	case a.l.takeovers > contract.MaxTakeovers: // asked only now: a stale attempt is no poison
		a.log.Error("gave up an attempt after too many lost workers", "takeovers", a.l.takeovers)
		return settleAs(refusal(job.CodePoison, "too many workers ended while they ran this attempt", now))
	case !w.knows(row):
		a.log.Warn("gave up a job whose task no worker has a handler for", "task", row.Task)
		return settleAs(refusal(job.CodeUnknownTask,
			job.Cut(w.registry.unknown(row.Task), contract.MaxErrorMessage), now))
	}
	return disposition{}
}

// readPayload reads the job's payload.
func (w *Worker) readPayload(a *attempt) disposition {
	ctx, cancel := w.call()
	defer cancel()
	payload, err := w.store.Payload(ctx, a.seen.row)
	switch {
	case err == nil:
		a.payload = payload
		return disposition{}
	case fault.Retryable(err):
		w.fault("reading a payload", err)
		return disposition{then: triedLater, after: time.Second}
	}
	a.log.Error("could not read a payload", telemetry.Err, err)
	return settleAs(refusal(job.CodeUnreadablePayload, "the payload cannot be read", w.clock.Now()))
}

// waitUntilDue waits for the due time, never less, unless the worker drains meanwhile.
func (w *Worker) waitUntilDue(a *attempt) disposition {
	for {
		d := a.seen.row.DueAt.Sub(w.clock.Now())
		if d <= 0 {
			return disposition{}
		}
		if !w.pause(d) {
			return giveBackFor(0)
		}
	}
}

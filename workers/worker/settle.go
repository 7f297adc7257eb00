package worker

import (
	"cmp"
	"log/slog"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// settle records the outcome on the claim, reports it, and has the message deleted.
func (w *Worker) settle(f *firing, l lease, o job.Outcome, log *slog.Logger) {
	if w.record(f, l, o, log) {
		w.ended(f, l.token, w.givePermits(f, l))
	}
}

// record records the outcome on the claim. An outcome that names no worker is this one's. false: there is nothing to
// report.
func (w *Worker) record(f *firing, l lease, o job.Outcome, log *slog.Logger) bool {
	o.Worker, o.Lost, o.Permits = cmp.Or(o.Worker, w.opts.Name), l.lost, l.permits
	if len(o.Result) > contract.MaxClaimResult && !w.storeResult(f, l, &o, log) {
		return false
	}
	write := job.RecordOutcome(f.key, f.attempt, l.token, o)
	for failures := 0; ; failures++ {
		err := w.put(write)
		if err == nil {
			break
		}
		if refused := store.Refused(err); refused != nil {
			old, err := store.OldClaim(refused, 0)
			if err == nil && old.Attempt == f.attempt && old.Token == l.token && old.Nonce == f.nonce &&
				old.Outcome != nil {
				break // it was recorded; only the answer was lost
			}
			w.meter.Count(telemetry.ClaimsLost, 1)
			log.Warn("lost the lease before the outcome was recorded")
			return false
		}
		w.fault("recording an outcome", err)
		if !fault.Retryable(err) && l.left() <= 0 {
			log.Error("gave up recording an outcome; the attempt will be rerun", telemetry.Err, err)
			return false
		}
		// For as long as it takes: unless another process has taken over, the condition still holds.
		select {
		case <-time.After(doubled(100*time.Millisecond, failures, 5*time.Second)):
		case <-w.ctx.Done():
			return false
		}
	}
	w.reached(f)
	return true
}

// givePermits gives back the permits of an attempt whose outcome is recorded, and says for which limits others wait;
// nil where it took none, or where that fails: the process that settles the attempt does it then. Here it does not wait
// for the reports of other jobs.
func (w *Worker) givePermits(f *firing, l lease) []bool {
	if l.limits == "" {
		return nil
	}
	ctx, cancel := w.call()
	defer cancel()
	waits, err := w.store.FreePermits(ctx, f.key, l.limits, f.attempt, l.permits)
	if err != nil {
		w.fault("giving back permits", err)
		return nil
	}
	return waits
}

// storeResult puts a result that is too large for the claim into an object, before the outcome names it. The object's
// name has the token, so that another owner of the attempt never overwrites it. Where it cannot be stored in the time
// of the lease, the outcome keeps a preview: the work is done, and must not be done once more. false: the worker stops.
func (w *Worker) storeResult(f *firing, l lease, o *job.Outcome, log *slog.Logger) bool {
	ref := job.ResultRef(f.attempt, l.token)
	for failures := 0; ; failures++ {
		ctx, cancel := w.call()
		err := w.store.PutResult(ctx, f.key, ref, o.Result)
		cancel()
		if err == nil {
			o.Result, o.ResultRef = nil, ref
			return true
		}
		w.fault("storing a result", err)
		wait := doubled(100*time.Millisecond, failures, 5*time.Second)
		if !fault.Retryable(err) || l.left() < wait+callTime {
			log.Error("kept only a preview of a result that could not be stored", telemetry.Err, err)
			o.Result, o.Partial = preview(o.Result, contract.MaxPreview), job.PartialLost
			return true
		}
		select {
		case <-time.After(wait):
		case <-w.ctx.Done():
			return false
		}
	}
}

// ended reports that an outcome is recorded; the message is deleted once that is sent. What the outcome is
// is on the claim: a report of a large result costs no more than any other.
func (w *Worker) ended(f *firing, token int64, freed []bool) {
	w.reports.add(message.Report{
		Kind: message.Ended, Tenant: string(f.key.Tenant), JobID: string(f.key.ID),
		Version: f.version, Attempt: f.attempt, Token: token, Freed: freed,
	}, f)
}

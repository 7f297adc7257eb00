package job

import (
	"errors"
	"fmt"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
)

// ErrTransition says that the row no longer has a status from which the change could start: it is
// final, or its attempt has moved on. A replayed report meets it and changes nothing.
var ErrTransition = errors.New("the job does not stand where this change could start")

// Decision is what becomes of a job once an attempt has ended.
type Decision struct {
	After    Row
	Write    item.Write   // of the row
	Contents []item.Write // sibling items to put before it, each safe to repeat
	Send     bool         // the writer sends the next firing itself
}

// Settle says what becomes of r once its attempt has ended with o.
// The same facts always give the same answer: now is handed in, and the jitter of a retry is
// derived from the job's id and attempt.
// It returns ErrTransition when r is not open at that attempt, so a replayed report changes nothing.
func Settle(r *Row, attempt int64, o Outcome, now time.Time) (*Decision, error) {
	if !r.Status.Open() || r.Attempt != attempt {
		return nil, fmt.Errorf("settling attempt %d of job %s, which is %s at attempt %d: %w", attempt, r.ID,
			r.Status, r.Attempt, ErrTransition)
	}
	d := &Decision{After: *r}
	after := &d.After
	after.Waiting = ""
	if !o.StartedAt.IsZero() {
		after.StartedAt, after.LatenessMS = o.StartedAt, o.LatenessMS
	}
	for _, lost := range o.Lost {
		d.Contents = append(d.Contents, after.PutAttempt(lost))
		if o.StartedAt.IsZero() {
			after.StartedAt, after.LatenessMS = lost.StartedAt, lost.LatenessMS
		}
	}
	d.Contents = append(d.Contents, recordAttempt(after, o)...)

	var name string
	guard := []item.Cond{atAttempt(attempt), followedAsRead(*r), stopIs(r.Stop)}
	switch {
	case o.Kind == OutcomeSucceeded: // wins over a stop: what is done is done
		name, guard = WriteSucceed, guard[:2]
		after.Reason = Reason{}
		finish(after, Succeeded, now)
		d.Contents = append(d.Contents, storeResult(after, o)...)
	case r.Stop != NoStop:
		name = WriteFinishStop
		finish(after, r.Stop.Final(), now)
	case o.Kind == OutcomeSnoozed:
		name = WriteSnooze
		d.Send = reattempt(after, "snooze", max(time.Duration(o.RetryAfterMS)*time.Millisecond, contract.MinSnooze),
			now)
	default:
		after.Failures++
		after.Reason = reasonOf(o)
		if o.Permanent || after.Failures >= int64(r.Retry.MaxAttempts) {
			name = WriteDie
			finish(after, Dead, now)
			break
		}
		name = WriteRetry
		wait := retryAfter(r.Retry.Delay(r.ID, attempt, after.Failures), time.Duration(o.RetryAfterMS)*time.Millisecond)
		d.Send = reattempt(after, "retry", wait, now)
	}
	if after.Status == Scheduled {
		guard = append(guard, pausedAsRead(*r))
	}
	if after.Status == Scheduled && !r.ExpiryAt.IsZero() && after.DueAt.After(r.ExpiryAt) {
		// The next attempt would be past expire_after.
		backToAttempt(after, r)
		after.Reason = Reason{Code: CodeExpiredRetrying, Message: Cut(reasonOf(o).Message, contract.MaxInlineError)}
		name, d.Send = WriteDie, false
		finish(after, Dead, now)
	}
	var was, is space
	encoded := after.encode(&is)
	if item.SizeOf(encoded) > contract.MaxRow {
		d.Contents = append(d.Contents, fit(after)...)
		encoded = after.encode(&is)
	}
	if !after.ExpiresAt.IsZero() { // what was put before it was known that this is the end
		for _, w := range d.Contents {
			w.Put[contract.AttrExpiresAt] = after.ExpiresAt.Unix()
		}
	}
	d.Write = changed(name, r.Ref(), r.encode(&was), encoded, from(name, guard...))
	if !o.StartedAt.IsZero() { // a report of the attempt's earlier owner may have said otherwise since
		d.Write.Set["started_at"], d.Write.Set["lateness"] = o.StartedAt.UnixMilli(), nil
		if o.LatenessMS != 0 {
			d.Write.Set["lateness"] = o.LatenessMS
		}
	}
	return d, nil
}

// reattempt makes the row due for its next attempt.
func reattempt(r *Row, waiting string, wait time.Duration, now time.Time) (send bool) {
	r.Status, r.Waiting = Scheduled, waiting
	r.Attempt++
	// Stored instants have milliseconds; rounding up keeps the promised minimum.
	r.DueAt = now.Add(wait + time.Millisecond - 1).Truncate(time.Millisecond)
	return Route(r, now)
}

// backToAttempt undoes reattempt on a row that will not be tried after all.
func backToAttempt(after, before *Row) {
	after.Attempt, after.DueAt, after.Near, after.WakeAt = before.Attempt, before.DueAt, false, before.WakeAt
}

func reasonOf(o Outcome) Reason {
	if o.Error == nil {
		return Reason{}
	}
	return Reason{Code: o.Error.Code, Message: Cut(o.Error.Message, contract.MaxInlineError)}
}

// recordAttempt appends the ended attempt to those on the row. What does not fit there, older
// attempts and long errors, goes to a sibling item of its own.
func recordAttempt(r *Row, o Outcome) []item.Write {
	a := Attempt{Attempt: r.Attempt, Worker: o.Worker, Outcome: string(o.Kind)}
	if !o.StartedAt.IsZero() { // what never started never ended
		a.StartedAt, a.FinishedAt, a.LatenessMS = o.StartedAt, o.FinishedAt, o.LatenessMS
	}
	var writes []item.Write
	if o.Error != nil {
		a.Error = &Reason{Code: o.Error.Code, Message: Cut(o.Error.Message, contract.MaxErrorMessage)}
		if len(a.Error.Message) > contract.MaxInlineError {
			writes = append(writes, r.PutAttempt(a))
			a.Error = &Reason{Code: a.Error.Code, Message: Cut(a.Error.Message, contract.MaxInlineError)}
		}
	}
	attempts := append(append([]Attempt(nil), r.Attempts...), a)
	for len(attempts) > contract.RowAttempts {
		if oldest := attempts[0]; !cut(oldest) { // a cut one has its sibling already
			writes = append(writes, r.PutAttempt(oldest))
		}
		attempts = attempts[1:]
	}
	r.Attempts = attempts
	return writes
}

// cut says whether the attempt's error was shortened for the row.
func cut(a Attempt) bool {
	return a.Error != nil && len(a.Error.Message) > len("…") && a.Error.Message[len(a.Error.Message)-len("…"):] == "…"
}

// storeResult keeps a small result in the row and a larger one in a sibling item. Of one that the worker has put into
// an object only the reference moves.
func storeResult(r *Row, o Outcome) []item.Write {
	r.Result, r.ResultIn, r.ResultRef, r.Partial = "", InRow, o.ResultRef, o.Partial
	switch {
	case o.ResultRef != "":
		r.ResultIn = InBlob
		return nil
	case len(o.Result) == 0:
		return nil
	case len(o.Result) <= contract.MaxInlineResult:
		r.Result = string(o.Result)
		return nil
	}
	r.ResultIn = InItem
	return []item.Write{r.PutContent(ResultContent, string(o.Result))}
}

// fit moves things out of the row until it costs one write unit.
func fit(r *Row) []item.Write {
	var writes []item.Write
	if r.Result != "" {
		writes = append(writes, r.PutContent(ResultContent, r.Result))
		r.Result, r.ResultIn = "", InItem
	}
	for len(r.Attempts) > 0 && r.Size() > contract.MaxRow {
		if !cut(r.Attempts[0]) {
			writes = append(writes, r.PutAttempt(r.Attempts[0]))
		}
		r.Attempts = r.Attempts[1:]
	}
	if r.Payload != "" && r.Size() > contract.MaxRow {
		writes = append(writes, r.PutContent(PayloadContent(r.Version), r.Payload))
		r.Payload, r.PayloadIn, r.PayloadVer = "", InItem, r.Version
	}
	return writes
}

package submit

import (
	"context"
	"errors"
	"time"

	"punctual/functions/engine/accept"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/store"
)

// keyTries bounds how often one request decides about its unique key, because other jobs take it or end meanwhile.
const keyTries = 8

// errKeyTaken says that another request with the idempotency key was faster.
var errKeyTaken = errors.New("the idempotency key was taken meanwhile")

// writeUnique writes a job with its unique key, in one transaction, unless another job holds the key: then made becomes
// that job, or the error is an *accept.NotUnique. taken says that another request has the idempotency key.
func (s *Submitter) writeUnique(
	ctx context.Context, r Request, made *Job, d *accept.Draft, with keyWrite,
	answer func(job.Row, time.Time) ([]byte, error),
) (taken bool, err error) {
	for range keyTries {
		take, holder, err := s.Accept.TakeKey(ctx, made.Row, s.now())
		switch {
		case err != nil:
			return false, err
		case holder == nil:
			taken, err := s.write(ctx, *made, d, with, answer, take)
			if !taken && refused(err, 1) { // another job was faster
				continue
			}
			return taken, err
		}
		held, err := s.held(ctx, r, *holder, d, with, answer)
		switch {
		case errors.Is(err, errKeyTaken):
			return true, err
		case store.Refused(err) != nil, fault.KindOf(err) == fault.NotFound: // it has ended meanwhile
			continue
		case err != nil:
			return false, err
		}
		*made = held
		return false, nil
	}
	return false, fault.New(fault.Conflict, nil, "submitting a job: its unique key had %d holders meanwhile", keyTries)
}

// held answers a request whose unique key a job holds, as its on_conflict says. A holder that has ended meanwhile is an
// *item.Refused.
func (s *Submitter) held(
	ctx context.Context, r Request, holder job.Row, d *accept.Draft, with keyWrite,
	answer func(job.Row, time.Time) ([]byte, error),
) (j Job, err error) {
	j = Job{Row: holder, At: s.now(), Held: true}
	refusal := &accept.NotUnique{Holder: holder.ID, Key: d.Row.Unique.Key}
	var key []item.Write
	if with != nil {
		kept, err := answer(holder, j.At)
		if err != nil {
			return j, err
		}
		w := with(holder.ID, true, kept)
		w.Else = errKeyTaken
		key = append(key, w)
	}
	switch how := d.Row.Unique.OnConflict; {
	case holder.Status == "": // it cannot be read, and a worker is at it
		return j, refusal
	case how == job.ConflictReturn && with == nil:
		j.firing, err = s.unfired(ctx, holder)
		return j, err
	case how == job.ConflictReturn:
		if err := s.Store.Put(ctx, key[0]); store.Refused(err) != nil {
			return j, errKeyTaken
		} else if err != nil {
			return j, err
		}
		j.firing, err = s.unfired(ctx, holder)
		return j, err
	case how != job.ConflictReplace:
		return j, refusal
	case holder.Task != d.Row.Task:
		refusal.Detail = "it has another task, " + holder.Task + ", so it is not replaced"
		return j, refusal
	}
	j.Row, err = s.Edit.Replace(ctx, holder.Key, d, r.Who.Subject, key...)
	return j, err
}

// unfired returns the firing of a job whose key another request asked for, if the process that accepted it may have
// ended before it sent that: a client may repeat its request by the unique key alone.
func (s *Submitter) unfired(ctx context.Context, r job.Row) (*job.Firing, error) {
	if !job.MayBeUnfired(r, job.Claim{}) {
		return nil, nil
	}
	return s.Accept.Unfired(ctx, r.Key)
}

package submit

import (
	"context"
	"time"

	"punctual/functions/engine/accept"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/store"
)

// Job is a job that was accepted, by this request or by an earlier one with its key.
type Job struct {
	Row      job.Row
	Contents job.Contents // of this request; the zero Contents in a replay
	At       time.Time    // at which the request was read
	Replayed bool         // an earlier request made it, and the row is as it is now
	Held     bool         // another request made it; it holds the unique key of this one, or held it then

	firing *job.Firing // nil: it is not due now, or was fired before
}

// prepare gives a draft its id and its first wake-up.
func (s *Submitter) prepare(r Request, d *accept.Draft, now time.Time) (Job, error) {
	id, err := s.newID(now)
	if err != nil {
		return Job{}, err
	}
	j := Job{Row: d.Row, Contents: d.Contents(r.Who.Subject), At: now}
	j.Row.ID, j.Row.Shard = id, horizon.ShardOf(string(id), s.Shards)
	var due bool
	if d.After == nil {
		due = job.Route(&j.Row, now)
	} else {
		j.Row, due = d.After.Admit(j.Row, s.now()) // a parent may have ended since now
	}
	j.Row.Hold(j.Contents)
	if due {
		j.firing = new(j.Row.Firing())
	}
	return j, nil
}

// write writes a job so that it cannot be lost; with a key, row and key are one transaction. taken says that another
// request has the key.
func (s *Submitter) write(
	ctx context.Context, j Job, d *accept.Draft, with keyWrite, answer func(job.Row, time.Time) ([]byte, error),
	more ...item.Write,
) (taken bool, err error) {
	if err := s.Store.KeepContents(ctx, j.Row, j.Contents); err != nil {
		return false, err
	}
	if j.Row.Status == job.Blocked {
		// A parent that ends before the row is written finds no row; evaluate notices that.
		for _, id := range d.After.Waits() {
			if _, err := s.Store.Follow(ctx, job.Key{Tenant: j.Row.Tenant, ID: id}, j.Row.Key, j.At); err != nil {
				return false, err
			}
		}
	}
	s.Accept.LogLiterals(ctx, j.Row, j.Contents)
	if with == nil {
		return false, s.Accept.Put(ctx, accept.Job{Row: j.Row, OwnID: true, With: more})
	}
	kept, err := answer(j.Row, j.At)
	if err != nil {
		return false, err
	}
	err = s.Accept.Put(ctx, accept.Job{Row: j.Row, With: append(more, with(j.Row.ID, false, kept))})
	return refused(err, 1+len(more)), err
}

// refused reports whether write n of a transaction was refused.
func refused(err error, n int) bool {
	of := store.Refused(err)
	if of == nil {
		return false
	}
	_, is := of.Olds[n]
	return is
}

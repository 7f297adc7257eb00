package backfill

import (
	"context"
	"time"

	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/store"
)

// timesAtOnce is how many times one step decides about.
const timesAtOnce = 100

// choice is what becomes of a nominal time.
type choice struct {
	number  int  // of the job to make, among those that backfills have made of this time
	leftOut bool // it ran, or has not ended
	used    bool // no number is left
}

// choose decides about nominal times by their rows: that of the schedule itself, and those of backfills. All reads are
// strongly consistent. With repeat, a time that ran is made all the same.
func (b *Backfiller) choose(
	ctx context.Context, k schedule.Key, times []time.Time, repeat bool,
) ([]choice, error) {
	var keys []job.Key
	for _, at := range times {
		keys = append(keys, job.Key{Tenant: k.Tenant, ID: k.BackfillID(at, 0)})
		if !repeat {
			keys = append(keys, job.Key{Tenant: k.Tenant, ID: k.JobID(at)})
		}
	}
	found, err := b.existing(ctx, keys)
	if err != nil {
		return nil, err
	}
	each := len(keys) / max(1, len(times))
	chosen := make([]choice, len(times))
	for n, at := range times {
		first := found[n*each]
		switch {
		case !repeat && (counts(first) || counts(found[n*each+1])):
			chosen[n].leftOut = true
		case first != (store.Existing{}):
			if chosen[n], err = b.chooseLater(ctx, k, at, repeat); err != nil {
				return nil, err
			}
		}
	}
	return chosen, nil
}

// chooseLater decides about a time of which a backfill has made a job that does not count.
func (b *Backfiller) chooseLater(ctx context.Context, k schedule.Key, at time.Time, repeat bool) (choice, error) {
	var keys []job.Key
	for n := 1; n < schedule.MaxBackfills; n++ {
		keys = append(keys, job.Key{Tenant: k.Tenant, ID: k.BackfillID(at, n)})
	}
	found, err := b.existing(ctx, keys)
	if err != nil {
		return choice{}, err
	}
	for n, f := range found {
		switch {
		case f == store.Existing{}:
			return choice{number: n + 1}, nil
		case !repeat && counts(f):
			return choice{leftOut: true}, nil
		}
	}
	return choice{used: true}, nil
}

// existing reads what there is of jobs, in as many requests as that takes.
func (b *Backfiller) existing(ctx context.Context, keys []job.Key) (found []store.Existing, err error) {
	for from := 0; from < len(keys); from += store.ReadAtOnce {
		part, err := b.Store.Existing(ctx, keys[from:min(from+store.ReadAtOnce, len(keys))])
		if err != nil {
			return nil, err
		}
		found = append(found, part...)
	}
	return found, nil
}

// counts says that a job makes its time one that ran, or that has not ended. One that cannot be read counts: it may
// have run.
func counts(f store.Existing) bool {
	if f.Err != nil {
		return true
	}
	if f.Row == nil {
		return false
	}
	outcome, _, _ := schedule.OfJob(*f.Row)
	return outcome == schedule.Ran || outcome == schedule.Pending
}

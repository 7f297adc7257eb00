package limits

import (
	"context"
	"slices"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/limit"
	"punctual/shared/store"
)

// What becomes of a job that is due.
const (
	Waits   job.Step = "wait_for_limit"
	Skipped job.Step = "limit_full"
)

// Verdict says what the limits of a job make of it.
type Verdict struct {
	Step job.Step   // job.StepFire, Waits or Skipped
	No   int        // of Waits: which of the job's limits it waits for, from 1
	Key  limit.Key  // the key of that limit
	Why  job.Reason // of Skipped
	// Cancel is the job to be asked to stop, for the sake of this one; nil for none.
	Cancel *job.Row
	// Unmarked says that the key is to be marked once the job waits.
	Unmarked bool
	// Ahead, of job.StepFire, says that jobs have waited for a permit until a moment ago. A worker would take the job
	// for one that has to wait behind them, unless its row says that it need not.
	Ahead bool
}

// Admit says whether a job that is due may be fired, or has to wait for a permit. A permit that it holds already
// counts; it is taken, or drawn anew, by the worker that starts the attempt.
func (l *Limits) Admit(ctx context.Context, r job.Row, c job.Claim, now time.Time) (Verdict, error) {
	fire, first := Verdict{Step: job.StepFire}, !job.HasStarted(r, c)
	var full, behind []int
	states := map[int]*state{}
	for no, k := range KeysOf(r) {
		s, found, err := l.read(ctx, k, r.ID)
		if err != nil {
			return fire, err
		}
		if !found {
			continue
		}
		if s.running() {
			if err := l.freeLost(ctx, &s, now); err != nil {
				return fire, err
			}
		}
		states[no] = &s
		if s.running() || s.started(now) {
			full = append(full, no)
			continue
		}
		waits, err := l.waitsBehind(ctx, r, &s)
		if err != nil {
			return fire, err
		}
		if waits {
			behind = append(behind, no)
		}
		fire.Ahead = fire.Ahead || s.marked() && r.ReadyAt.IsZero()
	}
	for _, no := range full {
		if s := states[no]; s.limit.WhenFull == limit.Skip && first {
			return Verdict{Step: Skipped, Key: s.key, Why: job.Reason{
				Code: job.CodeLimitFull, Message: "limit " + s.key.Name + " was full when the job fell due",
			}}, nil
		}
	}
	waits := slices.Concat(full, behind)
	if len(waits) == 0 {
		return fire, nil
	}
	s := states[waits[0]]
	v := Verdict{Step: Waits, No: waits[0] + 1, Key: s.key}
	v.Unmarked = len(s.are) == 0 || now.Sub(s.are[0].Mark) > markFresh
	if len(full) != 1 || s.limit.WhenFull != limit.CancelOldest || !s.running() || !first {
		return v, nil
	}
	var err error
	v.Cancel, err = l.oldest(ctx, s, r.WaitsLimit > 0)
	return v, err
}

// markFresh is how old a mark may be to speak for one more job that waits. It is far less than the age at which a mark
// is removed.
const markFresh = 5 * time.Second

// waitsBehind says whether a job that falls due has to wait although there is a permit, because others have waited
// longer. One that was woken has not, of whichever of its limits it waited for: jobs of two limits could otherwise send
// each other from one queue to the other without end.
func (l *Limits) waitsBehind(ctx context.Context, r job.Row, s *state) (bool, error) {
	if !s.marked() || s.mine || r.WaitsLimit > 0 || !r.ReadyAt.IsZero() {
		return false, nil
	}
	for _, queue := range job.WaiterQueuesUpTo(r.Tenant, s.key.LimitKey, r.Priority) {
		found, err := l.Store.DueFront(ctx, store.DueQuery{Slice: queue, Limit: 2})
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(found, func(f store.Found) bool { return f.Err == nil && f.Key.ID != r.ID }) {
			return true, nil
		}
	}
	return false, nil
}

// sampledHolders is how many holders of permits are read in search of one, at most.
const sampledHolders = 64

// holders are those of the key that hold a permit the longest.
func (s *state) holders(most int) []limit.Holder {
	var all []limit.Holder
	for _, b := range s.are {
		all = append(all, b.Holders...)
	}
	slices.SortFunc(all, func(a, b limit.Holder) int { return a.Since.Compare(b.Since) })
	return all[:min(len(all), most)]
}

func keys(of limit.Key, holders []limit.Holder) []job.Key {
	ids := make([]job.Key, len(holders))
	for n, h := range holders {
		ids[n] = job.Key{Tenant: of.Tenant, ID: h.ID}
	}
	return ids
}

// oldest is the job that holds a permit the longest and was not asked to stop yet; nil if there is none. For a job that
// waits already it is nil if any was asked: the process that put it there may have crashed before it asked.
func (l *Limits) oldest(ctx context.Context, s *state, waits bool) (*job.Row, error) {
	rows, err := l.Store.Nodes(ctx, keys(s.key, s.holders(sampledHolders)))
	if err != nil {
		return nil, err
	}
	var oldest *job.Row
	for _, r := range rows {
		switch {
		case !r.Status.Open():
		case r.Stop != job.NoStop && waits:
			return nil, nil
		case r.Stop == job.NoStop && oldest == nil:
			oldest = &r
		}
	}
	return oldest, nil
}

// freeLost gives back the permits of jobs that have ended without doing so, and of attempts whose worker was lost; the
// claims of these are fenced first. It is asked where no permit is left.
func (l *Limits) freeLost(ctx context.Context, s *state, now time.Time) error {
	old := slices.DeleteFunc(s.holders(sampledHolders), func(h limit.Holder) bool {
		return now.Sub(h.Since) < contract.Lease
	})
	if len(old) == 0 {
		return nil
	}
	rows, err := l.Store.Nodes(ctx, keys(s.key, old))
	if err != nil {
		return err
	}
	claims, err := l.Store.Claims(ctx, keys(s.key, old))
	if err != nil {
		return err
	}
	for n, h := range old {
		lost, err := l.isLost(ctx, h, rows[n], claims[n], now)
		if err != nil {
			return err
		}
		if !lost {
			continue
		}
		if _, err := l.Store.FreePermit(ctx, s.limit, s.key, h.ID, h.Attempt, h.Bucket); err != nil {
			return err
		}
		s.held--
		l.Log.InfoContext(ctx, "a permit of a lost attempt was given back",
			"limit", s.key.Name, "job_id", h.ID, "attempt", h.Attempt)
	}
	return nil
}

// isLost says whether no worker can be at an attempt that holds a permit any more. If one might still come back to it,
// its claim is fenced.
func (l *Limits) isLost(ctx context.Context, h limit.Holder, r job.Row, c job.Claim, now time.Time) (bool, error) {
	switch {
	case r.ID == "" || r.Status.Final() || r.Attempt > h.Attempt:
		return true, nil
	case c.Live(h.Attempt, now):
		return false, nil
	}
	err := l.Store.Put(ctx, job.Fence(r, c, r.DueAt, now))
	if store.Refused(err) != nil {
		return false, nil
	}
	return err == nil, err
}

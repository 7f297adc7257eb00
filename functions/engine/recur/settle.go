package recur

import (
	"context"
	"fmt"
	"time"

	"punctual/functions/engine/scan"
	"punctual/shared/fault"
	"punctual/shared/schedule"
	"punctual/shared/store"
)

// settleTime is the longest that one step of Settle and what follows it in a request take.
const settleTime = 5 * time.Second

// Settle decides about the times up to now that a pause holds, by the policy of the pause and as if it ended now. Those
// that are to run become jobs, which wait for the end of the pause; the others are recorded. So an edit that follows
// does not decide about them, and they keep the template before it. Settle returns the schedule as it then is, or
// as it was read if its epoch has moved: the edit is refused then.
func (r *Recurrer) Settle(ctx context.Context, s schedule.Schedule, now time.Time) (schedule.Schedule, error) {
	cal, err := s.Coming()
	if err != nil || !s.HoldsTimes(now) { // an unreadable calendar has no times
		return s, nil
	}
	var did Promoted
	for range steps {
		p, after, err := r.advance(ctx, s, now, &did, func(has map[time.Time]bool) schedule.Plan {
			return s.PlanHeld(cal, now, has)
		})
		if store.Refused(err) != nil {
			is, err := r.read(ctx, s.Key)
			if err != nil || is.Epoch != s.Epoch {
				return s, err
			}
			if s = is; !s.HoldsTimes(now) {
				return s, nil
			}
			continue
		}
		if err != nil {
			return s, fmt.Errorf("deciding about the times that a pause of schedule %q holds: %w", s.Name, err)
		}
		if s = after; !p.More {
			return s, nil
		}
		if !scan.TimeLeft(ctx, settleTime) {
			break
		}
	}
	return s, fault.New(fault.Conflict, nil, "a pause of schedule %q holds more times than one call may decide", s.Name)
}

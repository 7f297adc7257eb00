package amend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/shared/audit"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// editors is how many schedules follow an exclusion at the same time.
const editors = 16

// Unfit is the error of an exclusion with which a schedule that names it could not continue.
type Unfit struct {
	Schedule string
	Why      *calendar.Error
}

func (e *Unfit) Error() string {
	return fmt.Sprintf("schedule %s names this exclusion, and could not continue with it: %s", e.Schedule, e.Why.Detail)
}

// ErrExclusions is the error of an exclusion beyond contract.MaxExclusions.
var ErrExclusions = fmt.Errorf("there are %d exclusions, which is the limit; delete one first", contract.MaxExclusions)

// PutExclusion creates or replaces an exclusion. Schedules that name it follow, as if each had been edited.
func (e *Editor) PutExclusion(
	ctx context.Context, t tenant.ID, name string, wanted calendar.Exclusion,
) (after store.Exclusion, created bool, err error) {
	after, err = e.Store.UpdateExclusion(ctx, t, name, func(old *store.Exclusion) (store.Exclusion, error) {
		if created = old == nil; created {
			// Two requests at once may exceed the limit by one; it only bounds how much a list reads.
			_, more, err := e.Store.Exclusions(ctx, t, "", contract.MaxExclusions-1)
			if err == nil && more {
				err = ErrExclusions
			}
			if err != nil {
				return store.Exclusion{}, err
			}
		}
		if created {
			audit.From(ctx).Changed(nil, wanted)
		} else {
			audit.From(ctx).Changed(old.Exclusion, wanted)
		}
		return store.Exclusion{Name: name, Exclusion: wanted}, e.checkExclusion(ctx, t, name, wanted)
	})
	if err != nil {
		return after, created, err
	}
	return after, created, e.follow(ctx, t, name, wanted)
}

// DeleteExclusion deletes an exclusion unless schedules name it, which it then returns.
func (e *Editor) DeleteExclusion(ctx context.Context, t tenant.ID, name string) (namedBy []string, err error) {
	if _, namedBy, err = e.Read.Selected(ctx, t, naming(name)); err != nil || len(namedBy) > 0 {
		return namedBy, err
	}
	return nil, e.Store.DeleteExclusion(ctx, t, name)
}

// naming selects the schedules of which a calendar names an exclusion.
func naming(exclusion string) func(schedule.Schedule) bool {
	return func(s schedule.Schedule) bool {
		return slices.ContainsFunc(s.Calendars(), func(c calendar.Spec) bool {
			return slices.Contains(c.Exclude, exclusion)
		})
	}
}

// checkExclusion refuses an exclusion that makes the calendar of one of the schedules invalid.
func (e *Editor) checkExclusion(ctx context.Context, t tenant.ID, name string, with calendar.Exclusion) error {
	following, _, err := e.Read.Selected(ctx, t, naming(name))
	if err != nil {
		return err
	}
	now := e.Read.Now()
	for _, c := range following {
		before, err := c.Calendar()
		if err != nil || before.Check(now) != nil {
			continue // its calendar is invalid as it is
		}
		after, err := c.WithExclusion(name, with).Calendar()
		if err == nil {
			err = after.Check(now)
		}
		var bad *calendar.Error
		if errors.As(err, &bad) {
			return &Unfit{c.Name, bad}
		}
	}
	return nil
}

// follow edits each schedule that names an exclusion, unless its copy is the same already.
func (e *Editor) follow(ctx context.Context, t tenant.ID, name string, with calendar.Exclusion) error {
	following, _, err := e.Read.Selected(ctx, t, naming(name))
	if err != nil {
		return err
	}
	var all errgroup.Group
	all.SetLimit(editors)
	for _, c := range following {
		all.Go(func() error { return e.followOne(ctx, c.Key, name, with) })
	}
	if err := all.Wait(); err != nil { // repeating the PUT continues from here
		return fmt.Errorf("editing schedules that name exclusion %q: %w", name, err)
	}
	return nil
}

func (e *Editor) followOne(ctx context.Context, k schedule.Key, name string, with calendar.Exclusion) error {
	if err := e.promoteFirst(ctx, k); err != nil {
		return err
	}
	after, changed, err := e.changeSchedule(ctx, k, 0,
		func(old schedule.Schedule, now time.Time) ([]item.Write, error) {
			if !naming(name)(old) {
				return nil, nil
			}
			wanted := old.WithExclusion(name, with)
			if !schedule.Unchanged(old, wanted) {
				settled, err := e.Engine.Recur.Settle(ctx, old, now)
				if err != nil {
					return nil, err
				}
				old = settled
			}
			_, writes, err := e.edited(ctx, old, wanted, now)
			if bad := new(calendar.Error); errors.As(err, &bad) { // its calendar was invalid before
				return nil, nil
			}
			return writes, err
		})
	if changed {
		e.promote(ctx, after.Key)
	}
	if fault.KindOf(err) == fault.NotFound { // deleted in the meantime
		return nil
	}
	return err
}

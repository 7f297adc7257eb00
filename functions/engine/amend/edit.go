package amend

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"punctual/functions/engine"
	"punctual/functions/engine/accept"
	"punctual/functions/engine/arm"
	"punctual/functions/engine/pause"
	"punctual/functions/engine/recur"
	"punctual/functions/engine/show"
	"punctual/shared/audit"
	"punctual/shared/calendar"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Store is what an Editor reads and writes beyond what a Recurrer does.
type Store interface {
	recur.Store
	store.RunReader
	store.Exclusions
}

// Editor changes schedules on request. Before a change takes effect, it makes the jobs that are due by then; after it,
// those of the near future. An absent or deleted schedule is a fault.NotFound, and a calendar that cannot be used a
// *calendar.Error.
type Editor struct {
	Store   Store
	Engine  *engine.Engine
	Read    *show.Reader
	Wake    arm.Waker
	Entropy *accept.Entropy
	Log     *slog.Logger
	Quota   int // runs a minute of all schedules of a tenant, each counted at its busiest and at least once
}

// Stale is the error of a change of another version than the schedule has.
type Stale struct{ Has, Wanted int64 } // Has is 0 for a schedule that no longer exists

func (e *Stale) Error() string {
	if e.Has == 0 {
		return "the schedule no longer exists"
	}
	return fmt.Sprintf("the schedule has version %d, not %d", e.Has, e.Wanted)
}

// QuotaExceeded is the error of a change that takes more of a tenant's quota than is left. Waiting does not help, only
// deleting does.
type QuotaExceeded struct {
	Quota int
	More  int64 // runs a minute that the change needs in addition
}

func (e *QuotaExceeded) Error() string {
	return fmt.Sprintf("the schedules of a tenant may run %d times a minute in total, each counted at its busiest "+
		"minute and at least once; %d more exceed this: delete a schedule, or let some run less often", e.Quota, e.More)
}

// DagGone is the error of a schedule whose dag was deleted at the same moment.
type DagGone struct{ Name string }

func (e *DagGone) Error() string { return "there is no dag " + text.Quoted(e.Name) }

// absent is the error of a schedule that is not there.
func absent(k schedule.Key) error {
	return fault.New(fault.NotFound, nil, "reading schedule %q", k.Name)
}

// checkVersion returns an error unless the schedule exists and has that epoch; 0 is any.
func checkVersion(k schedule.Key, found *schedule.Schedule, epoch int64) error {
	switch {
	case found == nil || found.Deleted():
		return absent(k)
	case epoch != 0 && found.Epoch != epoch:
		return &Stale{found.Epoch, epoch}
	}
	return nil
}

// Asked reads the change that a request asks for. It is called for each state of the schedule that is found: nil for
// nothing, or what is left of a deleted one.
type Asked func(old *schedule.Schedule, now time.Time) (Change, error)

// Request is a change of a schedule that a caller asks for.
type Request struct {
	Key   schedule.Key
	Epoch int64 // of the schedule to change; 0 is any
	// Patch says that the schedule must exist: its change cannot be read without it.
	Patch bool
	By    string // who asks
	Ask   Asked
	// Note is called with what a change makes of a schedule before it is written; old is nil for a new one. A nil Note
	// is not called.
	Note func(old *schedule.Schedule, after schedule.Schedule)
}

// Edited is the outcome of a change.
type Edited struct {
	schedule.Schedule
	Created bool // it is new
	Changed bool // something was written
	// EffectiveAt is the time up to which due times keep their former job, or, if the change pauses the schedule, the
	// time after which nothing of it starts.
	EffectiveAt time.Time
}

// Put creates or replaces a schedule.
func (e *Editor) Put(ctx context.Context, q Request) (Edited, error) {
	out, paused := Edited{}, false
	var err error
	out.Schedule, out.Changed, err = e.put(ctx, q,
		func(old *schedule.Schedule, c Change, now time.Time) ([]item.Write, error) {
			out.Created = old == nil || old.Deleted()
			paused = !out.Created && old.Paused != nil
			return e.changeWrites(ctx, q, old, c, now)
		})
	if err != nil || !out.Changed {
		return out, err
	}
	e.promote(ctx, q.Key)
	out.EffectiveAt = out.UpdatedAt
	if p := out.Paused; p != nil && p.EffectiveAt.After(out.UpdatedAt) {
		out.EffectiveAt = pause.EffectiveAt(p.EffectiveAt, e.Read.Now())
	}
	if paused && out.Paused == nil {
		e.Wake.Parked(ctx, q.Key.Tenant, e.Read.Now())
	}
	return out, nil
}

// Tried is how a change would change a schedule.
type Tried struct {
	Old, After schedule.Schedule // Old is the zero Schedule for a new one
	New        bool
	Times      calendar.Difference
	At         time.Time
}

// Try checks a change as if it were made by Put, and compares the coming times of the schedule before and after it. It
// returns the errors that the change would give, including that of the tenant's quota. It writes nothing of the change.
func (e *Editor) Try(ctx context.Context, q Request) (found schedule.Schedule, out Tried, err error) {
	found, _, err = e.put(ctx, q,
		func(old *schedule.Schedule, c Change, now time.Time) (_ []item.Write, err error) {
			out, err = e.try(ctx, q, old, c, now)
			return nil, err
		})
	return found, out, err
}

func (e *Editor) try(
	ctx context.Context, q Request, old *schedule.Schedule, c Change, now time.Time,
) (Tried, error) {
	after, _, err := e.plan(ctx, q, old, c, now)
	if err != nil {
		return Tried{}, err
	}
	next, err := after.Calendar()
	if err != nil {
		return Tried{}, err
	}
	out := Tried{After: after, New: old == nil || old.Deleted(), At: now}
	before, runs, takes := next, 0, after.Weight() // a new schedule had no times
	if !out.New {
		out.Old = *old
		takes -= old.Weight()
		if c, err := old.Coming(); err == nil {
			before, runs = c, old.RunsLeft()
		}
	}
	if takes > 0 {
		used, err := e.Store.UsedBySchedules(ctx, after.Tenant)
		if err != nil {
			return out, err
		}
		if used+takes > int64(e.Quota) {
			return out, &QuotaExceeded{e.Quota, takes}
		}
	}
	out.Times = calendar.Compare(before, next, runs, after.RunsLeft(), now)
	return out, nil
}

// put calls decide with what is asked for and with what is there.
func (e *Editor) put(
	ctx context.Context, q Request, decide func(*schedule.Schedule, Change, time.Time) ([]item.Write, error),
) (after schedule.Schedule, changed bool, err error) {
	if err := e.promoteFirst(ctx, q.Key); err != nil {
		return after, false, err
	}
	return e.updateSchedule(ctx, q.Key, func(old *schedule.Schedule, now time.Time) ([]item.Write, error) {
		if q.Patch {
			if err := checkVersion(q.Key, old, q.Epoch); err != nil {
				return nil, err
			}
		}
		c, err := q.Ask(old, now)
		if err == nil && q.Epoch != 0 {
			if err = checkVersion(q.Key, old, q.Epoch); fault.KindOf(err) == fault.NotFound {
				err = &Stale{Wanted: q.Epoch}
			}
		}
		if err != nil {
			return nil, err
		}
		return decide(old, c, now)
	})
}

// Delete deletes a schedule. Nothing of it starts from contract.EffectiveAfter later on.
func (e *Editor) Delete(ctx context.Context, k schedule.Key, epoch int64) error {
	_, _, err := e.changeSchedule(ctx, k, epoch, func(old schedule.Schedule, now time.Time) ([]item.Write, error) {
		has, err := e.Store.HaveJobs(ctx, k, old.Leaves(now))
		if err != nil {
			return nil, err
		}
		_, writes := schedule.Delete(old, has, now)
		return append(writes, e.takeQuota(k.Tenant, -old.Weight())), nil
	})
	return err
}

// Pause pauses a schedule, and returns the time from which nothing of it starts. A second pause replaces the first.
func (e *Editor) Pause(
	ctx context.Context, k schedule.Key, epoch int64, p schedule.Pause,
) (after schedule.Schedule, effectiveAt time.Time, err error) {
	if err := e.promoteFirst(ctx, k); err != nil {
		return after, effectiveAt, err
	}
	after, changed, err := e.changeSchedule(ctx, k, epoch,
		func(old schedule.Schedule, now time.Time) ([]item.Write, error) {
			if is := old.Paused; is != nil && is.Reason == p.Reason && is.Until.Equal(p.Until) &&
				is.Missed == p.Missed && is.By != schedule.ByPunctual {
				return nil, nil
			}
			_, write := schedule.PauseSchedule(old, p, now)
			return []item.Write{write}, nil
		})
	if err != nil {
		return after, effectiveAt, err
	}
	if effectiveAt = after.Paused.EffectiveAt; changed {
		effectiveAt = pause.EffectiveAt(effectiveAt, e.Read.Now())
	}
	if !p.Until.IsZero() { // dispatch resumes the schedule then, and re-evaluates the jobs that it holds
		e.Wake.Later(ctx, k.Tenant, p.Until, append(arm.Unpark(k.Tenant), recur.Ask(k, p.Until))...)
	}
	return after, effectiveAt, nil
}

// Resume ends the pause of a schedule. missed selects the times in the pause that run; "" is as the pause says. A
// schedule that is not paused stays as it is.
func (e *Editor) Resume(ctx context.Context, k schedule.Key, epoch int64, missed string) (schedule.Schedule, error) {
	after, resumed, err := e.changeSchedule(ctx, k, epoch,
		func(old schedule.Schedule, now time.Time) ([]item.Write, error) {
			if old.Paused == nil {
				return nil, nil
			}
			_, write := schedule.Resume(old, missed, now)
			return []item.Write{write}, nil
		})
	if err != nil || !resumed {
		return after, err
	}
	e.promote(ctx, k)
	e.Wake.Parked(ctx, k.Tenant, e.Read.Now())
	return e.existing(ctx, k) // promotion has changed it
}

// existing reads a schedule that is not deleted.
func (e *Editor) existing(ctx context.Context, k schedule.Key) (schedule.Schedule, error) {
	found, err := e.Store.Schedule(ctx, k)
	if err != nil {
		return found, err
	}
	return found, checkVersion(k, &found, 0)
}

// changeSchedule reads a schedule, calls decide, and writes what that returns. It returns the schedule after the
// change, and whether anything was written.
func (e *Editor) changeSchedule(
	ctx context.Context, k schedule.Key, epoch int64, decide func(schedule.Schedule, time.Time) ([]item.Write, error),
) (after schedule.Schedule, changed bool, err error) {
	return e.updateSchedule(ctx, k, func(old *schedule.Schedule, now time.Time) ([]item.Write, error) {
		if err := checkVersion(k, old, epoch); err != nil {
			return nil, err
		}
		return decide(*old, now)
	})
}

// updateSchedule is changeSchedule for a schedule that may be absent (decide gets nil) or deleted. It deletes a payload
// that the write has replaced.
func (e *Editor) updateSchedule(
	ctx context.Context, k schedule.Key, decide func(*schedule.Schedule, time.Time) ([]item.Write, error),
) (after schedule.Schedule, changed bool, err error) {
	var old *schedule.Schedule
	after, err = e.Store.UpdateSchedule(ctx, k, func(found *schedule.Schedule) ([]item.Write, error) {
		if found != nil {
			found.Announced = e.Engine.Recur.Announced(ctx, k.Tenant)
		}
		writes, err := decide(found, e.Read.Now())
		old, changed = found, len(writes) > 0
		return writes, err
	})
	if err != nil {
		return after, false, err
	}
	if changed && old != nil && !old.Deleted() {
		e.forgetReplaced(ctx, *old, after)
	}
	if changed {
		e.Engine.Recur.AnnounceOrLater(audit.Without(ctx), after)
	}
	return after, changed, nil
}

// promoteFirst makes the jobs of a schedule's times that are due by now, so that they are made before an edit or a
// pause takes effect. Usually they exist already.
func (e *Editor) promoteFirst(ctx context.Context, k schedule.Key) error {
	found, err := e.Store.Schedule(ctx, k)
	now := e.Read.Now()
	if err != nil || found.Deleted() || found.Next.IsZero() || found.Next.After(now) {
		return nil // the change itself reports what is wrong
	}
	if found.Paused != nil && !found.Paused.Over(now) {
		return nil // changeWrites decides about its times, if something changes
	}
	within, cancel := context.WithTimeout(audit.Without(ctx), promoteTimeout)
	defer cancel()
	if _, err = e.Engine.Recur.Promote(within, k); fault.Retryable(err) {
		return err
	}
	return nil // an unreadable calendar has no times
}

// plan returns a schedule after a change, and the writes that make it; none if nothing changes. old is nil if there
// is no schedule, or what is left of a deleted one.
func (e *Editor) plan(
	ctx context.Context, q Request, old *schedule.Schedule, c Change, now time.Time,
) (schedule.Schedule, []item.Write, error) {
	if old == nil || old.Deleted() {
		wanted := schedule.Schedule{
			Key: q.Key, Shard: horizon.ShardOf(q.Key.ID(), e.Engine.Recur.Shards), Overlap: schedule.OverlapAllow,
			CatchUp: schedule.DefaultCatchUp, Announced: e.Engine.Recur.Announced(ctx, q.Key.Tenant),
		}
		if old != nil {
			wanted.Epoch = old.Epoch // so its payload gets a name that was never used
		}
		c.apply(&wanted, nil, q.By)
		after, write, err := schedule.Create(old, wanted, now)
		return after, []item.Write{write}, err
	}
	wanted := *old
	var kept []byte // a payload that is equal as JSON is not replaced
	if c.Job != nil && c.Job.Payload != nil && old.Template.PayloadSize > 0 {
		var err error
		if kept, err = e.Store.SchedulePayload(ctx, *old); err != nil && fault.KindOf(err) != fault.NotFound {
			return wanted, nil, err
		}
	}
	c.apply(&wanted, kept, q.By)
	after, writes, err := e.edited(ctx, *old, wanted, now)
	return after, writes, err
}

// edited returns a schedule after an edit, and its writes; none if nothing changes. The error may be a *calendar.Error.
func (e *Editor) edited(
	ctx context.Context, old, wanted schedule.Schedule, now time.Time,
) (schedule.Schedule, []item.Write, error) {
	if schedule.Unchanged(old, wanted) {
		after, writes := schedule.ChangePause(old, wanted, now)
		return after, writes, nil
	}
	has, err := e.Store.HaveJobs(ctx, old.Key, old.Leaves(now))
	if err != nil {
		return old, nil, err
	}
	wanted.Before = old.Before
	if old.Overlap == schedule.OverlapBufferAll {
		slot, err := e.Store.Slot(ctx, old.Key)
		if err != nil {
			return old, nil, err
		}
		if wanted.Before, err = schedule.OpenBefore(ctx, e.Store.Rows, old, slot, now); err != nil {
			return old, nil, err
		}
	}
	return schedule.Edit(old, wanted, has, now)
}

// changeWrites returns the writes of a change; none if nothing changes.
func (e *Editor) changeWrites(
	ctx context.Context, q Request, old *schedule.Schedule, c Change, now time.Time,
) ([]item.Write, error) {
	after, writes, err := e.plan(ctx, q, old, c, now)
	// A change of only the pause decides about no time: the end of the pause does.
	if err == nil && len(writes) > 0 && old != nil && old.HoldsTimes(now) && !schedule.Unchanged(*old, after) {
		var settled schedule.Schedule
		if settled, err = e.Engine.Recur.Settle(audit.Without(ctx), *old, now); err == nil {
			after, writes, err = e.plan(ctx, q, &settled, c, now)
		}
	}
	if err != nil || len(writes) == 0 {
		return nil, err
	}
	takes := after.Weight()
	if old != nil {
		takes -= old.Weight()
	}
	if q.Note != nil {
		q.Note(old, after)
	}
	return e.scheduleWrites(ctx, q.By, takes, after, c, writes)
}

// forgetReplaced deletes a payload that a write has replaced. A failure only leaves a blob without use.
func (e *Editor) forgetReplaced(ctx context.Context, old, after schedule.Schedule) {
	if err := e.Store.ForgetReplaced(ctx, old, after); err != nil {
		e.warn(ctx, "the former payload of a schedule was not deleted", after.Key, err)
	}
}

func (e *Editor) warn(ctx context.Context, sentence string, k schedule.Key, err error) {
	e.Log.WarnContext(ctx, sentence, telemetry.Tenant, k.Tenant, "schedule", k.Name, telemetry.Err, err)
}

// scheduleWrites writes the schedule's payload, and returns the writes of the schedule and of its share of the tenant's
// quota.
func (e *Editor) scheduleWrites(
	ctx context.Context, by string, takes int64, after schedule.Schedule, c Change,
	writes []item.Write,
) ([]item.Write, error) {
	if c.Job != nil {
		if err := e.Store.PutSchedulePayload(ctx, after, c.Job.Payload); err != nil {
			return nil, fmt.Errorf("keeping the payload of schedule %q: %w", after.Name, err)
		}
		if n := len(c.Job.Literals); n > 0 {
			e.Log.InfoContext(ctx, "a schedule declared that literals are not secrets", telemetry.Tenant, after.Tenant,
				"schedule", after.Name, "literals", n, "by", by)
		}
	}
	// These conditions fit into the transaction unless the edit records very much in the ledger.
	if c.Calendar != nil && len(writes)+len(c.Calendar.AsRead) <= mostWrites {
		writes = append(writes, c.Calendar.AsRead...)
	}
	if c.Job != nil && after.Template.StartsRun() { // the dag must not be deleted in the meantime
		use := store.UseDag(after.Tenant, after.Template.Dag)
		use.Else = &DagGone{after.Template.Dag}
		writes = append(writes, use)
	}
	if takes > int64(e.Quota) {
		return nil, &QuotaExceeded{e.Quota, takes}
	}
	if takes != 0 {
		writes = append(writes, e.takeQuota(after.Tenant, takes))
	}
	return writes, nil
}

// mostWrites is how many writes one transaction can have besides those of the dag, the quota and the audit.
const mostWrites = 97

// promoteTimeout bounds how long a request makes the jobs of the next half hour: an every-second schedule has 1,800.
const promoteTimeout = 15 * time.Second

// promote makes the jobs of a schedule that are within the horizon. If it fails, dispatch makes them, so the request
// does not fail.
func (e *Editor) promote(ctx context.Context, k schedule.Key) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), promoteTimeout)
	defer cancel()
	_, err := e.Engine.Recur.Promote(within, k)
	if err == nil {
		return
	}
	e.warn(ctx, "making a schedule's near jobs was left to dispatch", k, err)
	within, cancel = context.WithTimeout(context.WithoutCancel(ctx), accept.SendTimeout)
	defer cancel()
	if err := e.Engine.Recur.PromoteLater(within, k, e.Read.Now()); err != nil {
		e.warn(ctx, "making a schedule's near jobs was left to the sweeper", k, err)
	}
}

// takeQuota returns the write that takes an amount from a tenant's quota; a negative amount gives back. If not enough
// is left, the transaction fails with a QuotaExceeded.
func (e *Editor) takeQuota(t tenant.ID, amount int64) item.Write {
	w := item.Write{
		Ref: store.SchedulesQuota(t), Name: "quota.take", Add: map[string]int64{"runs_a_minute": amount},
	}
	if amount > 0 {
		w.Else = &QuotaExceeded{e.Quota, amount}
		left := int64(e.Quota) - amount
		w.When = []item.All{{{Attr: "runs_a_minute", Op: item.Le, Value: left}}}
		if left >= 0 {
			w.When = append(w.When, item.All{{Attr: "runs_a_minute", Op: item.Missing}})
		}
	}
	return w
}

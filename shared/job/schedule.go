package job

import (
	"strconv"
	"time"

	"punctual/shared/item"
	"punctual/shared/tenant"
)

// Reasons why a schedule's job did not run, on the row and in the ledger.
const (
	CodeOverlap    = "overlap"
	CodeLimitFull  = "limit_full" // a limit of work of its had no permit, and the limit does not let it wait
	CodeReplaced   = "replaced"   // a later job took its place under a limit of work
	CodeMaxRuns    = "max_runs"
	CodeNotUnique  = "not_unique" // another job held its unique key when it fell due
	CodeSuperseded = "superseded" // an occurrence with its unique key fell due, and replaces it
	CodeEdited     = "edited"
	CodeDeleted    = "deleted"
	CodePaused     = "paused"

	CodeUnknownDag = "unknown_dag"    // its dag, or that version of it, was deleted
	CodeParams     = "invalid_params" // its params do not fit the version of the dag that it would run
)

// GroupKey is a schedule's partition in the group index.
func GroupKey(t tenant.ID, schedule string) string { return string(t) + "#" + schedule }

const groupLayout = "2006-01-02T15:04:05.000Z"

// GroupSort is the position of a nominal time in it.
func GroupSort(nominal time.Time) string { return nominal.UTC().Format(groupLayout) }

// Adopt makes a schedule's job of an older epoch into one of the current epoch: made is the
// row as it would be put anew. It goes in one transaction with a Fence of attempt 1. The
// contents of made must be kept before, under the returned row's PayloadVer.
func Adopt(old, made Row, now time.Time) (after Row, w item.Write, send bool) {
	after = made
	after.Key, after.Shard, after.Followed = old.Key, old.Shard, old.Followed
	after.Version, after.Paused = old.Version+1, old.Paused
	if after.PayloadIn != InRow {
		after.PayloadVer = ContentNumber(after.Version, strconv.FormatInt(made.PayloadVer, 10))
	}
	send = Route(&after, now)
	return after, change(WriteAdopt, old, after, from(WriteAdopt,
		item.Cond{Attr: "epoch", Op: item.Lt, Value: made.Epoch}, atVersion(old.Version), atAttempt(1),
		stopIs(NoStop))), send
}

// Skip ends a schedule's job that has not started ([HasStarted]) and is not to. It goes in one transaction with a Fence
// of attempt 1, by the claim that says so, and with a check of the schedule's epoch.
func Skip(r Row, reason Reason, now time.Time) (Row, item.Write) {
	after := r
	after.Reason = reason
	finish(&after, Skipped, now)
	return after, change(WriteSkip, r, after,
		from(WriteSkip, atAttempt(1), epochAsRead(r), stopIs(NoStop), followedAsRead(r)))
}

// epochAsRead: a job that a person asked for has no epoch.
func epochAsRead(r Row) item.Cond {
	if r.Epoch == 0 {
		return item.Cond{Attr: "epoch", Op: item.Missing}
	}
	return item.Cond{Attr: "epoch", Op: item.Eq, Value: r.Epoch}
}

// BeginRun notes that the run of a row has begun; it goes in one transaction with the run. From here on the
// run brings the row to its end, so it has no wake-up of its own.
func BeginRun(r Row, now time.Time) (Row, item.Write) {
	after := r
	after.Status, after.WakeAt, after.Waiting, after.StartedAt = Blocked, time.Time{}, "", now
	after.Near, after.Parked, after.QueuedBehind, after.WaitsLimit, after.Postponed = false, false, false, 0, 0
	wanted := r.DueAt
	if wanted.Before(r.CreatedAt) {
		wanted = r.CreatedAt
	}
	if after.StartedAt.Before(wanted) { // its nodes wait until then
		after.StartedAt = wanted
	}
	after.LatenessMS = after.StartedAt.Sub(wanted).Milliseconds()
	return after, change(WriteBeginRun, r, after,
		from(WriteBeginRun, atVersion(r.Version), atAttempt(r.Attempt), epochAsRead(r), stopIs(NoStop)))
}

// CloseRun ends a row as its run has ended: SUCCEEDED, DEAD or CANCELLED. A dead one has no letter: the
// nodes that died have theirs.
func CloseRun(r Row, s Status, why Reason, now time.Time) (Row, item.Write) {
	after := r
	after.Reason = why
	finish(&after, s, now)
	return after, change(WriteCloseRun, r, after, from(WriteCloseRun))
}

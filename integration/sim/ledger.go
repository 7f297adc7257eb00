package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	graphs "punctual/shared/run"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// ledger sees every row and claim that is written to the table, in the order of the writes, and
// verifies each write at once.
type ledger struct {
	store.Table
	w *World

	mu          sync.Mutex
	items       map[item.Ref]item.Item // jobs and claims as they are now
	rows        map[job.Key]job.Row    // without rows that were deleted
	claims      map[job.Key]job.Claim
	order       []job.Key // of rows, in order of creation
	slices      map[string]bool
	lives       map[schedule.Key]*life
	revisions   map[graphs.Key][]revision
	overwritten map[item.Ref]bool     // items that a story wrote and that may be unreadable
	overs       map[job.Key]time.Time // when rows became final
	// Jobs that were claimed only with a stop on the row, or over a fence: the worker reads the
	// stop.
	stopped map[job.Key]bool
	// Jobs whose owner was lost: it may have begun the work, so the product takes the job as one that has started.
	lost map[job.Key]bool
}

func newLedger(w *World, t *memory.Table) *ledger {
	return &ledger{
		Table:       t,
		w:           w,
		items:       map[item.Ref]item.Item{},
		rows:        map[job.Key]job.Row{},
		claims:      map[job.Key]job.Claim{},
		slices:      map[string]bool{},
		lives:       map[schedule.Key]*life{},
		lost:        map[job.Key]bool{},
		revisions:   map[graphs.Key][]revision{},
		overwritten: map[item.Ref]bool{},
		overs:       map[job.Key]time.Time{},
		stopped:     map[job.Key]bool{},
	}
}

func (l *ledger) Write(ctx context.Context, w item.Write) (item.Item, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, err := l.Table.Write(ctx, w)
	if err == nil {
		l.see(w, i.Clone())
		l.seeKeyOf(w)
	}
	return i, err
}

func (l *ledger) Commit(ctx context.Context, writes ...item.Write) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.Table.Commit(ctx, writes...)
	if err != nil {
		return err
	}
	for _, claims := range []bool{true, false} { // claims first: a row is verified with its claim
		for _, w := range writes {
			if (w.Table == contract.Claims) != claims {
				continue
			}
			i, err := l.Table.Get(context.Background(), w.Ref)
			if err != nil {
				return fmt.Errorf("looking at what was committed: %w", err)
			}
			l.see(w, i)
		}
	}
	for _, w := range writes {
		l.seeKeyOf(w)
	}
	return nil
}

// seeKeyOf verifies the unique key of a row that was written.
func (l *ledger) seeKeyOf(w item.Write) {
	if k, err := job.KeyOf(l.items[w.Ref]); err == nil && w.Table == contract.Jobs {
		l.seeKey(k.Tenant, l.rows[k].Unique.Key)
	}
}

// row returns a job's row as it is now; false if there is none.
func (l *ledger) row(k job.Key) (job.Row, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.rows[k]
	return r, ok
}

func (l *ledger) claim(k job.Key) job.Claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.claims[k]
}

// all returns every row, in order of creation.
func (l *ledger) all() []job.Row {
	l.mu.Lock()
	defer l.mu.Unlock()
	rows := make([]job.Row, 0, len(l.rows))
	for _, k := range l.order {
		if r, ok := l.rows[k]; ok {
			rows = append(rows, r)
		}
	}
	return rows
}

// see verifies one write that took effect. The lock is held.
func (l *ledger) see(w item.Write, next item.Item) {
	old := l.items[w.Ref]
	if l.overwritten[w.Ref] && !readable(w.Ref, next) {
		l.items[w.Ref] = next
		return
	}
	switch {
	case strings.HasPrefix(w.PK, "unique#"):
		l.items[w.Ref] = next
	case w.Table == contract.Claims && !isCounter(w.PK):
		l.items[w.Ref] = next
		l.seeClaim(w, old, next)
	case w.Check:
	case w.Table == contract.Runs && w.SK == "run" && !w.Delete:
		l.seeGraph(w, next)
	case w.Table == contract.Schedules && strings.HasPrefix(w.PK, "ledger#"):
		l.seeEntry(w, next)
	case w.Table == contract.Schedules && !strings.HasPrefix(w.PK, "payload#"):
		l.seeSchedule(w, next)
	case w.Table == contract.Jobs && !strings.HasPrefix(w.PK, "blob#") && !strings.HasPrefix(w.PK, "idem#"):
		l.items[w.Ref] = next
		l.seeRow(w, old, next)
	}
}

// distrust marks an item that may be unreadable from now on and be restored later.
func (l *ledger) distrust(ref item.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.overwritten[ref] = true
}

// distrusted reports whether a story wrote any item.
func (l *ledger) distrusted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.overwritten) > 0
}

// readable reports whether an item of a job or a schedule can be read.
func readable(ref item.Ref, i item.Item) bool {
	err := error(nil)
	switch ref.Table {
	case contract.Jobs:
		_, err = job.ParseRow(i)
	case contract.Schedules:
		_, err = schedule.Parse(i)
	case contract.Claims:
		_, err = job.ParseClaim(i)
	}
	return err == nil
}

// overAt returns when a job's row became final.
func (l *ledger) overAt(k job.Key) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, there := l.overs[k]
	return at, there
}

// isCounter reports whether the item under pk is no claim but a schedule's slot or its count of
// runs.
func isCounter(pk string) bool {
	kind, _, _ := strings.Cut(pk, "#")
	return kind == "slot" || kind == "runs" || kind == "run" || kind == "late"
}

func (l *ledger) seeRow(w item.Write, was, is item.Item) {
	id := job.ID(w.SK)
	bad := func(format string, args ...any) {
		l.w.violation("%s of %s: %s", w.Name, short(id), fmt.Sprintf(format, args...))
	}
	k, err := job.KeyOf(item.Item{contract.AttrPK: w.PK, contract.AttrJobID: w.SK})
	if err != nil {
		bad("its key %q cannot be read: %v", w.PK, err)
		return
	}
	at := slices.IndexFunc(job.Transitions, func(t job.Transition) bool { return t.Name == w.Name })
	// No transitions: an operator restores an item that was quarantined, and work that did not end in time is deferred.
	if at < 0 && !l.overwritten[w.Ref] && w.Name != store.WriteDueDeferFailed {
		bad("no transition has this name")
		return
	}
	var allowed job.Transition
	if at >= 0 {
		allowed = job.Transitions[at]
	}
	from, to := job.Status(was.Str("status")), job.Status(is.Str("status"))
	fits := from == to // for writes that are no transition
	if at >= 0 {
		fits = (was == nil) == (allowed.From == nil) && slices.Contains(allowed.To, to)
		fits = fits && (was == nil || slices.Contains(allowed.From, from))
	}
	if !fits {
		bad("it leads from %q to %q", from, to)
	}
	if n := is.Size(); n > contract.MaxRow {
		bad("the row has %d bytes", n)
	}
	if job.IsGone(is) {
		delete(l.rows, k)
		return
	}
	next, err := job.ParseRow(is)
	if err != nil {
		bad("the row cannot be read: %v", err)
		return
	}
	if s := is.Str(contract.AttrWakeSlice); s != "" {
		l.slices[s] = true
	}
	if next.ScheduleID != "" && (w.Name == job.WriteAccept || w.Name == job.WriteAdopt) {
		l.seeMade(w, next, bad)
	}
	if was == nil {
		l.order = append(l.order, k)
	}
	old := l.rows[k]
	l.rows[k] = next
	if next.Status.Final() && !old.Status.Final() {
		l.overs[k] = time.Now()
	}
	l.w.note(nil, fmt.Sprintf("%s %s: %s attempt %d version %d stop %q due %s wake %s pending %q parked %v",
		w.Name, short(id), next.Status, next.Attempt, next.Version, next.Stop, clockTime(next.DueAt),
		clockTime(next.WakeAt), next.PendingEffects, next.Parked))

	if at < 0 { // an item that was quarantined has no wake-up
		return
	}
	// An unfinished row, or one with pending effects, has exactly one wake-up, in the slice of its
	// time and ahead of the watermark.
	// A mapped node has none until it ends: its items and its run wake it. Neither has a row that represents a
	// run that has begun: the run has one.
	broughtOn := next.IsMapped() || next.StartsRun() && next.Status == job.Blocked
	needs := !next.Status.Final() && !broughtOn || next.PendingEffects != job.NoPendingEffects
	if needs == next.WakeAt.IsZero() {
		bad("status %s, pending effects %q, wake-up %s", next.Status, next.PendingEffects, next.WakeAt)
	}
	if is.Str(contract.AttrWakeSlice) != next.Slice() {
		bad("it lies in slice %q, not in %q", is.Str(contract.AttrWakeSlice), next.Slice())
	}
	if now := time.Now(); !next.WakeAt.IsZero() && !next.Parked && !next.WakeAt.Equal(old.WakeAt) &&
		next.WakeAt.Before(now.Add(-l.w.late)) {
		bad("the wake-up is written %s late", now.Sub(next.WakeAt))
	}
	if next.Status.Final() && next.Near {
		bad("a final row is near")
	}
	if was == nil {
		return
	}
	switch w.Name {
	case job.WriteBeginRun:
		l.seeBegun(old, bad)
	case job.WriteCloseRun:
		l.seeClosed(next, bad)
	}
	claim := l.claims[k]
	switch {
	case old.Status.Final() && next.Status != old.Status:
		bad("a final status was left: %s", old.Status)
	case next.Attempt < old.Attempt:
		bad("the attempt shrank from %d to %d", old.Attempt, next.Attempt)
	case next.Version < old.Version:
		bad("the version shrank from %d to %d", old.Version, next.Version)
	}
	switch w.Name {
	case job.WriteRetry, job.WriteSnooze:
		if next.Attempt != old.Attempt+1 {
			bad("from attempt %d to %d", old.Attempt, next.Attempt)
		}
	case job.WriteReschedule:
		if next.Version != old.Version+1 {
			bad("from version %d to %d", old.Version, next.Version)
		}
		if claim.Attempt > next.Attempt ||
			claim.Attempt == next.Attempt && (claim.Outcome != nil || !claim.LeaseUntil.Before(time.Unix(1, 0))) {
			bad("the claim of attempt %d was not fenced", claim.Attempt)
		}
	case job.WriteRelease, job.WriteEndBlocked:
		l.seeEvaluated(next, bad)
	default:
		if !next.DueAt.Equal(old.DueAt) {
			bad("the due time moved from %s to %s", old.DueAt, next.DueAt)
		}
		if next.Attempt != old.Attempt {
			bad("the attempt moved from %d to %d", old.Attempt, next.Attempt)
		}
	}
	// The row has the outcome of its claim; a stop becomes final only over a fence.
	outcome := job.OutcomeKind("")
	if claim.Attempt == old.Attempt && claim.Outcome != nil {
		outcome = claim.Outcome.Kind
	}
	want := map[string]job.OutcomeKind{job.WriteSucceed: job.OutcomeSucceeded, job.WriteRetry: job.OutcomeFailed,
		job.WriteSnooze: job.OutcomeSnoozed}[w.Name]
	switch {
	case want != "" && outcome != want:
		bad("the claim's outcome of attempt %d is %q", old.Attempt, outcome)
	case w.Name == job.WriteDie && outcome != job.OutcomeFailed && outcome != job.OutcomeSnoozed:
		bad("the claim's outcome of attempt %d is %q", old.Attempt, outcome)
	case w.Name == job.WriteFinishStop && outcome == job.OutcomeSucceeded:
		bad("attempt %d had succeeded", old.Attempt)
	case w.Name == job.WriteSkip && outcome != "":
		bad("attempt %d has ended: %s", old.Attempt, outcome)
	case (w.Name == job.WriteSkip || w.Name == job.WriteFinishStop) && outcome == "" && !l.stopped[k] &&
		(claim.Attempt != old.Attempt || claim.LeaseUntil.UnixMilli() != 0):
		bad("attempt %d was not fenced: the claim is of attempt %d, leased until %s", old.Attempt, claim.Attempt,
			claim.LeaseUntil)
	}
}

func (l *ledger) seeClaim(w item.Write, was, is item.Item) {
	owner, name, _ := strings.Cut(w.PK, "#")
	id := job.ID(name)
	k := job.Key{Tenant: tenant.ID(owner), ID: id}
	bad := func(format string, args ...any) {
		l.w.violation("%s of %s: %s", w.Name, short(id), fmt.Sprintf(format, args...))
	}
	next, err := job.ParseClaim(is)
	if err != nil {
		bad("the claim cannot be read: %v", err)
		return
	}
	old := l.claims[k]
	l.claims[k] = next
	if w.Name == job.WriteClaimNew || w.Name == job.WriteClaimTakeOver {
		l.stopped[k] = l.rows[k].Stop != job.NoStop
	}
	if next.Takeovers > 1 {
		l.lost[k] = true
	}
	outcome := ""
	if next.Outcome != nil {
		outcome = string(next.Outcome.Kind)
	}
	l.w.note(nil, fmt.Sprintf("%s %s: attempt %d token %d takeovers %d lease %s worker %s cancel %v outcome %q", w.Name,
		short(id), next.Attempt, next.Token, next.Takeovers, clockTime(next.LeaseUntil), next.Worker, next.Cancel,
		outcome))
	switch {
	case next.Attempt < old.Attempt:
		bad("the attempt shrank from %d to %d", old.Attempt, next.Attempt)
	case next.Token < old.Token:
		bad("the token shrank from %d to %d", old.Token, next.Token)
	case slices.Contains([]string{job.WriteClaimNew, job.WriteClaimTakeOver, job.WriteClaimFence}, w.Name) &&
		next.Token != old.Token+1:
		bad("the token went from %d to %d", old.Token, next.Token)
	case old.Outcome != nil && next.Attempt == old.Attempt && is.Str("outcome") != was.Str("outcome"):
		bad("the outcome %q of attempt %d was overturned by %q", was.Str("outcome"), old.Attempt, is.Str("outcome"))
	case w.Name == job.WriteClaimOutcome && next.Outcome != nil && next.Outcome.Worker != next.Worker &&
		(next.Outcome.Error == nil || next.Outcome.Error.Code != job.CodeWorkerLost):
		bad("%s recorded the outcome of what %s owns", next.Outcome.Worker, next.Worker)
	case next.Takeovers < 0:
		bad("%d owners", next.Takeovers)
	}
	if kept := next.LeaseUntil.Add(contract.ClaimKept).Unix(); is.Int(contract.AttrExpiresAt) < kept {
		bad("it is kept until %d, less than 30 days beyond its lease", is.Int(contract.AttrExpiresAt))
	}
}

func clockTime(t time.Time) string {
	if t.IsZero() || t.UnixMilli() == 0 {
		return "-"
	}
	return t.Format("15:04:05.000")
}

// lostOwner reports whether a worker was lost that owned the job.
func (w *World) lostOwner(k job.Key) bool {
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	return w.ledger.lost[k]
}

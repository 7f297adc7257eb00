package sim

import (
	"fmt"
	"slices"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/schedule"
)

// life is the history of one schedule, from the writes that changed it.
type life struct {
	now     schedule.Schedule
	epochs  []epoch                   // in order
	entries map[string]schedule.Entry // entries of its ledger, by key
	late    map[time.Time]bool        // times whose job was put by a plan from before the ledger had its entry
}

// recordedSince reports whether the ledger got an entry for a time of which a plan made then could not know.
func (l *life) recordedSince(at, then time.Time) bool {
	for _, e := range l.entries {
		if !at.Before(e.From) && !at.After(e.To) && e.At.After(then) {
			return true
		}
	}
	return false
}

// epoch is a schedule as left by one write that raised its epoch.
type epoch struct {
	schedule.Schedule
	what string    // the write's name
	at   time.Time // real time
	end  time.Time // the first nominal time that max_runs removed; zero: none
}

// forbids returns why a job may not start under this epoch, "" if it may. started: it has started before.
func (l *life) forbids(e epoch, r job.Row, started bool) string {
	switch {
	case e.Deleted():
		return "its schedule is deleted"
	case e.Paused != nil:
		return "its schedule is paused"
	case !started && r.Epoch < e.Epoch && !l.dueBefore(r):
		return fmt.Sprintf("it is of epoch %d, and the schedule at %d", r.Epoch, e.Epoch)
	}
	return ""
}

// dueBefore reports whether a job was due before the first change of its schedule since its epoch, which was no delete.
func (l *life) dueBefore(r job.Row) bool {
	for _, e := range l.epochs {
		if e.Epoch > r.Epoch {
			return !e.Deleted() && !r.DueAt.After(e.UpdatedAt)
		}
	}
	return false
}

// since returns the epochs that were in force at any time since at.
func (l *life) since(at time.Time) []epoch {
	n := len(l.epochs) - 1
	for n > 0 && l.epochs[n].at.After(at) {
		n--
	}
	return l.epochs[max(n, 0):]
}

// segment is a part of a life with one calendar: nominal times after from, up to and including to.
type segment struct {
	schedule.Schedule
	from, to time.Time // to is zero for the last segment
	end      time.Time // nominal times from here on were removed; zero: none
}

func (l *life) segments() (list []segment) {
	for _, e := range l.epochs {
		last := len(list) - 1
		switch e.what {
		case schedule.WriteCreate:
			list = append(list, segment{Schedule: e.Schedule, from: e.UpdatedAt, end: e.end})
			continue
		case schedule.WriteEdit:
			list[last].to = e.UpdatedAt
			list = append(list, segment{Schedule: e.Schedule, from: e.UpdatedAt, end: e.end})
			continue
		case schedule.WriteDelete:
			list[last].to = e.UpdatedAt
		}
		if end := list[last].end; !e.end.IsZero() && (end.IsZero() || e.end.Before(end)) {
			list[last].end = e.end
		}
	}
	return list
}

// mostTimes bounds the times of a segment: every calendar here ends.
const mostTimes = 10_000

// times returns the nominal times of a segment.
func (s segment) times() ([]calendar.Occurrence, error) {
	cal, err := s.Calendar()
	if err != nil {
		return nil, err
	}
	var list []calendar.Occurrence
	for at := s.from; len(list) < mostTimes; {
		o, ok := cal.Next(at)
		if !ok || !s.to.IsZero() && o.NominalAt.After(s.to) || !s.end.IsZero() && !o.NominalAt.Before(s.end) {
			return list, nil
		}
		list, at = append(list, o), o.NominalAt
	}
	return nil, fmt.Errorf("the calendar has no end")
}

// seeSchedule verifies one write of a schedule that took effect. The lock is held.
func (l *ledger) seeSchedule(w item.Write, is item.Item) {
	bad := func(format string, args ...any) {
		l.w.violation("%s of schedule %s/%s: %s", w.Name, w.PK, w.SK, fmt.Sprintf(format, args...))
	}
	next, err := schedule.Parse(is)
	if err != nil {
		bad("it cannot be read: %v", err)
		return
	}
	of := l.lives[next.Key]
	if of == nil {
		of = &life{entries: map[string]schedule.Entry{}, late: map[time.Time]bool{}}
		l.lives[next.Key] = of
	}
	old := of.now
	of.now = next
	l.w.note(nil, fmt.Sprintf("%s %s/%s: epoch %d next %s wake %s parked %v paused %v deleted %v", w.Name, next.Tenant,
		next.Name, next.Epoch, clockTime(next.Next), clockTime(next.WakeAt), next.Parked, next.Paused != nil,
		next.Deleted()))

	if is.Str(contract.AttrWakeSlice) != next.Slice() {
		bad("it lies in slice %q, not in %q", is.Str(contract.AttrWakeSlice), next.Slice())
	}
	if s := next.Slice(); s != "" {
		l.slices[s] = true
	}
	works := !next.Deleted() && next.Paused == nil && !next.Next.IsZero()
	if works && next.WakeAt.IsZero() {
		bad("it has a next time and no wake-up")
	}
	if next.Epoch != old.Epoch {
		if next.Epoch != old.Epoch+1 {
			bad("from epoch %d to %d", old.Epoch, next.Epoch)
		}
		of.epochs = append(of.epochs, epoch{Schedule: next, what: w.Name, at: time.Now()})
		return
	}
	if w.Name == schedule.WriteEnd {
		of.epochs[len(of.epochs)-1].end = old.Next
	} else if !next.Next.IsZero() && next.Next.Before(old.Next) || old.Next.IsZero() && !next.Next.IsZero() {
		bad("the next time went back from %s to %s", clockTime(old.Next), clockTime(next.Next))
	}
}

// seeEntry verifies an entry of a schedule's ledger. The lock is held.
func (l *ledger) seeEntry(w item.Write, is item.Item) {
	for k, of := range l.lives {
		if k.LedgerKey() != w.PK {
			continue
		}
		e, err := schedule.ParseEntry(k, is)
		if err != nil {
			l.w.violation("%s: %v", w.Name, err)
			return
		}
		of.entries[w.SK] = e
		l.w.note(nil, fmt.Sprintf("%s %s/%s: %s to %s, %d %s (%s) at epoch %d", w.Name, k.Tenant, k.Name,
			clockTime(e.From), clockTime(e.To), e.Count, e.Outcome, e.Reason, e.Epoch))
		return
	}
	l.w.violation("%s: there is no schedule whose ledger is %q", w.Name, w.PK)
}

// seeMade verifies a job that a schedule has made, or taken over from an older epoch. The lock is
// held.
func (l *ledger) seeMade(w item.Write, r job.Row, bad func(string, ...any)) {
	k := schedule.Key{Tenant: r.Tenant, Name: r.ScheduleID}
	of := l.lives[k]
	if of == nil {
		bad("there is no schedule %q", r.ScheduleID)
		return
	}
	if r.ID != k.JobID(r.NominalAt) {
		bad("it has not the id of a job of %s", r.NominalAt)
	}
	at := slices.IndexFunc(of.epochs, func(e epoch) bool { return e.Epoch == r.Epoch })
	if at < 0 {
		bad("its schedule has never been at epoch %d", r.Epoch)
		return
	}
	e := of.epochs[at]
	if at+1 < len(of.epochs) {
		if over := time.Since(of.epochs[at+1].at); over > l.w.late {
			bad("epoch %d has been over for %s", r.Epoch, over)
		}
	}
	if w.Name == job.WriteAccept { // its promoter may have stood still since it planned
		of.late[r.NominalAt] = of.recordedSince(r.NominalAt, r.CreatedAt.Add(-2*l.w.o.Skew))
	}
	cal, err := e.Calendar()
	if err != nil {
		bad("the calendar of epoch %d: %v", r.Epoch, err)
		return
	}
	if o, ok := cal.Next(r.NominalAt.Add(-time.Millisecond)); !ok || !o.NominalAt.Equal(r.NominalAt) ||
		!o.DueAt.Equal(r.DueAt) {
		bad("%s, due %s, is no time of its calendar at epoch %d", r.NominalAt, r.DueAt, r.Epoch)
	}
	if w.Name == job.WriteAccept && r.NominalAt.Before(e.CreatedAt) {
		bad("%s is before the schedule was made", r.NominalAt)
	}
}

// mayStart verifies that a schedule allows a job to start now. The lock of the history is held.
func (w *World) mayStart(r *run, row job.Row, bad func(string, ...any)) {
	k := schedule.Key{Tenant: row.Tenant, Name: row.ScheduleID}
	w.ledger.mu.Lock()
	of := w.ledger.lives[k]
	var stood []epoch
	lost := w.ledger.claims[row.Key]
	if of != nil {
		stood = of.since(r.from.Add(-contract.EffectiveAfter - decidedWithin))
	}
	w.ledger.mu.Unlock()
	if len(stood) == 0 {
		bad("there is no schedule %q", row.ScheduleID)
		return
	}
	why, started := "", job.HasStarted(row, job.Claim{Attempt: row.Attempt, Lost: lost.Lost})
	for _, e := range stood { // the worker may have read facts that old
		if why = of.forbids(e, row, started); why == "" {
			break
		}
	}
	if why != "" {
		bad("%s", why)
	}
	s := stood[len(stood)-1]
	if why, missed := s.For(row).Missed(row, nil, r.from.Add(-slack)); missed && !started && !w.everPaused() {
		bad("it is late, and %s", why.Message)
	}
	r.alone, r.counted = true, true
	for _, e := range stood { // it may have been admitted under any of them
		r.alone, r.counted = r.alone && e.For(row).Limited(), r.counted && mostRuns(e.Schedule) > 0
	}
	if row.Attempt > 1 {
		return
	}
	if s.For(row).Overlap == schedule.OverlapBufferAll && !started {
		w.startsInOrder(row, bad)
	}
	others := 0 // counted jobs, of those made since the schedule was created
	for other, runs := range w.history.of {
		if other.Tenant != row.Tenant || other == row.Key || len(runs) == 0 {
			continue
		}
		o, there := w.ledger.row(other)
		if !there || o.ScheduleID != row.ScheduleID || o.CreatedAt.Before(s.CreatedAt) {
			continue
		}
		if runs[0].counted {
			others++
		}
		if r.alone && runs[0].alone && !o.Status.Final() {
			bad("overlap is %s, and %s of %s is %s", s.Overlap, short(other.ID), clockTime(o.NominalAt), o.Status)
		}
	}
	if most := mostRuns(s.Schedule); r.counted && int64(others) >= most {
		bad("its schedule has run %d times, and max_runs is %d", others, most)
	}
}

// mostRuns is how often a schedule may run in total; 0 is no limit. Of a list of calendars each has its own, which the
// stories about them verify.
func mostRuns(s schedule.Schedule) int64 {
	if s.Specs != nil {
		return 0
	}
	return s.MaxRuns()[0]
}

// startsInOrder verifies that no job of an earlier time waits while one starts under buffer_all.
func (w *World) startsInOrder(row job.Row, bad func(string, ...any)) {
	for _, o := range w.ledger.all() {
		if o.Tenant != row.Tenant || o.ScheduleID != row.ScheduleID || o.Epoch != row.Epoch || !o.Status.Open() ||
			!o.NominalAt.Before(row.NominalAt) || o.CreatedAt.After(row.CreatedAt) || o.Stop != job.NoStop ||
			o.IsPaused() || len(w.history.of[o.Key]) > 0 {
			continue
		}
		bad("%s of the time before, %s, still waits", short(o.ID), clockTime(o.NominalAt))
	}
}

// decidedWithin bounds the time from reading the facts to the start that they allow.
const decidedWithin = 100 * time.Millisecond

// fate is what became of a nominal time.
type fate struct {
	calendar.Occurrence
	outcome, reason string
	row             job.Row // zero: no job
}

// fates returns what became of all nominal times of a schedule, and notes a violation for each
// without exactly one outcome.
func (w *World) fates(k schedule.Key) (list []fate) {
	w.ledger.mu.Lock()
	of := w.ledger.lives[k]
	w.ledger.mu.Unlock()
	if of == nil {
		w.violation("there is no schedule %s/%s", k.Tenant, k.Name)
		return nil
	}
	bad := func(at time.Time, format string, args ...any) {
		w.violation("%s of schedule %s/%s: %s", clockTime(at), k.Tenant, k.Name, fmt.Sprintf(format, args...))
	}
	jobs := map[time.Time]job.Row{}
	for _, r := range w.ledger.all() {
		if r.Tenant == k.Tenant && r.ScheduleID == k.Name && !r.NominalAt.IsZero() {
			if _, twice := jobs[r.NominalAt]; twice {
				bad(r.NominalAt, "it has two jobs")
			}
			jobs[r.NominalAt] = r
		}
	}
	covered := map[string]int{} // nominal times that each entry covers
	expected := map[time.Time]bool{}
	for _, seg := range of.segments() {
		times, err := seg.times()
		if err != nil {
			bad(seg.from, "%v", err)
		}
		for _, o := range times {
			at := o.NominalAt
			expected[at] = true
			f := fate{Occurrence: o}
			row, made := jobs[at]
			if made {
				f.row = row
				f.outcome, f.reason, _ = schedule.OfJob(row)
			}
			entries := 0
			for key, e := range of.entries {
				if at.Before(e.From) || at.After(e.To) {
					continue
				}
				covered[key]++
				entries++
				if !made {
					f.outcome, f.reason = e.Outcome, e.Reason
				}
			}
			switch {
			case made && entries == 1 && of.late[at]: // it was recorded before its promotion showed: the job counts
			case made && entries > 0:
				bad(at, "it has a job that is %s, and the ledger speaks of it %d times", row.Status, entries)
			case !made && entries != 1:
				bad(at, "it has no job, and the ledger speaks of it %d times", entries)
			}
			list = append(list, f)
		}
	}
	for key, e := range of.entries {
		if e.Count != covered[key] {
			bad(e.From, "the ledger counts %d times to %s as %s, and there are %d", e.Count, clockTime(e.To), e.Outcome,
				covered[key])
		}
	}
	for at, r := range jobs {
		// A clock that is ahead may have started it just before the write that removed its time. A worker that was lost
		// may have begun it, too: then it is not taken away any more.
		if !expected[at] && len(w.runs(r.Key)) > 0 && !w.startedInTime(of, r) && !w.lostOwner(r.Key) {
			bad(at, "it ran, and is no time of the schedule")
		}
	}
	return list
}

// startedInTime reports whether a job's first run began under an epoch that allowed it.
func (w *World) startedInTime(of *life, r job.Row) bool {
	first := w.runs(r.Key)[0]
	for _, e := range of.since(first.from.Add(-contract.EffectiveAfter - decidedWithin)) {
		if !e.at.After(first.from) && of.forbids(e, r, false) == "" {
			return true
		}
	}
	return false
}

// checkSchedules verifies what must hold of all schedules when they have settled.
func (w *World) checkSchedules() {
	for _, k := range w.ledger.schedules() {
		w.fates(k)
	}
}

// schedules returns the keys of all schedules that ever existed, by name.
func (l *ledger) schedules() []schedule.Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys []schedule.Key
	for k := range l.lives {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b schedule.Key) int {
		if a.ID() < b.ID() {
			return -1
		}
		return 1
	})
	return keys
}

// epochsOf returns all epochs of a schedule.
func (l *ledger) epochsOf(k schedule.Key) []epoch {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lives[k].epochs)
}

// paused reports whether a schedule is paused.
func (l *ledger) paused(k schedule.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lives[k].now.Paused != nil
}

// unfinished names a schedule that still makes jobs, "" if there is none.
func (l *ledger) unfinished() string {
	for _, k := range l.schedules() {
		l.mu.Lock()
		s := l.lives[k].now
		l.mu.Unlock()
		if !s.Deleted() && (s.Paused != nil || !s.Next.IsZero()) {
			return fmt.Sprintf("schedule %s/%s goes on at %s (paused: %v)", k.Tenant, k.Name, s.Next, s.Paused != nil)
		}
	}
	return ""
}

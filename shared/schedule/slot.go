package schedule

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
)

// Slot says which of a schedule's jobs runs, where only one may, and which is next. A holder that
// is final holds nothing, and a job that holds does not wait any more.
type Slot struct {
	Holder, Waiting job.ID // "" for none
}

// Limited reports whether runs of the schedule may not overlap.
func (s Schedule) Limited() bool { return s.Overlap != "" && s.Overlap != OverlapAllow }

// Obeys reports whether a job that a person asked for obeys the overlap policy of its schedule.
func Obeys(r job.Row) bool { return r.ManualOf != "" && r.Rule != "" }

// KeyOfJob names the schedule of a job, also of one that a person asked for.
func KeyOfJob(r job.Row) Key { return Key{Tenant: r.Tenant, Name: r.Schedule()} }

// maxAhead bounds the nominal times that Ahead returns.
const maxAhead = 500

// Ahead returns, under buffer_all, the nominal times between the job that held the slot last and at, the earliest
// first: a job of one of them that is open goes first. It is bounded, and none for any other policy.
func (s Schedule) Ahead(slot Slot, at time.Time) (list []time.Time) {
	cal, err := s.Calendar()
	if err != nil || s.Overlap != OverlapBufferAll {
		return nil
	}
	from := s.CreatedAt
	if slot.Holder != "" {
		from = slot.Holder.At() // of a time's job the id has the time
	}
	if oldest := at.Add(-LedgerKept); from.Before(oldest) {
		from = oldest
	}
	// Otherwise a job of the calendar of now has had its turn after them.
	if !at.After(s.EditedAt) || !from.After(s.EditedAt) {
		for _, t := range s.Before {
			if t.Before(at) {
				list = append(list, t)
			}
		}
	}
	for o := range cal.After(from) {
		if len(list) >= maxAhead || !o.NominalAt.Before(at) {
			break
		}
		list = append(list, o.NominalAt)
	}
	slices.SortFunc(list, time.Time.Compare)
	return slices.CompactFunc(list, time.Time.Equal)
}

// ReadRows reads rows in the order asked; false means one that is absent or cannot be read.
type ReadRows = func(context.Context, []job.Key) ([]job.Row, []bool, error)

// FirstOpen returns, of the jobs of the times that Ahead names, the first one that is due, open and not paused itself;
// nil for none. The caller reads them.
func FirstOpen(ctx context.Context, read ReadRows, s Schedule, slot Slot, at, now time.Time) (*job.Row, error) {
	for row, err := range open(ctx, read, s, slot, at, now) {
		if err != nil || !row.IsPaused() { // no job waits for the turn of one that waits for a person
			return row, err
		}
	}
	return nil, nil
}

// OpenBefore returns, under buffer_all, the nominal times before now whose jobs are due and open. An edit keeps them in
// Schedule.Before: its calendar need not have them, and they still go first.
func OpenBefore(
	ctx context.Context, read ReadRows, s Schedule, slot Slot, now time.Time,
) (list []time.Time, err error) {
	for row, err := range open(ctx, read, s, slot, now.Add(time.Millisecond), now) {
		if err != nil {
			return nil, err
		}
		list = append(list, row.NominalAt)
	}
	return list, nil
}

// open reads the jobs of the times that Ahead names, and yields those that are due and open.
func open(
	ctx context.Context, read ReadRows, s Schedule, slot Slot, at, now time.Time,
) iter.Seq2[*job.Row, error] {
	return func(yield func(*job.Row, error) bool) {
		if at.IsZero() {
			return
		}
		for times := range slices.Chunk(s.Ahead(slot, at), aheadAtOnce) {
			keys := make([]job.Key, len(times))
			for n, t := range times {
				keys[n] = job.Key{Tenant: s.Tenant, ID: s.JobID(t)}
			}
			rows, there, err := read(ctx, keys)
			if err != nil {
				yield(nil, err)
				return
			}
			for n, row := range rows {
				if there[n] && row.Status.Open() && !row.DueAt.After(now) && !yield(&row, nil) {
					return
				}
			}
		}
	}
}

// aheadAtOnce is how many jobs of earlier times are read together.
const aheadAtOnce = 16

// SlotRef returns the key of the slot, in the claims table: workers write only claims.
func (k Key) SlotRef() item.Ref {
	return item.Ref{Table: contract.Claims, PK: "slot#" + k.ID()}
}

// ParseSlot decodes a slot's item; nil is the empty slot.
func ParseSlot(i item.Item) Slot {
	return Slot{Holder: job.ID(i.Str("holder")), Waiting: job.ID(i.Str("waiting"))}
}

// TakeSlot takes the slot if it is empty or held by me. Refused returns the holder.
func (k Key) TakeSlot(me job.ID) item.Write {
	return item.Write{Ref: k.SlotRef(), Name: WriteSlotTake, Set: map[string]any{"holder": string(me)},
		When: []item.All{
			{{Attr: "holder", Op: item.Missing}},
			{{Attr: "holder", Op: item.Eq, Value: string(me)}},
		}}
}

// TakeSlotFrom takes the slot from a holder that is final or deleted.
func (k Key) TakeSlotFrom(me, holder job.ID) item.Write {
	return item.Write{Ref: k.SlotRef(), Name: WriteSlotTakeFrom, Set: map[string]any{"holder": string(me)},
		When: []item.All{
			{{Attr: "holder", Op: item.Eq, Value: string(holder)}},
		}}
}

// Wait makes me the one job that waits behind the holder, if the slot is still as seen. Refused
// means that it has changed: decide once more.
func (k Key) Wait(me job.ID, seen Slot) item.Write {
	is := func(attr string, id job.ID) item.Cond {
		if id == "" {
			return item.Cond{Attr: attr, Op: item.Missing}
		}
		return item.Cond{Attr: attr, Op: item.Eq, Value: string(id)}
	}
	return item.Write{
		Ref: k.SlotRef(), Name: WriteSlotWait, Set: map[string]any{"waiting": string(me)},
		When: []item.All{{is("holder", seen.Holder), is("waiting", seen.Waiting)}},
	}
}

// OverlapAction says what happens to a job that is due while another of its schedule has not ended.
type OverlapAction string

// The actions of an overlap policy.
const (
	ActionSkip   OverlapAction = "skip"
	ActionWait   OverlapAction = "wait"         // in the line, behind the holder
	ActionCancel OverlapAction = "wait_and_end" // the same, and the holder is asked to stop
)

// OnOverlap applies the overlap policy. waiting is the job that waits already, nil for none; it is
// open and not the holder. displaced reports that me replaces it: it is skipped.
func (s Schedule) OnOverlap(me job.Row, waiting *job.Row) (action OverlapAction, displaced bool) {
	if waiting != nil && waiting.ID == me.ID {
		waiting = nil
	}
	switch s.Overlap {
	case OverlapBufferOne:
		if waiting != nil {
			return ActionSkip, false
		}
		return ActionWait, false
	case OverlapBufferAll:
		return ActionWait, false
	case OverlapCancelRunning:
		if waiting != nil && waiting.OccurredAt().After(me.OccurredAt()) {
			return ActionSkip, false
		}
		return ActionCancel, waiting != nil
	}
	return ActionSkip, false
}

// runsKey distinguishes the schedules that have had one name, one after the other.
func (s Schedule) runsKey() string {
	return s.ID() + "#" + strconv.FormatInt(s.CreatedAt.UnixMilli(), 10)
}

// RunsRef returns the key of the count of the runs of one calendar, by its position. The first one of a list continues
// the count of the only calendar that a schedule had.
func (s Schedule) RunsRef(position int) item.Ref {
	pk := "runs#" + s.runsKey()
	if position > 0 {
		pk += "#" + strconv.Itoa(position)
	}
	return item.Ref{Table: contract.Claims, PK: pk}
}

// RunRef returns the key that marks a job as counted.
func (s Schedule) RunRef(id job.ID) item.Ref {
	return item.Ref{Table: contract.Claims, PK: "run#" + s.runsKey() + "#" + string(id)}
}

// MaxRuns returns how often each calendar may run in total, by its position; 0 means no limit.
func (s Schedule) MaxRuns() []int64 {
	most := make([]int64, len(s.Calendars()))
	for n, c := range s.Calendars() {
		if c.MaxRuns != nil {
			most[n] = int64(*c.MaxRuns)
		}
	}
	return most
}

// CountsRuns reports whether one of the calendars may run only so often.
func (s Schedule) CountsRuns() bool {
	return slices.ContainsFunc(s.Calendars(), func(c calendar.Spec) bool { return c.MaxRuns != nil })
}

// naming reports of each calendar whether a run of that nominal time is one of its own. A time that no calendar has is
// that of a job from before an edit: of an only calendar it counts, and in a list for none.
func (s Schedule) naming(nominal time.Time) []bool {
	if s.Specs == nil {
		return []bool{true}
	}
	cal, err := s.Calendar()
	if err != nil {
		return make([]bool, len(s.Specs))
	}
	return cal.Naming(nominal)
}

// MayRun reports whether a time may run, where some calendars are full: have reached their max_runs. It may if a
// calendar that has it is not full, and if no calendar has it.
func (s Schedule) MayRun(nominal time.Time, full []bool) bool {
	names := s.naming(nominal)
	for n, named := range names {
		if named && !full[n] {
			return true
		}
	}
	return !slices.Contains(names, true)
}

// CountRun counts a job that is about to start, once, in one transaction, for each calendar that has its time, has a
// max_runs, and is not full. If the first write is refused, it was counted already and may start; if another one is,
// the calendars of FullBy are full. There are no writes where nothing is to be counted.
func (s Schedule) CountRun(r job.Row, full []bool) []item.Write {
	ref := s.RunRef(r.ID)
	writes := []item.Write{
		{Ref: ref, Name: WriteRunNote, When: []item.All{{{Attr: contract.AttrPK, Op: item.Missing}}}, Put: item.Item{
			contract.AttrPK: ref.PK, contract.AttrExpiresAt: r.DueAt.Add(contract.ClaimKept + LedgerKept).Unix(),
		}},
	}
	names := s.naming(r.NominalAt)
	for n, most := range s.MaxRuns() {
		if most == 0 || !names[n] || full[n] {
			continue
		}
		writes = append(writes, item.Write{
			Ref: s.RunsRef(n), Name: WriteRunCount, Add: map[string]int64{"runs": 1}, When: []item.All{
				{{Attr: "runs", Op: item.Missing}},
				{{Attr: "runs", Op: item.Lt, Value: most}},
			}})
	}
	if len(writes) == 1 {
		return nil
	}
	return writes
}

// FullBy returns the calendars that are full, after CountRun was refused: those of before, and those whose count was
// refused.
func (s Schedule) FullBy(full []bool, writes []item.Write, refused *item.Refused) []bool {
	full = slices.Clone(full)
	for n := range refused.Olds {
		for position := range full {
			full[position] = full[position] || writes[n].Ref == s.RunsRef(position)
		}
	}
	return full
}

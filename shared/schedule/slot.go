package schedule

import (
	"strconv"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
)

// Slot is who of a schedule's jobs runs, where only one may, and who waits to be the next. A
// holder that is final holds nothing, and one that waits has stopped waiting once it holds.
type Slot struct {
	Holder, Waiting job.ID // "" for none
}

// Limited says that runs of the schedule may not overlap.
func (s Schedule) Limited() bool { return s.Overlap != "" && s.Overlap != OverlapAllow }

// SlotRef is where the slot is: workers write only claims.
func (k Key) SlotRef() item.Ref {
	return item.Ref{Table: contract.Claims, PK: "slot#" + k.ID()}
}

// ParseSlot decodes a slot's item; nil is the empty slot.
func ParseSlot(i item.Item) Slot {
	return Slot{Holder: job.ID(i.Str("holder")), Waiting: job.ID(i.Str("waiting"))}
}

// TakeSlot takes the slot if it is empty or one's own. Refused shows who holds it.
func (k Key) TakeSlot(me job.ID) item.Write {
	return item.Write{Ref: k.SlotRef(), Name: "slot.take", Set: map[string]any{"holder": string(me)}, When: []item.All{
		{{Attr: "holder", Op: item.Missing}},
		{{Attr: "holder", Op: item.Eq, Value: string(me)}},
	}}
}

// TakeSlotFrom takes the slot from a holder that was seen to be final, or gone.
func (k Key) TakeSlotFrom(me, holder job.ID) item.Write {
	return item.Write{Ref: k.SlotRef(), Name: "slot.take_from", Set: map[string]any{"holder": string(me)},
		When: []item.All{
			{{Attr: "holder", Op: item.Eq, Value: string(holder)}},
		}}
}

// Wait takes the one place behind the holder, in the state in which the slot was read. Refused
// means that the slot has changed: decide again.
func (k Key) Wait(me job.ID, seen Slot) item.Write {
	is := func(attr string, id job.ID) item.Cond {
		if id == "" {
			return item.Cond{Attr: attr, Op: item.Missing}
		}
		return item.Cond{Attr: attr, Op: item.Eq, Value: string(id)}
	}
	return item.Write{
		Ref: k.SlotRef(), Name: "slot.wait", Set: map[string]any{"waiting": string(me)},
		When: []item.All{{is("holder", seen.Holder), is("waiting", seen.Waiting)}},
	}
}

// Turn is what becomes of a job that is due while another of its schedule is not over.
type Turn string

// The turns.
const (
	TurnSkip   Turn = "skip"
	TurnWait   Turn = "wait"         // in the line, behind the holder
	TurnCancel Turn = "wait_and_end" // the same, and the holder is asked to stop
)

// TurnOf decides it by policy. waiting is the job that waits already, nil for none; it must be
// open and not the holder. displaced says that me takes its place: it is to be skipped.
func (s Schedule) TurnOf(me job.Row, waiting *job.Row) (turn Turn, displaced bool) {
	if waiting != nil && waiting.ID == me.ID {
		waiting = nil
	}
	switch s.Overlap {
	case OverlapBufferOne:
		if waiting != nil {
			return TurnSkip, false
		}
		return TurnWait, false
	case OverlapBufferAll:
		return TurnWait, false
	case OverlapCancelRunning:
		if waiting != nil && waiting.NominalAt.After(me.NominalAt) {
			return TurnSkip, false
		}
		return TurnCancel, waiting != nil
	}
	return TurnSkip, false
}

// runsKey tells the schedules apart that bore one name, one after the other.
func (s Schedule) runsKey() string {
	return s.ID() + "#" + strconv.FormatInt(s.CreatedAt.UnixMilli(), 10)
}

// RunsRef is where it is counted how often the schedule has run.
func (s Schedule) RunsRef() item.Ref {
	return item.Ref{Table: contract.Claims, PK: "runs#" + s.runsKey()}
}

// RunRef is where it is noted that a job was counted.
func (s Schedule) RunRef(id job.ID) item.Ref {
	return item.Ref{Table: contract.Claims, PK: "run#" + s.runsKey() + "#" + string(id)}
}

// MaxRuns is how often the schedule may run in all; 0: as often as it likes.
func (s Schedule) MaxRuns() int64 {
	if s.Spec.MaxRuns == nil {
		return 0
	}
	return int64(*s.Spec.MaxRuns)
}

// CountRun counts a job that is about to start, once, in one transaction. Refused by the first
// write: it was counted already and may start; by the second only: the schedule has run as
// often as it may.
func (s Schedule) CountRun(r job.Row) []item.Write {
	ref := s.RunRef(r.ID)
	return []item.Write{
		{Ref: ref, Name: "run.note", When: []item.All{{{Attr: contract.AttrPK, Op: item.Missing}}}, Put: item.Item{
			contract.AttrPK: ref.PK, contract.AttrExpiresAt: r.DueAt.Add(contract.ClaimKept + LedgerKept).Unix(),
		}},
		{Ref: s.RunsRef(), Name: "run.count", Add: map[string]int64{"runs": 1}, When: []item.All{
			{{Attr: "runs", Op: item.Missing}},
			{{Attr: "runs", Op: item.Lt, Value: s.MaxRuns()}},
		}},
	}
}

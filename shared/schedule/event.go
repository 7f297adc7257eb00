package schedule

import (
	"encoding/json"
	"slices"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/text"
)

// Kind is a kind of event of a schedule.
type Kind string

// The kinds.
const (
	TimesMissed  Kind = "missed"  // the ledger records times as missed
	TimesSkipped Kind = "skipped" // the ledger records times as skipped
	WasPaused    Kind = "paused"
	HasEnded     Kind = "ended" // it has no more times
)

// AllKinds lists the kinds.
var AllKinds = []Kind{TimesMissed, TimesSkipped, WasPaused, HasEnded}

// Kinds are some kinds of events.
type Kinds []Kind

// Announcement is an event of a schedule that is still to be announced, with what it says of that moment.
type Announcement struct {
	Kind     Kind  `json:"kind"`
	At       int64 `json:"at"` // in milliseconds, as all instants here
	Sequence int64 `json:"seq"`
	// Of nominal times that did not become jobs: one entry of the ledger.
	First  int64      `json:"first,omitempty"`
	Last   int64      `json:"last,omitempty"`
	Count  int        `json:"count,omitempty"` // 0: too many to count
	Reason job.Reason `json:"reason,omitzero"`
	Pause  *Pause     `json:"pause,omitempty"`
}

// MostEvents is how many events may be pending on a schedule before they have to be announced first. One decision adds
// at most maxEntries to them.
const MostEvents = 100

// note notes an event that is to be announced, if events of its kind are. Its sequence is the time in milliseconds, or
// later than that of the event before, so that it also grows over a name that was deleted and forgotten.
func (s *Schedule) note(a Announcement, now time.Time) {
	if !slices.Contains(s.Announced, a.Kind) {
		return
	}
	s.Sequence = max(s.Sequence+1, now.UnixMilli())
	a.At, a.Sequence = now.UnixMilli(), s.Sequence
	s.Events = append(slices.Clone(s.Events), a)
}

// kinds are the events of the outcomes in the ledger. Times that an edit supersedes have none.
var kinds = map[string]Kind{Missed: TimesMissed, Skipped: TimesSkipped}

// noteLedger notes an event for each entry of the ledger.
func (s *Schedule) noteLedger(entries []Entry, now time.Time) {
	for _, e := range entries {
		s.note(Announcement{Kind: kinds[e.Outcome], First: e.From.UnixMilli(), Last: e.To.UnixMilli(), Count: e.Count,
			Reason: job.Reason{Code: e.Reason, Message: e.Why}}, now)
	}
}

// noteState notes that a change has paused the schedule, or has taken its last time.
func (s *Schedule) noteState(before Schedule, now time.Time) {
	if s.Paused != nil && before.Paused == nil {
		s.note(Announcement{Kind: WasPaused, Pause: s.Paused}, now)
	}
	if s.Next.IsZero() && !before.Next.IsZero() && !s.Deleted() {
		s.note(Announcement{Kind: HasEnded, Reason: job.Reason{Code: s.EndedBy}}, now)
	}
}

// atEvents is the condition that no event was noted since the schedule was read.
func (s Schedule) atEvents() item.Cond {
	if s.Sequence == 0 {
		return item.Cond{Attr: "event_seq", Op: item.Missing}
	}
	return item.Cond{Attr: "event_seq", Op: item.Eq, Value: s.Sequence}
}

// NotifyDone removes the events of the schedule, which were announced, and sets the wake-up that it has without them.
// Refused means that the schedule has changed: its wake-up has the rest announced.
func NotifyDone(s Schedule, now time.Time) (Schedule, item.Write) {
	after := s
	after.Events = nil
	if !s.Parked {
		after.setWakeUp(now)
	}
	is := after.Item()
	set := map[string]any{}
	for _, attr := range []string{"events", contract.AttrWakeSlice, contract.AttrWakeAt, "parked"} {
		set[attr] = is[attr]
	}
	return after, item.Write{Ref: s.Ref(), Name: WriteNotify, Set: set, When: []item.All{append(s.asRead(),
		item.Cond{Attr: "events", Op: item.Exists})}}
}

func (s *Schedule) encodeEvents() string {
	if len(s.Events) == 0 {
		return ""
	}
	return string(text.MustJSON(s.Events))
}

func (s *Schedule) decodeEvents(t string) error {
	s.Events = nil
	if t == "" {
		return nil
	}
	return json.Unmarshal([]byte(t), &s.Events)
}

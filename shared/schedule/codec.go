package schedule

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// body holds what only the user's own writes change.
type body struct {
	Spec       calendar.Spec       `json:"calendar"`
	Exclusions calendar.Exclusions `json:"exclusions,omitempty"`
	Template   Template            `json:"job"`
	Overlap    Overlap             `json:"overlap,omitempty"`
	CatchUp    CatchUp             `json:"catch_up"`
	PauseAfter int                 `json:"pause_after_failures,omitempty"`
}

// attributes lists every attribute of an item, so that a write can remove absent ones.
var attributes = []string{
	"epoch", "created_at", "updated_at", "raised", "before", "body", "next", "seen", "fresh", "edited_at", "rules",
	"shard",
	contract.AttrWakeSlice, contract.AttrWakeAt,
	"parked", "paused", "held", "ended_by", "deleted_at", "failures", "last_dead", "set_aside", contract.AttrExpiresAt,
}

// TombstoneKept is how long a deleted name keeps its epoch: longer than any row of it exists.
const TombstoneKept = 2 * contract.DeadKept

// Item encodes the schedule. Absent values are absent attributes.
func (s Schedule) Item() item.Item {
	b := text.MustJSON(body{s.Spec, s.Exclusions, s.Template, s.Overlap, s.CatchUp, s.PauseAfter})
	ref := s.Ref()
	i := item.Item{
		contract.AttrPK: ref.PK, contract.AttrSK: ref.SK, "schema_v": int64(1),
		"epoch": s.Epoch, "created_at": s.CreatedAt.UnixMilli(), "updated_at": s.UpdatedAt.UnixMilli(),
		"body": string(b),
	}
	str := func(name, v string) {
		if v != "" {
			i[name] = v
		}
	}
	num := func(name string, v int64) {
		if v != 0 {
			i[name] = v
		}
	}
	at := func(name string, t time.Time) {
		if !t.IsZero() {
			i[name] = t.UnixMilli()
		}
	}
	str("raised", encodeTimes(s.Raised))
	str("before", encodeTimes(s.Before))
	at("next", s.Next)
	at("seen", s.Seen)
	at("edited_at", s.Edited)
	at("fresh", s.AdoptThrough)
	str("rules", s.Rules)
	num("shard", int64(s.Shard))
	str(contract.AttrWakeSlice, s.Slice())
	at(contract.AttrWakeAt, s.WakeAt)
	if s.Parked {
		str("parked", "1")
	}
	if s.Paused != nil {
		str("paused", string(text.MustJSON(s.Paused)))
	}
	if s.Held != nil {
		str("held", string(text.MustJSON(s.Held)))
	}
	str("ended_by", s.EndedBy)
	at("deleted_at", s.DeletedAt)
	num("failures", s.Failures)
	str("last_dead", string(s.LastDead))
	if s.Deleted() {
		i[contract.AttrExpiresAt] = s.DeletedAt.Add(TombstoneKept).Unix()
	}
	return i
}

// KeyOf returns the key from an item's or an index entry's attributes.
func KeyOf(i item.Item) (Key, error) {
	t, err := tenant.Parse(i.Str(contract.AttrPK))
	if err != nil || i.Str(contract.AttrSK) == "" {
		return Key{}, fault.New(fault.Undecodable, nil, "reading the key of a schedule")
	}
	return Key{t, i.Str(contract.AttrSK)}, nil
}

// Parse decodes an item of Item. An item that this code cannot read is a fault of kind Undecodable;
// the caller reports it, quarantines it and continues with the rest. Calendar reports whether the
// calendar can be read.
func Parse(i item.Item) (Schedule, error) {
	k, err := KeyOf(i)
	if err != nil {
		return Schedule{}, err
	}
	bad := func(what string) (Schedule, error) {
		return Schedule{Key: k}, fault.New(fault.Undecodable, nil, "reading schedule %q: %s", k.Name, what)
	}
	if i.Int("schema_v") != 1 {
		return bad("schema_v is not 1")
	}
	for _, name := range []string{"epoch", "created_at", "updated_at"} {
		if n, ok := i[name].(int64); !ok || n < 1 {
			return bad(name + " is not a number")
		}
	}
	for _, name := range []string{"next", "seen", "fresh", "edited_at", contract.AttrWakeAt, "deleted_at", "failures"} {
		if v, there := i[name]; there {
			if _, ok := v.(int64); !ok {
				return bad(name + " is not a number")
			}
		}
	}
	var b body
	if err := json.Unmarshal([]byte(i.Str("body")), &b); err != nil {
		return bad("the body is not JSON of a schedule")
	}
	s := Schedule{
		Key: k, Epoch: i.Int("epoch"), CreatedAt: i.Time("created_at"), UpdatedAt: i.Time("updated_at"),
		Spec: b.Spec, Exclusions: b.Exclusions, Template: b.Template, Overlap: b.Overlap, CatchUp: b.CatchUp,
		PauseAfter: b.PauseAfter,
		Next:       i.Time("next"), Seen: i.Time("seen"), AdoptThrough: i.Time("fresh"), Edited: i.Time("edited_at"),
		Rules: i.Str("rules"), Shard: int(i.Int("shard")),
		WakeAt: i.Time(contract.AttrWakeAt), Parked: i.Str("parked") != "", EndedBy: i.Str("ended_by"),
		DeletedAt: i.Time("deleted_at"),
		Failures:  i.Int("failures"), LastDead: job.ID(i.Str("last_dead")),
	}
	var err2 error
	if s.Raised, err2 = decodeTimes(i.Str("raised")); err2 != nil {
		return bad("raised is not a list of times")
	}
	if s.Before, err2 = decodeTimes(i.Str("before")); err2 != nil {
		return bad("before is not a list of times")
	}
	if text := i.Str("paused"); text != "" {
		s.Paused = new(Pause)
		if err := json.Unmarshal([]byte(text), s.Paused); err != nil {
			return bad("paused is not a pause")
		}
	}
	if text := i.Str("held"); text != "" {
		s.Held = new(Stretch)
		if err := json.Unmarshal([]byte(text), s.Held); err != nil {
			return bad("held is not a stretch")
		}
	}
	return s, nil
}

// encodeTimes writes times as milliseconds, separated by commas; "" for none.
func encodeTimes(times []time.Time) string {
	b := make([]byte, 0, 14*len(times))
	for n, t := range times {
		if n > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, t.UnixMilli(), 10)
	}
	return string(b)
}

func decodeTimes(s string) (times []time.Time, err error) {
	if s == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return nil, err
		}
		times = append(times, time.UnixMilli(n).UTC())
	}
	return times, nil
}

// PayloadHashRef returns the key of a payload that is not in the template: one item per content and
// write, so that two concurrent writes cannot mix up their payloads.
func (k Key) PayloadHashRef(hash string) item.Ref {
	return item.Ref{Table: contract.Schedules, PK: "payload#" + k.ID(), SK: hash}
}

// PayloadBlob returns the object name of a payload that is larger than an item.
func (k Key) PayloadBlob(hash string) string {
	return contract.ScheduleBlobs + string(k.Tenant) + "/" + k.Name + "/" + hash
}

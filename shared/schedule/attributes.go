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
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// attributes states each attribute of a schedule once: its name, and how it is written and read. A name that differs
// from the field's is that of an older version, whose schedules are still read.
func (s *Schedule) attributes(c *item.Codec) {
	if !c.Reading() {
		s.writeComputed(c)
	}
	raised, before := (*instants)(&s.Raised), (*instants)(&s.Before)
	c.Number("epoch", &s.Epoch)
	c.Instant("created_at", &s.CreatedAt)
	c.Instant("updated_at", &s.UpdatedAt)
	c.Coded("raised", raised.encode, raised.decode)
	c.Coded("before", before.encode, before.decode)
	c.Coded("body", s.encodeBody, s.decodeBody)
	c.Instant("next", &s.Next)
	c.Instant("seen", &s.Seen)
	c.Instant("fresh", &s.AdoptThrough)
	c.Instant("edited_at", &s.EditedAt)
	c.Text("rules", &s.Rules)
	c.Int("shard", &s.Shard)
	c.Instant(contract.AttrWakeAt, &s.WakeAt)
	c.Flag("parked", &s.Parked)
	c.Coded("paused", func() string { return encodeJSON(s.Paused) },
		func(t string) error { return decodeJSON(t, &s.Paused) })
	c.Coded("held", func() string { return encodeJSON(s.Held) },
		func(t string) error { return decodeJSON(t, &s.Held) })
	c.Text("ended_by", &s.EndedBy)
	c.Coded("spent", func() string { return encodePositions(s.Spent) },
		func(t string) (err error) { s.Spent, err = decodePositions(t); return err })
	c.Instant("deleted_at", &s.DeletedAt)
	c.Number("failures", &s.Failures)
	c.Text("last_dead", (*string)(&s.LastDead))
	c.Coded("events", s.encodeEvents, s.decodeEvents)
	c.Number("event_seq", &s.Sequence)
}

// writeComputed writes what is computed from other attributes: keys of the table and of its index, and when the table
// may forget a deleted schedule.
func (s *Schedule) writeComputed(c *item.Codec) {
	ref := s.Ref()
	c.Write(contract.AttrPK, ref.PK)
	c.Write(contract.AttrSK, ref.SK)
	c.WriteNumber("schema_v", 1)
	c.Write(contract.AttrWakeSlice, s.Slice())
	expiresAt := int64(0)
	if s.Deleted() {
		expiresAt = s.DeletedAt.Add(TombstoneKept).Unix()
	}
	c.WriteNumber(contract.AttrExpiresAt, expiresAt)
}

// TombstoneKept is how long a deleted name keeps its epoch: longer than any row of it exists.
const TombstoneKept = 2 * contract.DeadKept

// body holds what only the user's own writes change.
type body struct {
	Spec       calendar.Spec       `json:"calendar,omitzero"`
	Specs      []calendar.Spec     `json:"calendars,omitempty"`
	Exclusions calendar.Exclusions `json:"exclusions,omitempty"`
	Template   Template            `json:"job"`
	Overlap    Overlap             `json:"overlap,omitempty"`
	CatchUp    CatchUp             `json:"catch_up"`
	PauseAfter int                 `json:"pause_after_failures,omitempty"`
}

func (s *Schedule) encodeBody() string {
	return string(text.MustJSON(body{s.Spec, s.Specs, s.Exclusions, s.Template, s.Overlap, s.CatchUp, s.PauseAfter}))
}

func (s *Schedule) decodeBody(t string) error {
	var b body
	err := json.Unmarshal([]byte(t), &b)
	s.Spec, s.Specs, s.Exclusions, s.Template = b.Spec, b.Specs, b.Exclusions, b.Template
	s.Overlap, s.CatchUp, s.PauseAfter = b.Overlap, b.CatchUp, b.PauseAfter
	return err
}

// encodeJSON is "" for nil.
func encodeJSON[T any](v *T) string {
	if v == nil {
		return ""
	}
	return string(text.MustJSON(v))
}

func decodeJSON[T any](t string, v **T) error {
	*v = nil
	if t == "" {
		return nil
	}
	*v = new(T)
	return json.Unmarshal([]byte(t), *v)
}

// space is for the attributes of one schedule, of which there are fewer. It stays on its user's stack.
type space [32]item.Attribute

func (s *Schedule) encode(to *space) []item.Attribute {
	c := item.Writer(to[:0])
	s.attributes(&c)
	return c.Attributes()
}

// usualAttrs is how many attributes a schedule has that is created.
const usualAttrs = 16

// Item encodes the schedule. Absent values are absent attributes.
func (s Schedule) Item() item.Item {
	var to space
	return item.Encoded(s.encode(&to), usualAttrs)
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
	s := Schedule{Key: k}
	c := item.Reader(i)
	s.attributes(&c)
	if name := c.Unreadable(); name != "" {
		return bad(name + " cannot be read")
	}
	return s, nil
}

// instants is a list of times as milliseconds, separated by commas; "" for none.
type instants []time.Time

func (l *instants) encode() string {
	b := make([]byte, 0, 14*len(*l))
	for n, t := range *l {
		if n > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, t.UnixMilli(), 10)
	}
	return string(b)
}

func (l *instants) decode(s string) error {
	*l = nil
	if s == "" {
		return nil
	}
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return err
		}
		*l = append(*l, time.UnixMilli(n).UTC())
	}
	return nil
}

// encodePositions writes the positions that are true, separated by commas; "" for none.
func encodePositions(list []bool) string {
	var b []byte
	for n, is := range list {
		if is && len(b) > 0 {
			b = append(b, ',')
		}
		if is {
			b = strconv.AppendInt(b, int64(n), 10)
		}
	}
	return string(b)
}

// decodePositions reads a text of encodePositions.
func decodePositions(text string) (list []bool, err error) {
	if text == "" {
		return nil, nil
	}
	list = make([]bool, calendar.MaxCalendars)
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || n >= len(list) {
			return nil, fault.New(fault.Undecodable, err, "reading the position %q of a calendar", part)
		}
		list[n] = true
	}
	return list, nil
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

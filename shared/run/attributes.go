package run

import (
	"encoding/json"
	"strings"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// attributes states each attribute of a run once: its name, and how it is written and read. A name that differs from
// the field's is that of an older version, whose runs are still read.
func (r *Run) attributes(c *item.Codec) {
	if !c.Reading() {
		r.writeComputed(c)
	}
	c.Text("dag", &r.Dag)
	c.Number("dag_version", &r.DagVersion)
	c.Text("definition", &r.Definition)
	c.Text("status", (*string)(&r.Status))
	c.Text("reason", &r.Reason.Code)
	c.Text("reason_text", &r.Reason.Message)
	c.Text("stop", (*string)(&r.Stop))
	c.Flag("stop_all", &r.StopAll)
	c.Instant("stopped_at", &r.StoppedAt)
	c.Flag("paused", &r.Paused)
	c.Flag("holds", &r.Holds)
	c.Flag("placed", &r.InBuckets)
	c.Flag("tagged", &r.Tagged)
	c.Number("epoch", &r.Epoch)
	c.Coded("act", r.encodeOperation, r.decodeOperation)
	c.Coded("nodes", r.encodeNodes, r.decodeNodes)
	c.Instant("created_at", &r.CreatedAt)
	c.Instant("due_at", &r.DueAt)
	c.Instant("nominal_at", &r.NominalAt)
	c.Instant("expiry_at", &r.ExpiryAt)
	c.Instant("retried_at", &r.RetriedAt)
	c.Instant("finished_at", &r.FinishedAt)
	c.Text("schedule", &r.Schedule)
	c.Text("backfill", (*string)(&r.Backfill))
	c.Flag("told", &r.Notified)
	c.Text("priority", (*string)(&r.Priority))
	c.Text("params", &r.Params)
	c.Int("shard", &r.Shard)
	c.Instant(contract.AttrWakeAt, &r.WakeAt)
	c.Number(contract.AttrTries, &r.Tries)
	c.Second(contract.AttrExpiresAt, &r.ExpiresAt)
	c.Instant("kept_until", &r.KeptUntil)
	c.Flag("lost", &r.Lost)
	c.Coded("events", r.encodeEvents, r.decodeEvents)
}

// writeComputed writes what is computed from other attributes: keys of the table and of its index, and what a
// condition compares.
func (r *Run) writeComputed(c *item.Codec) {
	ref := r.Ref()
	c.Write(contract.AttrPK, ref.PK)
	c.Write(contract.AttrSK, ref.SK)
	c.WriteNumber("schema_v", 1)
	c.Write(contract.AttrWakeSlice, r.Slice())
	operation := ""
	if r.Operation != nil {
		operation = r.Operation.ID
	}
	c.Write("act_id", operation)
}

func (r *Run) encodeOperation() string {
	if r.Operation == nil {
		return ""
	}
	return string(text.MustJSON(r.Operation))
}

func (r *Run) decodeOperation(s string) error {
	if s == "" {
		r.Operation = nil
		return nil
	}
	r.Operation = new(Operation)
	return json.Unmarshal([]byte(s), r.Operation)
}

func (r *Run) encodeEvents() string {
	if len(r.Events) == 0 {
		return ""
	}
	return string(text.MustJSON(r.Events))
}

func (r *Run) decodeEvents(s string) error {
	r.Events = nil
	if s == "" {
		return nil
	}
	return json.Unmarshal([]byte(s), &r.Events)
}

func (r *Run) encodeNodes() string {
	if len(r.Nodes) == 0 {
		return ""
	}
	return string(text.MustJSON(r.Nodes))
}

func (r *Run) decodeNodes(s string) error {
	if s == "" {
		return nil
	}
	var nodes map[string]Node
	err := json.Unmarshal([]byte(s), &nodes)
	r.Nodes = nodes
	return err
}

// space is for the attributes of one run, of which there are fewer. It stays on its user's stack.
type space [48]item.Attribute

func (r *Run) encode(to *space) []item.Attribute {
	c := item.Writer(to[:0])
	r.attributes(&c)
	return c.Attributes()
}

// usualAttrs is how many attributes a run has that is created.
const usualAttrs = 16

// Item encodes the run. Absent values are absent attributes.
func (r Run) Item() item.Item {
	var to space
	return item.Encoded(r.encode(&to), usualAttrs)
}

// KeyOf reads the key back from an item's or an index entry's attributes.
func KeyOf(i item.Item) (Key, error) {
	name, ulid, ok := strings.Cut(i.Str(contract.AttrPK), "#")
	of, err := tenant.Parse(name)
	id, err2 := job.ParseID(ulid)
	if !ok || err != nil || err2 != nil {
		return Key{}, fault.New(fault.Undecodable, nil, "reading the key of a run")
	}
	return Key{of, id}, nil
}

// Parse decodes what Item encoded. An item that this code cannot read is a fault.Undecodable.
func Parse(i item.Item) (Run, error) {
	k, err := KeyOf(i)
	if err != nil {
		return Run{}, err
	}
	bad := func(what string) (Run, error) {
		return Run{Key: k}, fault.New(fault.Undecodable, nil, "reading run %s: %s", k.ID, what)
	}
	if i.Int("schema_v") != 1 {
		return bad("schema_v is not 1")
	}
	for _, name := range []string{"epoch", "created_at", "due_at"} {
		if n, ok := i[name].(int64); !ok || n < 1 {
			return bad(name + " is not a number")
		}
	}
	r := Run{Key: k}
	c := item.Reader(i)
	r.attributes(&c)
	switch r.Status {
	case Building, Running, Held, Succeeded, Failed, Cancelled:
	default:
		return bad("status is unknown")
	}
	if name := c.Unreadable(); name != "" {
		return bad(name + " cannot be read")
	}
	return r, nil
}

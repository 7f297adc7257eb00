package job

import (
	"slices"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
)

// attributes states each attribute of a row once: its name, and how it is written and read. A name that differs from
// the field's is that of an older version, whose rows are still read.
func (r *Row) attributes(c *item.Codec) {
	if !c.Reading() {
		r.writeComputed(c)
	}
	r.stateAttributes(c)
	r.Settings.attributes(c)
	r.ScheduleRef.attributes(c)
	r.DagRef.attributes(c)
	r.NodeRef.attributes(c)
	r.WakeUp.attributes(c)
	r.contentAttributes(c)
}

// writeComputed writes what is computed from other attributes: keys of the table and of its indexes.
func (r *Row) writeComputed(c *item.Codec) {
	group, groupSort := "", ""
	if of := r.Schedule(); of != "" {
		group, groupSort = GroupKey(r.Tenant, of), GroupSort(r.OccurredAt())
	} else if r.Delivery() {
		group, groupSort = r.deliveryGroup()
	}
	deadShard := ""
	if !r.DeadAt.IsZero() {
		deadShard = DeadShard(r.Key)
	}
	c.Write(contract.AttrPK, r.partition())
	c.Write(contract.AttrJobID, string(r.ID))
	c.WriteNumber(contract.AttrSchema, 1)
	c.Write(contract.AttrGroup, group)
	c.Write(contract.AttrGroupSort, groupSort)
	c.Write(contract.AttrWakeSlice, r.Slice())
	c.Write(contract.AttrDeadShard, deadShard)
}

// stateAttributes: what has become of the job.
func (r *Row) stateAttributes(c *item.Codec) {
	c.Text("status", (*string)(&r.Status))
	c.Text("stop", (*string)(&r.Stop))
	c.Number("version", &r.Version)
	c.Number("attempt", &r.Attempt)
	c.Number("failures", &r.Failures)
	c.Instant("due_at", &r.DueAt)
	c.Instant("nominal_at", &r.NominalAt)
	c.Instant("created_at", &r.CreatedAt)
	c.Instant("expiry_at", &r.ExpiryAt)
	c.Text("owes", (*string)(&r.PendingEffects))
	c.Text("webhook", &r.Webhook)
	c.Text("parents", &r.Parents)
	c.Flag("followed", &r.Followed)
	c.Text("root", (*string)(&r.RootID))
	c.Text("redrive_of", (*string)(&r.RedriveOf))
	c.Text("redriven_by", (*string)(&r.RedrivenBy))
	c.Coded("attempts", r.encodeAttempts, r.decodeAttempts)
	c.Text("waiting", &r.Waiting)
	c.Coded("paused", r.Paused.encode, r.Paused.decode)
	c.Text("reason", &r.Reason.Code)
	c.Text("reason_text", &r.Reason.Message)
	c.Instant("started_at", &r.StartedAt)
	c.Instant("finished_at", &r.FinishedAt)
	c.Number("lateness", &r.LatenessMS)
	c.Instant("cancel_at", &r.CancelRequestedAt)
	c.Instant(contract.AttrDeadAt, &r.DeadAt)
	c.Instant("buried_at", &r.BuriedAt)
	c.Second(contract.AttrExpiresAt, &r.ExpiresAt)
}

func (s *Settings) attributes(c *item.Codec) {
	c.Text("task", &s.Task)
	c.Text("exec", &s.Executor)
	c.Text("pool", &s.Pool)
	c.Text("priority", (*string)(&s.Priority))
	c.Span("timeout", &s.Timeout)
	c.Span("start_within", &s.StartWithin)
	c.Span("expire_after", &s.ExpireAfter)
	c.Coded("retry", s.Retry.encode, s.Retry.decode)
	c.Text("limits", (*string)(&s.Limits))
	c.Text("unique", &s.Unique.Key)
	c.Text("unique_until", (*string)(&s.Unique.Until))
	c.Text("on_conflict", (*string)(&s.Unique.OnConflict))
	c.Number("max_result", &s.MaxResult)
	c.Flag("fail_large", &s.FailLarge)
}

func (s *ScheduleRef) attributes(c *item.Codec) {
	c.Text("schedule", &s.ScheduleID)
	c.Number("epoch", &s.Epoch)
	c.Text("rule", &s.Rule)
	c.Text("manual_of", &s.ManualOf)
	c.Text("backfill", (*string)(&s.Backfill))
}

func (d *DagRef) attributes(c *item.Codec) {
	c.Text("dag", &d.Dag)
	c.Number("dag_version", &d.DagVersion)
}

func (n *NodeRef) attributes(c *item.Codec) {
	c.Text("run", &n.RunID)
	c.Text("node", &n.Node)
	c.Number("gen", &n.Generation)
	c.Number("item_no", &n.ItemNo)
	c.Number("items", &n.Items)
	c.Number("slot", &n.Slot)
	c.Number("place", &n.Permit)
	c.Number("node_place", &n.NodePermit)
	c.Text("forced", (*string)(&n.Forced))
	c.Flag("always", &n.Always)
	c.Text("secrets", &n.DefinedSecrets)
}

func (w *WakeUp) attributes(c *item.Codec) {
	c.Int("shard", &w.Shard)
	c.Instant(contract.AttrWakeAt, &w.WakeAt)
	c.Flag("parked", &w.Parked)
	c.Flag("behind", &w.QueuedBehind)
	c.Number("waits_limit", &w.WaitsLimit)
	c.Flag(contract.AttrNear, &w.Near)
	c.Instant("ready_at", &w.ReadyAt)
	c.Number("postponed", &w.Postponed)
}

// contentAttributes: what the job holds, or where that is kept.
func (r *Row) contentAttributes(c *item.Codec) {
	c.Text(payloadName, &r.Payload)
	c.Text("payload_in", &r.PayloadIn)
	c.Number("payload_ver", &r.PayloadVer)
	c.Number("payload_size", &r.PayloadSize)
	c.Text("result", &r.Result)
	c.Text("result_in", &r.ResultIn)
	c.Text("result_ref", &r.ResultRef)
	c.Text("partial", (*string)(&r.Partial))
	c.Coded("tagged", r.Labelled.encode, r.Labelled.decode)
}

const payloadName = "payload"

// space is for the attributes of one row, of which there are fewer. It stays on its user's stack.
type space [96]item.Attribute

// encode lists the row's attributes. Rows are encoded several times for each job.
func (r *Row) encode(to *space) []item.Attribute {
	c := item.Writer(to[:0])
	r.attributes(&c)
	return c.Attributes()
}

// usualAttrs is how many attributes a row has that is accepted.
const usualAttrs = 24

// Item encodes the row. Absent values are absent attributes.
func (r Row) Item() item.Item {
	var to space
	return item.Encoded(r.encode(&to), usualAttrs)
}

// Size is what DynamoDB counts for the row, in bytes: what Item().Size() gives, without the item.
func (r *Row) Size() int {
	var to space
	return item.SizeOf(r.encode(&to))
}

// sizeWith is Size with that payload instead of the row's.
func (r *Row) sizeWith(payload []byte) int {
	n := r.Size()
	if r.Payload != "" {
		n -= len(payloadName) + len(r.Payload)
	}
	return n + len(payloadName) + len(payload)
}

// ParseRow decodes what Item encoded. An item that this code cannot read is a fault of kind
// Undecodable; the caller reports it, quarantines it and goes on with the rest.
func ParseRow(i item.Item) (Row, error) {
	bad := func(what string) (Row, error) {
		return Row{}, fault.New(fault.Undecodable, nil, "reading the row of job %q: %s", i.Str(contract.AttrJobID),
			what)
	}
	key, err := KeyOf(i)
	if err != nil {
		return Row{}, err
	}
	if v := i.Int(contract.AttrSchema); v != 1 {
		return bad("schema_v is not 1")
	}
	for _, name := range []string{"version", "attempt", "due_at", "created_at"} {
		if _, ok := i[name].(int64); !ok {
			return bad(name + " is not a number")
		}
	}
	r := Row{Key: key}
	c := item.Reader(i)
	r.attributes(&c)
	switch {
	case !slices.Contains(statuses, r.Status):
		return bad("status is unknown")
	case c.Unreadable() != "":
		return bad(c.Unreadable() + " cannot be read")
	}
	return r, nil
}

// statuses are those that a row can have.
var statuses = []Status{Blocked, Scheduled, Running, Succeeded, Dead, Cancelled, Skipped, Expired}

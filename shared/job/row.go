package job

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/text"
)

// Reason says why a job has its status.
type Reason struct {
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
}

// Attempt is one ended try at a job: one start, or one that was given up without.
type Attempt struct {
	Attempt    int64     `json:"attempt"`
	Start      int64     `json:"start,omitempty"` // counts the lost starts of an attempt, from 1; 0: its end
	Worker     string    `json:"worker,omitempty"`
	StartedAt  time.Time `json:"started_at,omitzero"` // zero: it never started (poison, unknown task)
	FinishedAt time.Time `json:"finished_at,omitzero"`
	LatenessMS int64     `json:"start_lateness_ms"` // from max(due, accepted) to the handler's start
	// succeeded, failed, snoozed; lost: started again within the attempt
	Outcome string  `json:"outcome"`
	Error   *Reason `json:"error,omitempty"`
}

// Where a payload or result is kept, when not in the row.
const (
	InRow  = ""     // Row.Payload or Row.Result holds it (or there is none)
	InItem = "item" // a sibling item
	InBlob = "blob" // an object of the blob store
)

// Keeping says how large a result may be. The zero Keeping is contract.MaxResult.
type Keeping struct {
	MaxResult int64 `json:"max_result,omitempty"` // bytes; 0: contract.MaxResult
	FailLarge bool  `json:"fail_large,omitempty"` // a larger one fails the attempt
}

// Row is the small mutable item of a job. Instants are UTC with milliseconds; zero means absent.
type Row struct {
	Key
	Status    Status
	Stop      Stop
	Version   int64 // from 1; grows with every edit
	Attempt   int64 // from 1; only ever grows
	Failures  int64 // attempts that count against the retry budget
	DueAt     time.Time
	NominalAt time.Time // of a schedule's job; zero for a one-off
	CreatedAt time.Time // accepted then
	Task      string
	Executor  string // one of executor.Names: what runs the task
	Pool      string
	Priority  Priority
	Timeout   time.Duration

	StartWithin time.Duration // 0: no limit
	ExpireAfter time.Duration // 0: no limit; counts from the first due time
	ExpiryAt    time.Time     // the instant that ExpireAfter means; zero: none
	Retry       RetryPolicy
	Keeping
	PendingEffects PendingEffects

	ScheduleID string // set together with Epoch
	Epoch      int64
	Rule       string // of the schedule when the job was made: written by package schedule; "" for none
	ManualOf   string // instead of ScheduleID: the schedule of which a caller asked for a run
	Dag        string // the dag of the run that the row represents; "" for a job
	DagVersion int64  // 0: the newest when the run begins
	RunID      string // set together with Node
	Node       string
	Parents    string // the jobs that it comes after, and its rule: JSON, written by package dag; "" for none
	Followed   bool   // other jobs come after it
	Generation int64  // of the node, from 1; 0 without a run
	ItemNo     int64  // of a mapped node's items, from 1; 0 for any other job
	Slot       int64  // in a run made before places lay in buckets: its slot of max_concurrency, from 1; 0 for none
	Permit     int64  // bucket of its place in its run's max_concurrency, from 1; 0 for none
	NodePermit int64  // bucket of its place in its node's max_parallel, from 1; 0 for none
	Items      int64  // how many items a mapped node's own row has; 0 for any other job
	Forced     Forced // how an operator ended the node

	RootID     ID // of the first job of a chain of redrives; "" when it is this one
	RedriveOf  ID
	RedrivenBy ID

	Shard        int       // of the due index; fixed when accepted
	WakeAt       time.Time // zero: no wake-up left
	Parked       bool      // held by a pause: the wake-up is in a parking place
	QueuedBehind bool      // parked in its schedule's line instead, behind a run that has not ended
	Near         bool      // the stream consumer must see this write
	ReadyAt      time.Time // when a pause or another run last let it go on; zero: nothing has held it
	Postponed    int64     // times in a row that the sweeper found it without being able to do more

	Payload     string // JSON, when PayloadIn is InRow; "" is no payload
	PayloadIn   string
	PayloadVer  int64 // number under which a sibling or blob payload was put: ContentNumber, or an older version's
	PayloadSize int64 // bytes
	// DefinedSecrets are the fields of a node's payload that name a secret, separated by spaces; see
	// [Row.MayResolve].
	DefinedSecrets string
	Result         string
	ResultIn       string
	ResultRef      string  // the object's, when ResultIn is InBlob
	Partial        Partial // why the result is not the value that the work returned
	Labelled

	Attempts   []Attempt // the newest contract.RowAttempts, oldest first
	Waiting    string    // "retry" or "snooze" while it waits for one
	Reason     Reason
	StartedAt  time.Time // of the newest attempt that started
	FinishedAt time.Time
	LatenessMS int64

	CancelRequestedAt time.Time
	DeadAt            time.Time
	BuriedAt          time.Time
	ExpiresAt         time.Time // when the table may forget the row
}

// allSecrets is DefinedSecrets of a payload that a user wrote in place of the rendered one.
const allSecrets = "*"

// MayResolve reports whether a field of the payload names a secret. The caller that wrote the payload of a plain job
// wrote its secrets too. The payload of a node may hold what another service answered, so of that only those fields
// count which name a secret in the definition.
func (r *Row) MayResolve(field string) bool {
	return r.RunID == "" || r.DefinedSecrets == allSecrets ||
		slices.Contains(strings.Fields(r.DefinedSecrets), field)
}

// HandlerKey is the key that effects are made idempotent by: the same through attempts and redrives.
func (r Row) HandlerKey() ID {
	if r.RootID != "" {
		return r.RootID
	}
	return r.ID
}

// Schedule is the schedule among whose occurrences the job is listed, "" for none.
func (r Row) Schedule() string {
	if r.ManualOf != "" {
		return r.ManualOf
	}
	return r.ScheduleID
}

// OccurredAt is where it is listed there: at its nominal time, or when a caller asked for it.
func (r Row) OccurredAt() time.Time {
	if r.ManualOf != "" {
		return r.CreatedAt
	}
	return r.NominalAt
}

// Slice is the row's key in the due index, "" without a wake-up.
func (r Row) Slice() string {
	switch {
	case r.WakeAt.IsZero():
		return ""
	case r.Parked && r.QueuedBehind:
		return horizon.Line(string(r.Tenant), r.Schedule())
	case r.Parked:
		return horizon.Parking(string(r.Tenant), r.Shard)
	}
	return horizon.SliceOf(r.WakeAt, r.Shard).String()
}

// HasChildren says that other jobs wait for this one.
func (r Row) HasChildren() bool { return r.RunID != "" || r.Followed }

// Content names of sibling items.
const (
	ResultContent   = "result"
	TagsContent     = "tags" // holds all labels
	LiteralsContent = "allow_literals"
)

// PayloadContent names the sibling item or blob of a payload with that number.
func PayloadContent(number int64) string { return "payload#" + strconv.FormatInt(number, 10) }

// OutcomeLost is the outcome of a start whose worker ended before it: the attempt was started again.
const OutcomeLost = "lost"

// lastStart is beyond every number of a lost start.
const lastStart = 1<<8 - 1

// Position orders the entries of a job: by attempt, and within it the lost starts before the end.
func (a Attempt) Position() int64 {
	if a.Start == 0 {
		return PositionAfter(a.Attempt)
	}
	return a.Attempt<<8 | min(a.Start, lastStart-1)
}

// PositionAfter is the place after which the entries of the next attempt begin.
func PositionAfter(attempt int64) int64 { return attempt<<8 | lastStart }

// AttemptContent names the sibling item of an older attempt.
func AttemptContent(attempt int64) string {
	s := strconv.FormatInt(attempt, 10)
	return "attempt#" + strings.Repeat("0", max(0, 6-len(s))) + s
}

// attr is one attribute of an encoded row; one without a value is absent.
type attr struct {
	name string
	s    string
	n    int64
}

func (a attr) absent() bool { return a.s == "" && a.n == 0 }

func (a attr) value() any {
	if a.s == "" {
		return a.n
	}
	return a.s
}

// space is for the attributes of one row, of which there are fewer. It stays on its user's stack.
type space [96]attr

// encoder lists attributes, the absent ones too, so that each has the same place in every row.
type encoder []attr

// add is not inlined: sixty times in one function it would take 4 KB of stack, and the stacks of short
// goroutines would grow once more for each job.
//
// It sets the fields one by one: a copy of the whole costs more while garbage is collected.
//
//go:noinline
func (e *encoder) add(name, s string, n int64) {
	at := len(*e)
	*e = (*e)[:at+1]
	a := &(*e)[at]
	a.name, a.s, a.n = name, s, n
}

func (e *encoder) str(name, v string)       { e.add(name, v, 0) }
func (e *encoder) num(name string, v int64) { e.add(name, "", v) }

func (e *encoder) at(name string, t time.Time) {
	e.num(name, millis(t))
}

func (e *encoder) flag(name string, on bool) {
	if on {
		e.str(name, "1")
		return
	}
	e.str(name, "")
}

// encode lists the row's attributes, always the same ones in the same order. Rows are encoded several
// times for each job, so that two of them are compared place by place, without maps.
func (r *Row) encode(to *space) []attr {
	group, groupSort := "", ""
	if of := r.Schedule(); of != "" {
		group, groupSort = GroupKey(r.Tenant, of), GroupSort(r.OccurredAt())
	}
	deadShard := ""
	if !r.DeadAt.IsZero() {
		deadShard = DeadShard(r.Key)
	}
	expiresAt := int64(0)
	if !r.ExpiresAt.IsZero() {
		expiresAt = r.ExpiresAt.Unix()
	}
	e := encoder(to[:0])
	e.str(contract.AttrPK, r.partition())
	e.str(contract.AttrJobID, string(r.ID))
	e.num("schema_v", 1)
	e.str("status", string(r.Status))
	e.str("stop", string(r.Stop))
	e.num("version", r.Version)
	e.num("attempt", r.Attempt)
	e.num("failures", r.Failures)
	e.at("due_at", r.DueAt)
	e.at("nominal_at", r.NominalAt)
	e.at("created_at", r.CreatedAt)
	e.str("task", r.Task)
	e.str("exec", r.Executor)
	e.str("pool", r.Pool)
	e.str("priority", string(r.Priority))
	e.num("timeout", r.Timeout.Milliseconds())
	e.num("start_within", r.StartWithin.Milliseconds())
	e.num("expire_after", r.ExpireAfter.Milliseconds())
	e.at("expiry_at", r.ExpiryAt)
	e.str("retry", r.Retry.encode())
	e.num("max_result", r.MaxResult)
	e.flag("fail_large", r.FailLarge)
	e.str("owes", string(r.PendingEffects))
	e.str("schedule", r.ScheduleID)
	e.num("epoch", r.Epoch)
	e.str("rule", r.Rule)
	e.str("manual_of", r.ManualOf)
	e.str("dag", r.Dag)
	e.num("dag_version", r.DagVersion)
	e.str(contract.AttrGroup, group)
	e.str(contract.AttrGroupSort, groupSort)
	e.str("run", r.RunID)
	e.str("node", r.Node)
	e.str("parents", r.Parents)
	e.flag("followed", r.Followed)
	e.num("gen", r.Generation)
	e.num("item_no", r.ItemNo)
	e.num("slot", r.Slot)
	e.num("place", r.Permit)
	e.num("node_place", r.NodePermit)
	e.num("items", r.Items)
	e.str("forced", string(r.Forced))
	e.str("root", string(r.RootID))
	e.str("redrive_of", string(r.RedriveOf))
	e.str("redriven_by", string(r.RedrivenBy))
	e.num("shard", int64(r.Shard))
	e.str(contract.AttrWakeSlice, r.Slice())
	e.at(contract.AttrWakeAt, r.WakeAt)
	e.flag("parked", r.Parked)
	e.flag("behind", r.QueuedBehind)
	e.flag(contract.AttrNear, r.Near)
	e.at("ready_at", r.ReadyAt)
	e.num("postponed", r.Postponed)
	e.str(payloadName, r.Payload)
	e.str("payload_in", r.PayloadIn)
	e.num("payload_ver", r.PayloadVer)
	e.num("payload_size", r.PayloadSize)
	e.str("secrets", r.DefinedSecrets)
	e.str("result", r.Result)
	e.str("result_in", r.ResultIn)
	e.str("result_ref", r.ResultRef)
	e.str("partial", string(r.Partial))
	e.str("tagged", r.Labelled.encode())
	e.str("attempts", encodeAttempts(r.Attempts))
	e.str("waiting", r.Waiting)
	e.str("reason", r.Reason.Code)
	e.str("reason_text", r.Reason.Message)
	e.at("started_at", r.StartedAt)
	e.at("finished_at", r.FinishedAt)
	e.num("lateness", r.LatenessMS)
	e.at("cancel_at", r.CancelRequestedAt)
	e.at(contract.AttrDeadAt, r.DeadAt)
	e.str(contract.AttrDeadShard, deadShard)
	e.at("buried_at", r.BuriedAt)
	e.num(contract.AttrExpiresAt, expiresAt)
	return e
}

// usualAttrs is how many attributes a row has that is accepted.
const usualAttrs = 24

// Item encodes the row. Absent values are absent attributes.
func (r Row) Item() item.Item {
	var at space
	attrs := r.encode(&at)
	i := make(item.Item, usualAttrs)
	for _, a := range attrs {
		if !a.absent() {
			i[a.name] = a.value()
		}
	}
	return i
}

// Size is what DynamoDB counts for the row, in bytes: what Item().Size() gives, without the item.
func (r *Row) Size() int {
	var at space
	return sizeOf(r.encode(&at))
}

// sizeWith is Size with that payload instead of the row's.
func (r *Row) sizeWith(payload []byte) int {
	n := r.Size()
	if r.Payload != "" {
		n -= len(payloadName) + len(r.Payload)
	}
	return n + len(payloadName) + len(payload)
}

const payloadName = "payload"

func sizeOf(attrs []attr) int {
	n := 0
	for _, a := range attrs {
		switch {
		case a.s != "":
			n += len(a.name) + len(a.s)
		case a.n != 0:
			n += len(a.name) + item.NumberSize(a.n)
		}
	}
	return n
}

// differ is what must be set, and removed (nil), to make the encoded row before into after.
func differ(before, after []attr) map[string]any {
	set := make(map[string]any, 16)
	for n, a := range after {
		switch {
		case a == before[n]:
		case a.absent():
			set[a.name] = nil
		default:
			set[a.name] = a.value()
		}
	}
	return set
}

// DeadShard is the row's partition of the dead index.
func DeadShard(k Key) string {
	return string(k.Tenant) + "#" + strconv.Itoa(horizon.ShardOf(string(k.ID), contract.DeadShards))
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
	if v := i.Int("schema_v"); v != 1 {
		return bad("schema_v is not 1")
	}
	for _, name := range []string{"version", "attempt", "due_at", "created_at"} {
		if _, ok := i[name].(int64); !ok {
			return bad(name + " is not a number")
		}
	}
	r := Row{Key: key}
	for name, v := range i { // most attributes are absent: to look each of them up takes twice as long
		switch v := v.(type) {
		case string:
			r.setText(name, v)
		case int64:
			r.setNumber(name, v)
		}
	}
	if !known(r.Status) {
		return bad("status is unknown")
	}
	if r.Retry, err = parseRetry(i.Str("retry")); err != nil {
		return bad("retry is not a policy")
	}
	if r.Attempts, err = decodeAttempts(i.Str("attempts")); err != nil {
		return bad("attempts are not a list")
	}
	return r, nil
}

// setText takes an attribute that is a text. It leaves those to ParseRow that may be unreadable.
func (r *Row) setText(name, v string) {
	switch name {
	case "status":
		r.Status = Status(v)
	case "stop":
		r.Stop = Stop(v)
	case "task":
		r.Task = v
	case "exec":
		r.Executor = v
	case "pool":
		r.Pool = v
	case "priority":
		r.Priority = Priority(v)
	case "owes":
		r.PendingEffects = PendingEffects(v)
	case "schedule":
		r.ScheduleID = v
	case "rule":
		r.Rule = v
	case "manual_of":
		r.ManualOf = v
	case "dag":
		r.Dag = v
	case "run":
		r.RunID = v
	case "node":
		r.Node = v
	case "parents":
		r.Parents = v
	case "followed":
		r.Followed = v != ""
	case "forced":
		r.Forced = Forced(v)
	case "root":
		r.RootID = ID(v)
	case "redrive_of":
		r.RedriveOf = ID(v)
	case "redriven_by":
		r.RedrivenBy = ID(v)
	case "parked":
		r.Parked = v != ""
	case "behind":
		r.QueuedBehind = v != ""
	case contract.AttrNear:
		r.Near = v != ""
	case payloadName:
		r.Payload = v
	case "payload_in":
		r.PayloadIn = v
	case "secrets":
		r.DefinedSecrets = v
	case "result":
		r.Result = v
	case "result_in":
		r.ResultIn = v
	case "result_ref":
		r.ResultRef = v
	case "partial":
		r.Partial = Partial(v)
	case "fail_large":
		r.FailLarge = v != ""
	case "tagged":
		r.Labelled = parseLabelled(v)
	case "waiting":
		r.Waiting = v
	case "reason":
		r.Reason.Code = v
	case "reason_text":
		r.Reason.Message = v
	}
}

// setNumber takes an attribute that is a number.
func (r *Row) setNumber(name string, v int64) {
	at := func() time.Time { return time.UnixMilli(v).UTC() }
	switch name {
	case "version":
		r.Version = v
	case "attempt":
		r.Attempt = v
	case "failures":
		r.Failures = v
	case "due_at":
		r.DueAt = at()
	case "nominal_at":
		r.NominalAt = at()
	case "created_at":
		r.CreatedAt = at()
	case "timeout":
		r.Timeout = time.Duration(v) * time.Millisecond
	case "start_within":
		r.StartWithin = time.Duration(v) * time.Millisecond
	case "expire_after":
		r.ExpireAfter = time.Duration(v) * time.Millisecond
	case "expiry_at":
		r.ExpiryAt = at()
	case "epoch":
		r.Epoch = v
	case "dag_version":
		r.DagVersion = v
	case "gen":
		r.Generation = v
	case "item_no":
		r.ItemNo = v
	case "slot":
		r.Slot = v
	case "place":
		r.Permit = v
	case "node_place":
		r.NodePermit = v
	case "items":
		r.Items = v
	case "shard":
		r.Shard = int(v)
	case "max_result":
		r.MaxResult = v
	case contract.AttrWakeAt:
		r.WakeAt = at()
	case "ready_at":
		r.ReadyAt = at()
	case "postponed":
		r.Postponed = v
	case "payload_ver":
		r.PayloadVer = v
	case "payload_size":
		r.PayloadSize = v
	case "started_at":
		r.StartedAt = at()
	case "finished_at":
		r.FinishedAt = at()
	case "lateness":
		r.LatenessMS = v
	case "cancel_at":
		r.CancelRequestedAt = at()
	case contract.AttrDeadAt:
		r.DeadAt = at()
	case "buried_at":
		r.BuriedAt = at()
	case contract.AttrExpiresAt:
		r.ExpiresAt = time.Unix(v, 0).UTC()
	}
}

func known(s Status) bool {
	switch s {
	case Blocked, Scheduled, Running, Succeeded, Dead, Cancelled, Skipped, Expired:
		return true
	}
	return false
}

// attemptWire is an Attempt as the row holds it: short names, for every byte counts there.
type attemptWire struct {
	A int64  `json:"a"`
	W string `json:"w,omitempty"`
	S int64  `json:"s,omitempty"` // ms
	F int64  `json:"f,omitempty"` // ms
	L int64  `json:"l,omitempty"`
	O string `json:"o"`
	C string `json:"c,omitempty"`
	M string `json:"m,omitempty"`
}

// encodeAttempts is "" for none. decodeAttempts reads it by attemptWire. Field by field takes less stack than
// encoding/json does with the whole list, and every job is encoded with its attempt in a short goroutine.
func encodeAttempts(attempts []Attempt) string {
	if len(attempts) == 0 {
		return ""
	}
	b := make([]byte, 0, 128*len(attempts))
	num := func(name string, n int64) {
		if n != 0 {
			b = strconv.AppendInt(append(b, name...), n, 10)
		}
	}
	str := func(name, s string) {
		if s != "" {
			b = append(append(b, name...), text.MustJSON(s)...)
		}
	}
	for n, a := range attempts {
		b = append(b, [...]string{`[{"a":`, `,{"a":`}[min(n, 1)]...)
		b = strconv.AppendInt(b, a.Attempt, 10)
		str(`,"w":`, a.Worker)
		num(`,"s":`, millis(a.StartedAt))
		num(`,"f":`, millis(a.FinishedAt))
		num(`,"l":`, a.LatenessMS)
		b = append(append(b, `,"o":`...), text.MustJSON(a.Outcome)...)
		if a.Error != nil {
			str(`,"c":`, a.Error.Code)
			str(`,"m":`, a.Error.Message)
		}
		b = append(b, '}')
	}
	return string(append(b, ']'))
}

// millis is an instant as items hold it, 0 for none.
func millis(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

func decodeAttempts(s string) ([]Attempt, error) {
	if s == "" {
		return nil, nil
	}
	var wire []attemptWire
	if err := text.Read([]byte(s), &wire); err != nil {
		return nil, err
	}
	attempts := make([]Attempt, len(wire))
	for n, w := range wire {
		a := Attempt{Attempt: w.A, Worker: w.W, LatenessMS: w.L, Outcome: w.O}
		if w.S != 0 {
			a.StartedAt = time.UnixMilli(w.S).UTC()
		}
		if w.F != 0 {
			a.FinishedAt = time.UnixMilli(w.F).UTC()
		}
		if w.C != "" {
			a.Error = &Reason{Code: w.C, Message: w.M}
		}
		attempts[n] = a
	}
	return attempts, nil
}

// Cut shortens s to at most n bytes, on a rune's edge, and marks the cut.
func Cut(s string, n int) string {
	const mark = "…"
	if len(s) <= n {
		return s
	}
	if n < len(mark) {
		return ""
	}
	s = s[:n-len(mark)]
	for len(s) > 0 && s[len(s)-1]&0xC0 == 0x80 { // inside a rune: drop its tail …
		s = s[:len(s)-1]
	}
	if len(s) > 0 && s[len(s)-1] >= 0xC0 { // … and its head, which may be complete; a byte lost is fine
		s = s[:len(s)-1]
	}
	return s + mark
}

package run

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Status is what has become of a run.
type Status string

// The statuses of a run; the last three are final. PAUSED is shown and never stored.
const (
	Building  Status = "BUILDING"
	Running   Status = "RUNNING"
	Paused    Status = "PAUSED"
	Held      Status = "HELD"
	Succeeded Status = "SUCCEEDED"
	Failed    Status = "FAILED"
	Cancelled Status = "CANCELLED"
)

// Final says whether a run with that status has ended.
func (s Status) Final() bool {
	return s == Succeeded || s == Failed || s == Cancelled
}

// Stop is why a run ends before its nodes have decided how.
type Stop string

// The reasons; NoStop means that the nodes decide.
const (
	NoStop     Stop = ""
	StopCancel Stop = "cancel" // an operator cancelled the run
	StopExpire Stop = "expire" // its expire_after has passed
	StopFail   Stop = "fail"   // a node failed, and on_failure is cancel_run
)

// Codes of status_reason that a stop gives.
const (
	ReasonCancelled = "run_cancelled"
	ReasonFailed    = "run_failed"
	ReasonExpired   = "run_expired"
)

// Reason is the status_reason of the nodes that a stop ends.
func (s Stop) Reason() string {
	switch s {
	case StopCancel:
		return ReasonCancelled
	case StopExpire:
		return ReasonExpired
	case StopFail:
		return ReasonFailed
	}
	return ""
}

// Key names one run of one tenant.
type Key struct {
	Tenant tenant.ID
	ID     job.ID
}

// Ref is where the run's item is.
func (k Key) Ref() item.Ref { return k.ref("run") }

func (k Key) ref(sk string) item.Ref {
	return item.Ref{Table: contract.Runs, PK: string(k.Tenant) + "#" + string(k.ID), SK: sk}
}

// ContentRef is the key of what is too large for the run's item: its params, a result.
func (k Key) ContentRef(name string) item.Ref { return k.ref("beside#" + name) }

// JoinRef is where the ends of a node's parents are counted.
func (k Key) JoinRef(node string, generation int64) item.Ref {
	return k.ref("join#" + node + "#" + strconv.FormatInt(generation, 10))
}

// EndRef is where the ends of the last nodes are counted, those that began in that epoch.
func (k Key) EndRef(era int64) item.Ref { return k.ref("end#" + strconv.FormatInt(era, 10)) }

// SlotRef is slot number n of a run that was made before places lay in buckets: of the run (node "") or of a mapped
// node. It names the job that took it, and is free once that has ended.
func (k Key) SlotRef(node string, n int) item.Ref {
	return k.ref("slot#" + node + "#" + strconv.Itoa(n))
}

// NextRef is where the numbers of a mapped node's items are given out to those that put their rows.
func (k Key) NextRef(node string, generation int64) item.Ref {
	return k.ref("next#" + node + "#" + strconv.FormatInt(generation, 10))
}

// EventsFrom and EventsTo bound the sort keys of the run's events.
const (
	EventsFrom = "event#"
	EventsTo   = "event$"
)

// Job is the key of the job of a node in that generation, from 1; of its item number no, from 1, for
// that of a mapped node, else 0.
func (k Key) Job(node string, generation, no int64) job.Key {
	parts := []string{"node", string(k.Tenant), string(k.ID), node, strconv.FormatInt(generation, 10)}
	if no > 0 {
		parts = append(parts, strconv.FormatInt(no, 10))
	}
	return job.Key{Tenant: k.Tenant, ID: job.DeterministicID(k.ID.At(), parts...)}
}

// Of is the run that a node's row belongs to.
func Of(r job.Row) Key { return Key{r.Tenant, job.ID(r.RunID)} }

// Node is what the run holds of a node that ran again.
type Node struct {
	Generation int64      `json:"g"`
	Since      int64      `json:"s"`           // the epoch in which the generation began
	Whole      bool       `json:"w,omitempty"` // items that had succeeded run again, too
	Override   job.Forced `json:"h,omitempty"` // how an operator ended the generation
	Reason     string     `json:"r,omitempty"` // the operator's
	Before
}

// Before is what the run holds of the generations before the current one of a node, so that they need not be read.
type Before struct {
	Floor int64 `json:"f,omitempty"` // the generations before this one have ended; 0: not known
	Items int64 `json:"i,omitempty"` // of the newest generation that had any, if Floor is known
}

// OperationKind is what an operator asks for that takes two writes.
type OperationKind string

// The kinds.
const (
	OperationRetry     OperationKind = "retry"
	OperationRetryFrom OperationKind = "retry_from"
	OperationRetryNode OperationKind = "retry_node"
	OperationForce     OperationKind = "force" // skip or complete of a node that failed
)

// Operation is one that was begun and is not done.
type Operation struct {
	ID     string        `json:"id"`
	Kind   OperationKind `json:"kind"`
	Node   string        `json:"node,omitempty"`
	Forced job.Forced    `json:"forced,omitempty"`
	Reason string        `json:"reason,omitempty"`
	By     string        `json:"by,omitempty"`
}

// Run is the item of one run. Instants are UTC with milliseconds; zero means absent.
type Run struct {
	Key
	Dag        string // "" for an inline run
	DagVersion int64  // of the dag; 0 for an inline run
	Definition string // its hash
	Status     Status
	Reason     job.Reason
	Stop       Stop
	StopAll    bool      // the stopped run was cancelled once more: its nodes that run always are stopped, too
	StoppedAt  time.Time // when the run was stopped; zero: it was not, or by an older version
	Paused     bool
	Holds      bool       // a node is held: after any end it may be that nothing goes on
	InBuckets  bool       // places of its limits lie in buckets; a run made before that has slots
	Tagged     bool       // it has tags, which are an attachment
	Epoch      int64      // from 1; grows with every operation
	Operation  *Operation // begun and not done: nothing starts and nothing is released
	Nodes      map[string]Node

	CreatedAt  time.Time
	DueAt      time.Time
	NominalAt  time.Time
	ExpiryAt   time.Time // zero: never
	RetriedAt  time.Time // when expire_after began to count anew; zero: it counts from DueAt
	FinishedAt time.Time
	Schedule   string // its row has the run's id
	Backfill   job.ID // operation that made it; "" for none
	Notified   bool   // the row knows that the run was over
	Priority   job.Priority
	Params     string // merged, JSON; "" for none, ParamsInItem when an item of their own holds them
	Shard      int
	WakeAt     time.Time // zero once it has ended
	Tries      int64     // wake-ups in a row after which the run was not brought on
	ExpiresAt  time.Time // when the table may forget the item
	// KeptUntil is until when at least everything that belongs to the run is kept: rows, contents and claims of nodes
	// that have ended. Zero: contract.NodeKept after CreatedAt.
	KeptUntil time.Time
	// Lost says that KeptUntil has passed while the run went on: what has ended is not known any more.
	Lost bool
	// Events are what webhooks are still to be sent, oldest first: the run keeps a wake-up until they are.
	Events []Announcement
}

// Announcement is an event of the run that is still to be announced: the status that it came to.
type Announcement struct {
	Status   Status     `json:"s"`
	At       int64      `json:"t"` // in milliseconds
	Sequence int64      `json:"n"` // grows with the events of a run
	Reason   job.Reason `json:"r,omitzero"`
}

// MaxInlineParams is how long params may be in the item, in bytes.
const MaxInlineParams = 256

// ParamsContent names the item that holds large params; the run then says ParamsInItem.
const (
	ParamsContent = "params"
	ParamsInItem  = "@"
)

// TagsContent names the tags of a run that is Tagged, a JSON object of strings: the dag's, and over them
// the run's own.
const TagsContent = "tags"

// keptFrom is when an item of the run expires that is written now: like a node that ends now, it outlives the time in
// which the run can be retried. While the run goes on, it is prolonged with everything else.
func keptFrom(now time.Time) int64 { return now.Add(contract.NodeKept).Unix() }

// PutContent writes something that is too large for the run's item, such as params or a result.
func (r Run) PutContent(name, body string, now time.Time) item.Write {
	ref := r.ContentRef(name)
	return item.Write{Ref: ref, Name: WriteContent, Put: item.Item{
		contract.AttrPK: ref.PK, contract.AttrSK: ref.SK, "body": body,
		contract.AttrExpiresAt: keptFrom(now),
	}}
}

// listedFormat orders the runs of a tenant by when they were made.
const listedFormat = "2006-01-02T15:04:05.000Z"

// ListKey is the partition that lists the tenant's runs. No tenant's own key begins so.
func ListKey(t tenant.ID) string { return "#list#" + string(t) }

// ListFrom is where in that list the runs begin that were made at that time or later.
func ListFrom(at time.Time) string { return at.UTC().Format(listedFormat) }

// ListRef is the run's entry in the list of its tenant's runs.
func (r Run) ListRef() item.Ref {
	return item.Ref{Table: contract.Runs, PK: ListKey(r.Tenant), SK: ListFrom(r.CreatedAt) + "#" + string(r.ID)}
}

// List puts the run into the list of its tenant's runs; it goes in one transaction with the run. The entry
// outlives a run that the table forgets: a list passes over it.
func (r Run) List() item.Write {
	ref := r.ListRef()
	i := item.Item{
		contract.AttrPK: ref.PK, contract.AttrSK: ref.SK, contract.AttrExpiresAt: keptFrom(r.CreatedAt),
	}
	if r.Dag != "" {
		i["dag"] = r.Dag
	}
	if r.Schedule != "" {
		i["schedule"] = r.Schedule
	}
	return item.Write{Ref: ref, Name: WriteList, Put: i}
}

// Event is something that was done to a run.
type Event struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Action string    `json:"action"`
	Node   string    `json:"node,omitempty"`
	Reason string    `json:"reason,omitempty"`
	From   string    `json:"from,omitempty"`
	To     string    `json:"to,omitempty"`
}

// PutEvent records what a write did; it goes in one transaction with that. The epoch that the write made
// separates events of one instant.
func (r Run) PutEvent(e Event) item.Write {
	sk := EventsFrom + e.At.UTC().Format(listedFormat) + fmt.Sprintf("#%010d", r.Epoch)
	ref := r.ref(sk)
	return item.Write{Ref: ref, Name: WriteEvent, Put: item.Item{
		contract.AttrPK: ref.PK, contract.AttrSK: ref.SK, "body": string(text.MustJSON(e)),
		contract.AttrExpiresAt: r.EventsKept(e.At).Unix(),
	}}
}

// EventsKept returns until when the events of the run are kept, as far as is known at that time: as long as the run, if
// it ends at once, or when it is due. While it goes on, KeepEvent prolongs that.
func (r Run) EventsKept(now time.Time) time.Time {
	switch {
	case !r.ExpiresAt.IsZero():
		return r.ExpiresAt
	case r.DueAt.After(now):
		now = r.DueAt
	}
	return now.Add(contract.DeadKept)
}

// KeepEvent keeps an event until then. A forgotten one stays so.
func KeepEvent(ref item.Ref, until time.Time) item.Write {
	return item.Write{Ref: ref, Name: WriteKeepEvent, Set: map[string]any{contract.AttrExpiresAt: until.Unix()},
		When: []item.All{{{Attr: contract.AttrPK, Op: item.Exists}}}}
}

// ParseEvent decodes what PutEvent wrote.
func ParseEvent(i item.Item) (Event, error) {
	var e Event
	err := json.Unmarshal([]byte(i.Str("body")), &e)
	return e, err
}

// Forget deletes the item of a run that has ended, as it was read, once its schedule knows of its end.
func (r Run) Forget() item.Write {
	is := item.Cond{Attr: "epoch", Op: item.Eq, Value: r.Epoch}
	return item.Write{Ref: r.Ref(), Name: WriteForget, Delete: true, When: []item.All{
		{is, hasEnded, noOperation, noEvents, {Attr: "schedule", Op: item.Missing}},
		{is, hasEnded, noOperation, noEvents, {Attr: "told", Op: item.Exists}},
	}}
}

// CheckOver holds while the run that has ended is as it was read; it goes in one transaction with what must not happen
// to a run that goes on.
func (r Run) CheckOver() item.Write {
	return item.Write{Ref: r.Ref(), Name: WriteCheckEnded, Check: true, When: []item.All{
		{{Attr: "epoch", Op: item.Eq, Value: r.Epoch}, hasEnded, noOperation},
	}}
}

// Generation is the node's, from 1.
func (r Run) Generation(node string) int64 { return max(r.Nodes[node].Generation, 1) }

// Since is the epoch in which the node's generation began.
func (r Run) Since(node string) int64 { return max(r.Nodes[node].Since, 1) }

// Floor is the oldest generation of the node that may be open.
func (r Run) Floor(node string) int64 { return max(r.Nodes[node].Floor, 1) }

// Job is the key of the node's job in the generation that counts.
func (r Run) Job(node string) job.Key { return r.Key.Job(node, r.Generation(node), 0) }

// Shown is the status that a reader sees.
func (r Run) Shown() Status {
	if r.Paused && !r.Status.Final() && r.Stop == NoStop {
		return Paused
	}
	return r.Status
}

// Why a job must not start.
const (
	startOver       = "the run is over"
	startStopped    = "the run is stopped"
	startPaused     = "the run is paused"
	startChanging   = "the run is being changed"
	startExpired    = "the run has expired"
	startSuperseded = "a newer generation of the node counts"
)

// MayStart says why a job of the run must not start, "" if it may. The process that starts one reads the run
// after it has claimed the attempt.
func (r Run) MayStart(row job.Row, now time.Time) string {
	switch {
	case row.Generation != r.Generation(row.Node):
		return startSuperseded
	case r.Status.Final():
		return startOver
	case r.Stop != NoStop && !(row.Always && r.RunsAlways(now)):
		return startStopped
	case r.Operation != nil:
		return startChanging
	case r.Expired(now):
		return startExpired
	case r.Paused:
		return startPaused
	}
	return ""
}

// RunsAlways says whether the stopped run still runs its nodes that run always. One of which what has ended may be
// forgotten does not: the absence of a row no longer says that a node has not run.
func (r Run) RunsAlways(now time.Time) bool {
	return !r.StopAll && !r.Lost && now.Before(r.Kept())
}

// Expired says that the run must be stopped, and that no writer has stopped it yet: its expire_after has passed, or
// what has ended in it may be forgotten.
func (r Run) Expired(now time.Time) bool {
	return !r.Status.Final() && r.Stop == NoStop &&
		(!r.ExpiryAt.IsZero() && !now.Before(r.ExpiryAt) || !now.Before(r.Kept()))
}

// Kept is until when at least everything that belongs to the run is kept. An absent row is a node that has not been
// released, up to then and no longer.
func (r Run) Kept() time.Time {
	if r.KeptUntil.IsZero() {
		return r.CreatedAt.Add(contract.NodeKept)
	}
	return r.KeptUntil
}

const (
	// keptAhead is how long everything of a run that goes on is kept at least, while its wake-ups come: so long can all
	// of them fail.
	keptAhead = contract.NodeKept - 15*24*time.Hour
	// keptIdle is the same of a run in which nothing goes on until an operator acts.
	keptIdle = contract.MaxAhead / 2
)

// Keeps says until when everything of the run must be kept from now on; the zero time is for no longer than it is. idle
// says that no job of the run is open. What ends later is kept for contract.NodeKept after its end, so only for a run
// in which nothing can end it is more. It is a midnight: a wake-up that continues what another one has begun on the
// same day finds what that one has kept.
func (r Run) Keeps(now time.Time, idle bool) time.Time {
	idle = idle && (r.Paused || r.Status == Held) && r.Stop == NoStop && r.Operation == nil
	switch {
	case r.Status.Final(), !now.Before(r.Kept()): // what is lost already is not kept
	case idle && r.Kept().Before(now.Add(keptIdle)):
		return now.Add(contract.MaxAhead).Truncate(24 * time.Hour)
	case r.Kept().Before(now.Add(keptAhead)):
		return now.Add(contract.NodeKept).Truncate(24 * time.Hour)
	}
	return time.Time{}
}

// Keep notes until when everything of the run is kept, after it was done.
func (r Run) Keep(until time.Time) (Run, item.Write) {
	after := r
	after.KeptUntil = until
	return r.change(WriteKeep, after, notOver)
}

// KeepItem lets an item of the run live until then; refused where it lives longer.
func (k Key) KeepItem(ref item.Ref, until time.Time) item.Write {
	return item.Write{
		Ref: ref, Name: WriteKeepItem, Set: map[string]any{contract.AttrExpiresAt: until.Unix()},
		When: []item.All{{{Attr: contract.AttrExpiresAt, Op: item.Lt, Value: until.Unix()}}},
	}
}

// wakesToKeep is when a wake-up must come, at the latest, that keeps what belongs to the run.
func (r Run) wakesToKeep() time.Time { return r.Kept().Add(-keptAhead) }

// soonAfterStop is how long a stopped run is woken often, to end what a crash has left open.
const soonAfterStop = time.Hour

// NextWakeUp is the next wake-up of a run that goes on. It finds what a crash has left undone; nothing else waits for
// it, unless the run expires.
func (r Run) NextWakeUp(now time.Time) time.Time {
	at := now
	if r.DueAt.After(now) && r.Stop == NoStop {
		at = r.DueAt
	}
	at = at.Add(contract.RetryEvery)
	// An hour after a stop, the run waits for nodes that run always. One that an older version has stopped has none.
	if r.Stop != NoStop && (r.StoppedAt.IsZero() || now.Sub(r.StoppedAt) < soonAfterStop) {
		at = now.Add(contract.Grace)
	}
	if len(r.Events) > 0 {
		at = now.Add(contract.Grace)
	}
	if keep := r.wakesToKeep(); keep.Before(at) {
		at = now.Add(contract.RetryEvery)
		if keep.After(at) {
			at = keep
		}
	}
	if r.Stop == NoStop && !r.ExpiryAt.IsZero() && r.ExpiryAt.Before(at) {
		at = r.ExpiryAt
	}
	return at
}

// Superseded says that the row never will start: it belongs to an older generation, or to a run that is
// stopped or over.
func (r Run) Superseded(row job.Row) bool {
	switch r.MayStart(row, time.Time{}) {
	case startSuperseded, startOver, startStopped:
		return true
	}
	return false
}

// Slice is the run's key in the due index, "" without a wake-up.
func (r Run) Slice() string {
	if r.WakeAt.IsZero() {
		return ""
	}
	return horizon.SliceOf(r.WakeAt, r.Shard).String()
}

// DefinitionRef is where a tenant's definition of that hash is kept, for all runs that have it.
func DefinitionRef(t tenant.ID, hash string) item.Ref {
	return item.Ref{Table: contract.Dags, PK: "definition#" + string(t), SK: hash}
}

// Every write below is one of the protocol's, on the run as it was read: refused means that another process has
// acted since, and everything is read and decided again.

var (
	notOver  = item.Cond{Attr: "status", Op: item.In, Value: []string{string(Building), string(Running), string(Held)}}
	hasEnded = item.Cond{Attr: "status", Op: item.In, Value: []string{
		string(Succeeded), string(Failed), string(Cancelled),
	}}
	noStop      = item.Cond{Attr: "stop", Op: item.Missing}
	stopped     = item.Cond{Attr: "stop", Op: item.Exists}
	noOperation = item.Cond{Attr: "act_id", Op: item.Missing}
	noEvents    = item.Cond{Attr: "events", Op: item.Missing}
)

// change writes what differs between two states of the run, where its epoch still is the one read, and
// nothing else: what another process changes in the same epoch stays.
func (r Run) change(name string, after Run, more ...item.Cond) (Run, item.Write) {
	var was, is space
	set := item.Changes(r.encode(&was), after.encode(&is))
	when := append(item.All{{Attr: "epoch", Op: item.Eq, Value: r.Epoch}}, more...)
	return after, item.Write{Ref: r.Ref(), Name: name, When: []item.All{when}, Set: set}
}

// wake makes the wake-up due. What ends from now on is kept for contract.NodeKept and no longer.
func (r Run) wake(now time.Time) Run {
	r.WakeAt, r.FinishedAt, r.ExpiresAt, r.Tries = now, time.Time{}, time.Time{}, 0
	if most := now.Add(contract.NodeKept); r.KeptUntil.After(most) {
		r.KeptUntil = most
	}
	return r
}

// Create puts a new run; it must not exist. Of r the caller sets the key, what the user asked for, when
// it is due, and the shard.
func Create(r Run, now time.Time) (Run, item.Write) {
	r.Status, r.Epoch, r.CreatedAt, r.WakeAt, r.InBuckets = Building, 1, now, now, true
	return r, item.Write{Ref: r.Ref(), Name: WriteCreate, Put: r.Item(), When: []item.All{
		{{Attr: contract.AttrPK, Op: item.Missing}},
	}}
}

// Built notes that the roots are on their way.
func (r Run) Built() (Run, item.Write) {
	after := r
	after.Status = Running
	return r.change(WriteBuilt, after, item.Cond{Attr: "status", Op: item.Eq, Value: string(Building)})
}

// Halt stops the run: nothing starts any more but nodes that run always, and what has not started ends with the stop's
// reason. A pause no longer matters.
func (r Run) Halt(s Stop, why job.Reason, now time.Time) (Run, item.Write) {
	after := r.wake(now)
	after.Stop, after.Reason, after.Operation, after.Lost = s, why, nil, r.Lost || !now.Before(r.Kept())
	after.Status, after.Paused, after.StoppedAt = Running, false, now
	after.Epoch++
	more := []item.Cond{notOver, noStop}
	if s == StopFail {
		more = append(more, noOperation)
	}
	return r.change(WriteStop, after, more...)
}

// HaltAlways stops the nodes that run always of a run that is stopped already. How the run ends stays as it is.
func (r Run) HaltAlways(now time.Time) (Run, item.Write) {
	after := r.wake(now)
	after.StopAll = true
	after.Epoch++
	return r.change(WriteStopAlways, after, notOver, stopped)
}

// Pause keeps everything from starting; Resume brings it on again.
func (r Run) Pause() (Run, item.Write) {
	after := r
	after.Paused = true
	after.Epoch++
	return r.change(WritePause, after, notOver, noStop)
}

// Resume lifts a pause.
func (r Run) Resume(now time.Time) (Run, item.Write) {
	after := r.wake(now)
	after.Paused = false
	after.Epoch++
	return r.change(WriteResume, after, notOver, noStop)
}

// Touch is the run's part of an operator's skip or complete of a node that has not failed.
func (r Run) Touch(now time.Time) (Run, item.Write) {
	after := r.wake(now)
	after.Holds = false
	if r.Status == Held {
		after.Status = Running
	}
	after.Epoch++
	return r.change(WriteTouch, after, notOver, noStop, noOperation)
}

// Begin is an operation's first write: from here on nothing starts until Finish or Withdraw.
func (r Run) Begin(a Operation, now time.Time) (Run, item.Write) {
	after := r
	after.WakeAt, after.Operation = now, &a
	after.Epoch++
	over := notOver
	more := []item.Cond{noOperation}
	if r.Status.Final() {
		over = hasEnded
	} else {
		more = append(more, noStop)
	}
	return r.change(WriteBegin, after, append(more, over)...)
}

func (r Run) sameOperation() item.Cond {
	return item.Cond{Attr: "act_id", Op: item.Eq, Value: r.Operation.ID}
}

// Finish is an operation's second write: those nodes begin a new generation, before which there is what that says, and
// the run goes on. A run that was over starts afresh: a pause that it was stopped under is lifted, and expire_after
// counts anew, since what is retried the day after could not start otherwise.
func (r Run) Finish(retried map[string]Before, now time.Time) (Run, item.Write) {
	after := r.wake(now)
	if r.Status.Final() {
		after.Paused = false
		if !r.ExpiryAt.IsZero() && now.After(r.DueAt) {
			after.RetriedAt, after.ExpiryAt = now, now.Add(r.expireAfter())
		}
	}
	after.Operation, after.Stop, after.Holds, after.Status, after.Reason = nil, NoStop, false, Running, job.Reason{}
	after.StopAll, after.StoppedAt = false, time.Time{}
	after.Epoch++
	after.Nodes = maps.Clone(r.Nodes)
	if after.Nodes == nil {
		after.Nodes = map[string]Node{}
	}
	for n, before := range retried {
		after.Nodes[n] = Node{
			Generation: r.Generation(n) + 1, Since: after.Epoch, Whole: r.Operation.Kind == OperationRetryFrom,
			Before: before,
		}
	}
	if r.Operation.Kind == OperationForce {
		n := after.Nodes[r.Operation.Node]
		n.Override, n.Reason = r.Operation.Forced, r.Operation.Reason
		after.Nodes[r.Operation.Node] = n
	}
	return r.change(WriteFinish, after, r.sameOperation())
}

// expireAfter is how long the run may take, for a run that expires.
func (r Run) expireAfter() time.Duration {
	if r.RetriedAt.IsZero() {
		return r.ExpiryAt.Sub(r.DueAt)
	}
	return r.ExpiryAt.Sub(r.RetriedAt)
}

// Withdraw takes an operation back that found nothing to do.
func (r Run) Withdraw() (Run, item.Write) {
	after := r
	after.Operation = nil
	after.Epoch++
	if r.Status.Final() && !r.Unfinished() {
		after.WakeAt = time.Time{}
	}
	return r.change(WriteWithdraw, after, r.sameOperation())
}

// NoteHolds notes that a node is held.
func (r Run) NoteHolds() (Run, item.Write) {
	after := r
	after.Holds = true
	return r.change(WriteNoteHolds, after, noOperation)
}

// MustNotify says that the row of the run's schedule does not know yet that the run has ended.
func (r Run) MustNotify() bool { return r.Status.Final() && r.Schedule != "" && !r.Notified }

// Unfinished says that the run, which has ended, still has something to do: it keeps its wake-up.
func (r Run) Unfinished() bool { return r.MustNotify() || len(r.Events) > 0 }

// End gives the run the status that it has come to: a final one, or HELD. One whose schedule must be notified keeps a
// wake-up for that. why is the reason that its event says; nil: there is no event to announce.
func (r Run) End(s Status, why *job.Reason, now time.Time) (Run, item.Write) {
	after := r
	after.Status = s
	if s.Final() {
		after.FinishedAt, after.WakeAt, after.Holds, after.Tries = now, time.Time{}, false, 0
		after.ExpiresAt = now.Add(contract.DeadKept)
	}
	if why != nil {
		after.Events = append(slices.Clone(r.Events), after.announcement(*why, now))
	}
	if s.Final() && after.Unfinished() || why != nil {
		after.WakeAt = now
	}
	return r.change(WriteEnd, after, notOver, noOperation)
}

// announcement is the event that the run has its status. A run comes to each status at most once in an epoch, and to a
// final one after it was held.
func (r Run) announcement(why job.Reason, now time.Time) Announcement {
	a := Announcement{Status: r.Status, At: now.UnixMilli(), Sequence: 2 * r.Epoch, Reason: why}
	if r.Status.Final() {
		a.Sequence++
	}
	return a
}

// NotifyDone notes that the row of the run's schedule knows of its end and that its events were announced, and takes
// the wake-up of a run that has ended. Refused, there is another event by now.
func (r Run) NotifyDone() (Run, item.Write) {
	after := r
	after.Notified, after.Events = r.Notified || r.Status.Final(), nil
	var when item.All
	if len(r.Events) > 0 {
		when = append(when, item.Cond{Attr: "events", Op: item.Eq, Value: r.encodeEvents()})
	}
	if r.Status.Final() {
		after.WakeAt, after.Tries = time.Time{}, 0
		when = append(when, hasEnded, noOperation)
	}
	return r.change(WriteNotify, after, when...)
}

// Rest defers the wake-up after the run was brought on; the zero time takes it from a run that has ended.
func (r Run) Rest(at time.Time) (Run, item.Write) {
	after := r
	after.WakeAt, after.Tries = at, 0
	if at.IsZero() {
		return r.change(WriteRewake, after, hasEnded, noOperation)
	}
	return r.change(WriteRewake, after, notOver, noOperation)
}

// waitersPerItem is how many nodes share an item of the line: it stays so small that a write of it is one unit.
const waitersPerItem = 60

// WaiterRefs are the items in which the first n nodes of a run wait for one of its slots.
func (k Key) WaiterRefs(n int) []item.Ref {
	refs := make([]item.Ref, (n+waitersPerItem-1)/waitersPerItem)
	for i := range refs {
		refs[i] = k.ref("line#" + strconv.Itoa(i))
	}
	return refs
}

func (k Key) waiterAt(no int) (item.Ref, string) {
	return k.ref("line#" + strconv.Itoa(no/waitersPerItem)), "n" + strconv.Itoa(no%waitersPerItem)
}

// WaiterPage is the number of the item of WaiterRefs that holds a node.
func WaiterPage(no int) int { return no / waitersPerItem }

// AddWaiters has nodes, by number, wait for a place of the run, each in that generation: one write for each item of the
// line.
func (k Key) AddWaiters(nodes map[int]int64, now time.Time) []item.Write {
	pages := map[item.Ref]item.Write{}
	for no, generation := range nodes {
		ref, attr := k.waiterAt(no)
		w, begun := pages[ref]
		if !begun {
			w = item.Write{Ref: ref, Name: WriteAddWaiters, Set: map[string]any{contract.AttrExpiresAt: keptFrom(now)}}
		}
		w.Set[attr] = generation
		pages[ref] = w
	}
	writes := slices.Collect(maps.Values(pages))
	slices.SortFunc(writes, func(a, b item.Write) int { return strings.Compare(a.SK, b.SK) })
	return writes
}

// ClaimWaiter takes a node out of the line that waits in that generation, for a job whose end is propagated: by is its
// mark. Refused, another has taken it out, or a newer generation waits.
func (k Key) ClaimWaiter(no int, generation, by int64) item.Write {
	ref, attr := k.waiterAt(no)
	return item.Write{Ref: ref, Name: WriteClaimWaiter, Set: map[string]any{attr: nil, claimed(no): by},
		When: []item.All{{{Attr: attr, Op: item.Eq, Value: generation}}}}
}

// RemoveWaiter removes the mark of ClaimWaiter once the node has its row, or waits again.
func (k Key) RemoveWaiter(no int, by int64) item.Write {
	ref, _ := k.waiterAt(no)
	return item.Write{Ref: ref, Name: WriteRemoveWaiter, Set: map[string]any{claimed(no): nil},
		When: []item.All{{{Attr: claimed(no), Op: item.Eq, Value: by}}}}
}

func claimed(no int) string { return "c" + strconv.Itoa(no%waitersPerItem) }

// Waiters is which nodes of a run, by number, wait for a place.
type Waiters struct {
	Waiting map[int]int64 // and in which generation
	Claimed map[int]int64 // taken out by the job with that mark, and perhaps without a row
}

// ReadWaiters reads the line from the items of WaiterRefs of the first n nodes.
func ReadWaiters(items []item.Item, n int) Waiters {
	l := Waiters{map[int]int64{}, map[int]int64{}}
	for page, i := range items {
		l.read(i, page, n)
	}
	return l
}

// ReadWaiterPage reads one of the items of WaiterRefs, that number.
func ReadWaiterPage(i item.Item, page, n int) Waiters {
	l := Waiters{map[int]int64{}, map[int]int64{}}
	l.read(i, page, n)
	return l
}

func (l Waiters) read(i item.Item, page, n int) {
	for no := page * waitersPerItem; no < min(n, (page+1)*waitersPerItem); no++ {
		if generation := i.Int("n" + strconv.Itoa(no%waitersPerItem)); generation > 0 {
			l.Waiting[no] = generation
		}
		if by, is := i[claimed(no)].(int64); is {
			l.Claimed[no] = by
		}
	}
}

// CountAt adds n to a counter of the run: a JoinRef, an EndRef or a NextRef.
func (k Key) CountAt(counter item.Ref, n int64, now time.Time) item.Write {
	return item.Write{
		Ref: counter, Name: WriteCountEnd, Add: map[string]int64{"n": n},
		Set: map[string]any{contract.AttrExpiresAt: keptFrom(now)},
	}
}

// BeginCount sets a counter that does not exist yet.
func (k Key) BeginCount(counter item.Ref, n int64, now time.Time) item.Write {
	return item.Write{
		Ref: counter, Name: WriteBeginCount, Set: map[string]any{"n": n, contract.AttrExpiresAt: keptFrom(now)},
		When: []item.All{{{Attr: "n", Op: item.Missing}}},
	}
}

// CountItems counts the items of a mapped node among the run's, of which there may be most; it goes in
// one transaction with the node's row.
func (k Key) CountItems(n, most int64, now time.Time) item.Write {
	w := item.Write{Ref: k.ref("items"), Name: WriteCountItems, Add: map[string]int64{"n": n},
		Set:  map[string]any{contract.AttrExpiresAt: keptFrom(now)},
		When: []item.All{{{Attr: "n", Op: item.Missing}}, {{Attr: "n", Op: item.Le, Value: most}}},
	}
	if most < 0 { // more than there may be, even as the first
		w.When = []item.All{{{Attr: "n", Op: item.Exists}, {Attr: "n", Op: item.Missing}}}
	}
	return w
}

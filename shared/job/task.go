package job

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Executor kinds: who runs a task.
const (
	ExecutorGo     = executor.Go // a handler registered in workers/handler under the task's name
	ExecutorHTTP   = executor.HTTP
	ExecutorLambda = executor.Lambda
	ExecutorEcho   = executor.Echo
)

// Task is a named way of doing work. A job copies what it needs of it when it is accepted, so
// changing or deleting a task changes nothing for jobs that wait.
type Task struct {
	Name     string
	Executor string
	Pool     string
	Priority Priority
	Timeout  time.Duration
	Retry    RetryPolicy
	Limits   Limits // of work
	Keeping
	PayloadSchema json.RawMessage // a JSON schema, nil for any payload
	Version       int64           // grows with every change
	BuiltIn       bool
}

// Settings are those of a job of the task that sets none of its own.
func (t Task) Settings() Settings {
	return Settings{
		Task: t.Name, Executor: t.Executor, Pool: t.Pool, Priority: t.Priority, Timeout: t.Timeout, Retry: t.Retry,
		Limits: t.Limits, Keeping: t.Keeping,
	}
}

// BuiltInTasks are there from the start, for every tenant, and cannot be changed.
func BuiltInTasks() []Task {
	var tasks []Task
	for _, kind := range executor.BuiltIn() {
		tasks = append(tasks, Task{
			Name: kind, Executor: kind, Pool: contract.DefaultPool, Priority: Normal,
			Timeout: contract.DefaultTimeout, Retry: DefaultRetry, Version: 1, BuiltIn: true,
		})
	}
	return append(tasks, deliveryTask)
}

// TasksKey is the partition of a tenant's tasks.
func TasksKey(t tenant.ID) string { return "task#" + string(t) }

// taskWire is the stored body of a task.
type taskWire struct {
	Executor string          `json:"executor"`
	Pool     string          `json:"pool"`
	Priority Priority        `json:"priority"`
	Timeout  int64           `json:"timeout_ms"`
	Retry    string          `json:"retry"`
	Limits   Limits          `json:"limits,omitempty"`
	Schema   json.RawMessage `json:"payload_schema,omitempty"`
	Keeping
}

// TaskRef is where a tenant's task of that name is.
func TaskRef(t tenant.ID, name string) item.Ref {
	return item.Ref{Table: contract.Tasks, PK: TasksKey(t), SK: name}
}

// Item encodes the task.
func (t Task) Item(owner tenant.ID) item.Item {
	b, _ := text.JSON(taskWire{t.Executor, t.Pool, t.Priority, t.Timeout.Milliseconds(), t.Retry.encode(),
		t.Limits, t.PayloadSchema, t.Keeping})
	return item.Item{contract.AttrPK: TasksKey(owner), contract.AttrSK: t.Name, "body": string(b), "version": t.Version}
}

// ParseTask decodes what Item encoded.
func ParseTask(i item.Item) (Task, error) {
	var w taskWire
	t := Task{Name: i.Str(contract.AttrSK), Version: i.Int("version")}
	err := text.Read([]byte(i.Str("body")), &w)
	if err == nil {
		err = t.Retry.decode(w.Retry)
	}
	if err != nil {
		return t, fault.New(fault.Undecodable, err, "reading task %q", t.Name)
	}
	t.Executor, t.Pool, t.Priority = w.Executor, w.Pool, w.Priority
	t.Timeout, t.PayloadSchema = time.Duration(w.Timeout)*time.Millisecond, w.Schema
	t.Limits, t.Keeping = w.Limits, w.Keeping
	return t, nil
}

// Pause scopes.
const (
	PauseAll        = "all"
	PauseTaskPrefix = "task:"
	// Everyone is the partition of pauses that hold all tenants: set by an operator in the
	// table itself, and by a restore. No tenant can be called so.
	Everyone tenant.ID = "*"
)

// Pause holds back everything of a tenant, or one of its tasks.
type Pause struct {
	Scope       string    `json:"scope"` // PauseAll or "task:NAME"
	Reason      string    `json:"reason,omitempty"`
	By          string    `json:"by,omitempty"`
	Since       time.Time `json:"since"`
	EffectiveAt time.Time `json:"effective_at"`       // nothing that it holds starts later
	Until       time.Time `json:"until,omitzero"`     // zero: until it is lifted
	Missed      string    `json:"missed"`             // drop, last or all; of schedules' nominal times
	LiftedAt    time.Time `json:"lifted_at,omitzero"` // zero: it holds, or ended at Until

	// Unreadable says that the stored pause could not be read. Its key still says what it is to
	// hold, and a stop that is misspelt is still a stop: it holds until it is put anew or lifted.
	Unreadable bool `json:"-"`
}

// Ended reports whether the pause has ended by its until.
func (p Pause) Ended(now time.Time) bool { return !p.Until.IsZero() && !now.Before(p.Until) }

// PausesKey is the partition of a tenant's pauses.
func PausesKey(t tenant.ID) string { return "pause#" + string(t) }

// PauseRef is where the pause of that scope is.
func PauseRef(t tenant.ID, scope string) item.Ref {
	return item.Ref{Table: contract.Tasks, PK: PausesKey(t), SK: scope}
}

// Item encodes the pause. It expires by itself a day after Until; until then readers compare.
func (p Pause) Item(owner tenant.ID) item.Item {
	b := text.MustJSON(p)
	i := item.Item{contract.AttrPK: PausesKey(owner), contract.AttrSK: p.Scope, "body": string(b)}
	if !p.Until.IsZero() {
		i[contract.AttrExpiresAt] = p.Until.Add(24 * time.Hour).Unix()
	}
	return i
}

// LastHeld is the last due time that the pause held, before it was lifted or its Until came; zero
// while nothing says that it ends. What is due at Until is free.
func (p Pause) LastHeld() time.Time {
	switch {
	case !p.LiftedAt.IsZero() && (p.Until.IsZero() || p.LiftedAt.Before(p.Until)):
		return p.LiftedAt
	case p.Until.IsZero():
		return time.Time{}
	}
	return p.Until.Add(-time.Millisecond)
}

// ParsePause decodes what Item encoded. Of one that cannot be read the key says what it holds;
// nothing that passes under it is dropped.
func ParsePause(i item.Item) (Pause, error) {
	var p Pause
	if err := text.Read([]byte(i.Str("body")), &p); err != nil {
		p = Pause{Scope: i.Str(contract.AttrSK), Reason: "this pause cannot be read: put it anew, or lift it",
			Missed: "all", Unreadable: true}
		return p, fault.New(fault.Undecodable, err, "reading pause %q", p.Scope)
	}
	return p, nil
}

// Pauses are all that apply to one tenant, those for everyone included.
type Pauses []Pause

// HoldRow returns the pause that holds a job now: false if none does. A delivery obeys the pause of its task and no
// other, so that events reach a tenant that has paused everything.
func (ps Pauses) HoldRow(r Row, now time.Time) (Pause, bool) {
	if !r.Delivery() {
		return ps.Hold(r.Task, now)
	}
	own := func(p Pause) bool { return p.Scope == PauseTaskPrefix+r.Task && !p.Ended(now) }
	if n := slices.IndexFunc(ps, own); n >= 0 {
		return ps[n], true
	}
	return Pause{}, false
}

// Hold returns the pause that holds a task now: false if none does.
func (ps Pauses) Hold(task string, now time.Time) (Pause, bool) {
	for _, p := range ps {
		if p.Ended(now) {
			continue
		}
		if p.Scope == PauseAll || strings.TrimPrefix(p.Scope, PauseTaskPrefix) == task && p.Scope != task {
			return p, true
		}
	}
	return Pause{}, false
}

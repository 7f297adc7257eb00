package dag

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/text"
)

// After says which jobs a single job comes after. It is evaluated as a node of a run is.
type After struct {
	Rule    Rule
	Parents []Parent
	// Delay counts from the moment at which the parents have ended; 0: none.
	Delay time.Duration
	// NotBefore holds the job until then, if it is later; zero: nothing does.
	NotBefore time.Time
}

// Parent is a job that another comes after. What it has ended with is kept, because the table may forget it
// before the last of them has ended.
type Parent struct {
	ID  job.ID
	End End
}

// afterWire is an After as a row holds it: short names, for every byte counts there.
type afterWire struct {
	Rule      string   `json:"r,omitempty"` // "": the default
	Parents   []string `json:"p"`           // an id, and after a colon a letter for its end
	Delay     int64    `json:"d,omitempty"` // ms
	NotBefore int64    `json:"n,omitempty"` // ms
}

var endLetters = map[string]End{"S": Succeeded, "F": Failed, "K": Skipped}

// Encode returns what a row's Parents hold of a.
func (a After) Encode() string {
	w := afterWire{Delay: a.Delay.Milliseconds()}
	if a.Rule != AllSucceeded {
		w.Rule = string(a.Rule)
	}
	if !a.NotBefore.IsZero() {
		w.NotBefore = a.NotBefore.UnixMilli()
	}
	for _, p := range a.Parents {
		s := string(p.ID)
		for letter, end := range endLetters {
			if p.End == end {
				s += ":" + letter
			}
		}
		w.Parents = append(w.Parents, s)
	}
	return string(text.MustJSON(w))
}

// AfterOf decodes what Encode encoded; false for a job that comes after none. What cannot be read is a
// fault of kind Undecodable.
func AfterOf(r job.Row) (a After, ok bool, err error) {
	if r.Parents == "" {
		return After{}, false, nil
	}
	var w afterWire
	if err := json.Unmarshal([]byte(r.Parents), &w); err != nil {
		return After{}, false, fault.New(fault.Undecodable, err, "reading what job %s comes after", r.ID)
	}
	a = After{Rule: Rule(w.Rule), Delay: time.Duration(w.Delay) * time.Millisecond}
	if w.Rule == "" {
		a.Rule = AllSucceeded
	}
	if w.NotBefore != 0 {
		a.NotBefore = time.UnixMilli(w.NotBefore).UTC()
	}
	for _, p := range w.Parents {
		id, end, _ := strings.Cut(p, ":")
		a.Parents = append(a.Parents, Parent{ID: job.ID(id), End: endLetters[end]})
	}
	return a, true, nil
}

// IDs lists the parents.
func (a After) IDs() []job.ID {
	ids := make([]job.ID, len(a.Parents))
	for i, p := range a.Parents {
		ids[i] = p.ID
	}
	return ids
}

// Waits lists the parents of which no end is known.
func (a After) Waits() []job.ID {
	var ids []job.ID
	for _, p := range a.Parents {
		if p.End == NotEnded {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// Learn returns a with what rows of its parents say of their ends. What is known already stays.
func (a After) Learn(rows ...job.Row) After {
	a.Parents = append([]Parent(nil), a.Parents...)
	for _, r := range rows {
		for i, p := range a.Parents {
			if p.ID == r.ID && p.End == NotEnded {
				a.Parents[i].End = StateOf(r).End()
			}
		}
	}
	return a
}

// Evaluate says what becomes of the job, and why if it is not to run.
func (a After) Evaluate() (Verdict, job.Reason) {
	ends := make([]End, len(a.Parents))
	for i, p := range a.Parents {
		ends[i] = p.End
	}
	v, code := Evaluate(a.Rule, CancelDownstream, ends)
	if code == "" {
		return v, job.Reason{}
	}
	why := job.Reason{Code: code, Message: fmt.Sprintf("run_if %s was not met", a.Rule)}
	because := map[string]End{ReasonParentFailed: Failed, ReasonParentSkipped: Skipped}[code]
	for _, p := range a.Parents {
		if p.End == because && because != NotEnded {
			why.Message = fmt.Sprintf("job %s %s", p.ID,
				map[End]string{Failed: "failed", Skipped: "was skipped"}[p.End])
			break
		}
	}
	return v, why
}

// Due is when the job is due if its parents have ended at now.
func (a After) Due(now time.Time) time.Time {
	// Rows hold milliseconds; rounding up keeps the promised minimum.
	due := now.Add(a.Delay + time.Millisecond - 1).Truncate(time.Millisecond)
	if a.NotBefore.After(due) {
		return a.NotBefore
	}
	return due
}

// Admit gives a new row the state with which it is accepted: BLOCKED while a parent has not ended, else
// SCHEDULED, or ended already. send says whether the writer must send the firing itself.
func (a After) Admit(r job.Row, now time.Time) (after job.Row, send bool) {
	r.Parents = a.Encode()
	switch v, why := a.Evaluate(); v {
	case Run:
		r.DueAt = a.Due(now)
		if r.ExpireAfter > 0 {
			r.ExpiryAt = r.DueAt.Add(r.ExpireAfter)
		}
		send = job.Route(&r, now)
	case Cancel, Skip:
		r, _ = job.AcceptEnded(r, v.Status(), why, now)
	default:
		// It has no due time yet. The due index gets one that lies before its wake-up, so that no process
		// but the sweeper reads it.
		r.Status, r.DueAt, r.ExpiryAt, r.WakeAt = job.Blocked, now, time.Time{}, now.Add(contract.Grace)
	}
	return r, send
}

// Status is the final status of a verdict that ends a job.
func (v Verdict) Status() job.Status {
	if v == Skip {
		return job.Skipped
	}
	return job.Cancelled
}

package runs_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"punctual/functions/engine"
	"punctual/functions/engine/runs"
	"punctual/functions/engine/scan"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/run"
)

const day = 24 * time.Hour

// months is a run in a world in which time passes and rows expire.
type months struct {
	*stagetest.Bench
	*engine.Engine
	key   run.Key
	ended map[string]int // attempts of nodes that a worker has ended
	fails map[string]bool
}

func inMonths(t *testing.T, name string, d dag.Definition, do func(m *months)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := stagetest.New(t, memory.Options{})
			m := &months{Bench: s, Engine: s.Engine(), ended: map[string]int{}, fails: map[string]bool{}}
			m.key = run.Key{Tenant: "acme", ID: job.DeterministicID(time.Now(), "run")}
			if _, _, err := m.Runs.Create(t.Context(), runs.Request{Key: m.key, Definition: d}); err != nil {
				t.Fatal(err)
			}
			do(m)
		})
	})
}

func (m *months) run() run.Run {
	m.Helper()
	is, err := m.Store.Run(m.Context(), m.key)
	m.Must(err)
	return is
}

func (m *months) rows() map[string]job.Row {
	m.Helper()
	_, _, rows, err := m.Runs.Nodes(m.Context(), m.key)
	m.Must(err)
	return rows
}

// work ends the jobs that may start; most bounds how many.
func (m *months) work(most int) {
	m.Helper()
	for range 100 {
		if most == 0 {
			return
		}
		row, found := m.open()
		if !found || m.run().MayStart(row, time.Now()) != "" {
			return
		}
		most--
		m.ended[row.Node]++
		o := job.Outcome{Kind: job.OutcomeSucceeded, StartedAt: time.Now(), FinishedAt: time.Now(), Worker: "w",
			Result: json.RawMessage(`"` + strings.Repeat(row.Node, 300) + `"`)}
		if m.fails[row.Node] {
			o = job.Outcome{Kind: job.OutcomeFailed, Permanent: true, StartedAt: time.Now(), FinishedAt: time.Now(),
				Error: &job.Reason{Code: "x"}}
		}
		owner := job.Owner{Worker: "w", Nonce: "n", LeaseUntil: time.Now().Add(contract.Lease), DueAt: row.DueAt}
		m.Write(job.ClaimNew(row.Key, row.Attempt, owner))
		d, err := job.Settle(&row, row.Attempt, o, time.Now())
		m.Must(err)
		for _, w := range d.Contents {
			m.Write(w)
		}
		m.Must(m.Store.PutRow(m.Context(), d.After, d.Write))
		m.Must(m.Ended(m.Context(), d.After))
	}
}

// open is a job of the run that is open.
func (m *months) open() (job.Row, bool) {
	m.Helper()
	for _, row := range m.rows() {
		if row.Status == job.Scheduled {
			return row, true
		}
		for i := range row.Items {
			rows, err := m.Store.Nodes(m.Context(), []job.Key{m.key.Job(row.Node, row.Generation, i+1)})
			m.Must(err)
			if rows[0].Status == job.Scheduled {
				return rows[0], true
			}
		}
	}
	return job.Row{}, false
}

// pass lets that many days pass, and a wake-up of the run come after every few.
func (m *months) pass(days, every int) {
	m.Helper()
	for range days / every {
		time.Sleep(time.Duration(every) * day)
		m.Must(m.Runs.Due(m.Context(), m.key))
	}
}

func (m *months) is(node string, s job.Status, ended int) {
	m.Helper()
	if row := m.rows()[node]; row.Status != s || m.ended[node] != ended {
		m.Errorf("after %s node %s is %q and was run %d times, want %s and %d", time.Since(m.key.ID.At()), node,
			row.Status, m.ended[node], s, ended)
	}
}

func (m *months) runIs(s run.Status) {
	m.Helper()
	if is := m.run(); is.Shown() != s {
		m.Errorf("after %s the run is %s (%s), want %s", time.Since(m.key.ID.At()), is.Shown(), is.Reason.Message, s)
	}
}

// seesA is a chain whose last node reads the first one's result.
func seesA() dag.Definition {
	d := def("a", "b: a", "c: b")
	n := d.Nodes["c"]
	n.Payload = []byte(`"${nodes.a.result}"`)
	d.Nodes["c"] = n
	return d
}

func (m *months) cSeesA() {
	m.Helper()
	row := m.rows()["c"]
	payload, err := m.Store.Payload(m.Context(), row)
	if err != nil || string(payload) != `"`+strings.Repeat("a", 300)+`"` {
		m.Errorf("c has a payload of %d bytes, %v", len(payload), err)
	}
	if c, err := m.Store.Claim(m.Context(), m.key.Job("a", 1, 0)); err != nil || c.Attempt != 1 {
		m.Errorf("the claim of a is %+v, %v", c, err)
	}
}

//proof:of F63
func TestRun_StartsNothingTwiceAfterMonths(t *testing.T) {
	t.Parallel()
	held := seesA()
	held.OnFailure = dag.Hold
	inMonths(t, "while it is held, and its wake-ups come", held, func(m *months) {
		m.fails["b"] = true
		m.work(9)
		m.runIs(run.Held)
		m.pass(1200, 5)
		m.runIs(run.Held)
		_, err := m.Runs.Skip(m.Context(), m.key, "b", false, by)
		m.Must(err)
		m.is("a", job.Succeeded, 1)
		m.cSeesA()
		m.work(9)
		m.runIs(run.Succeeded)
	})
	inMonths(t, "while it is held, and no wake-up comes for a year", held, func(m *months) {
		m.fails["b"] = true
		m.work(9)
		m.pass(1, 1)
		time.Sleep(360 * day)
		m.pass(1, 1)
		m.runIs(run.Held)
		_, err := m.Runs.Skip(m.Context(), m.key, "b", false, by)
		m.Must(err)
		m.is("a", job.Succeeded, 1)
		m.cSeesA()
	})
	inMonths(t, "while it is paused", seesA(), func(m *months) {
		m.work(1)
		_, err := m.Runs.Pause(m.Context(), m.key, by)
		m.Must(err)
		m.pass(400, 33)
		_, err = m.Runs.Resume(m.Context(), m.key, by)
		m.Must(err)
		m.is("a", job.Succeeded, 1)
		m.work(1)
		m.pass(100, 4) // what ended after the pause is kept as well
		m.work(9)
		m.cSeesA()
		m.is("b", job.Succeeded, 1)
		m.runIs(run.Succeeded)
	})
	inMonths(t, "when it is retried after it has ended", seesA(), func(m *months) {
		m.fails["b"] = true
		m.work(9)
		m.runIs(run.Failed)
		time.Sleep(contract.DeadKept - day)
		m.fails["b"] = false
		_, err := m.Runs.Retry(m.Context(), m.key, "", by)
		m.Must(err)
		m.is("a", job.Succeeded, 1)
		m.pass(100, 5)
		m.work(9)
		m.cSeesA()
		m.is("b", job.Succeeded, 2)
		m.runIs(run.Succeeded)
	})
	inMonths(t, "when its dead job is redriven", seesA(), func(m *months) {
		m.fails["b"] = true
		m.work(9)
		dead := m.rows()["b"]
		time.Sleep(80 * day)
		m.fails["b"] = false
		_, _, err := m.Redrive(m.Context(), dead.Key, nil)
		m.Must(err)
		m.work(9)
		m.is("a", job.Succeeded, 1)
		m.runIs(run.Succeeded)
	})
	mapped := def("m", "z: m")
	n := mapped.Nodes["m"]
	n.ForEach, n.MaxParallel, n.Payload = "${[1, 2, 3, 4, 5, 6]}", 1, []byte(`"${item}"`)
	mapped.Nodes["m"] = n
	inMonths(t, "while a mapped node lasts", mapped, func(m *months) {
		for range 6 {
			m.work(1)
			m.pass(36, 4)
		}
		m.is("m", job.Succeeded, 6)
		m.work(9)
		m.runIs(run.Succeeded)
	})
	inMonths(t, "while it waits for its due time", seesA(), func(m *months) {
		later := run.Key{Tenant: "acme", ID: job.DeterministicID(time.Now(), "later")}
		due := time.Now().Add(300 * day)
		_, _, err := m.Runs.Create(m.Context(), runs.Request{Key: later, Definition: seesA(), DueAt: due})
		m.Must(err)
		m.key = later
		_, err = m.Runs.Complete(m.Context(), later, "b", nil, by)
		m.Must(err)
		for time.Now().Before(due) {
			at := m.run().WakeAt
			if time.Until(at) > 20*day {
				m.Fatalf("it wakes at %s only", at)
			}
			time.Sleep(time.Until(at))
			m.Must(m.Runs.Due(m.Context(), later))
		}
		m.is("b", job.Succeeded, 0)
		m.work(9)
		m.is("b", job.Succeeded, 0)
		m.runIs(run.Succeeded)
	})
}

// TestRun_EndsWhenWhatHasEndedIsForgotten lets no wake-up of a running run come for so long that its rows are gone.
//
//proof:of F63
func TestRun_EndsWhenWhatHasEndedIsForgotten(t *testing.T) {
	t.Parallel()
	inMonths(t, "and starts again only what an operator names", seesA(), func(m *months) {
		m.work(1)
		time.Sleep(contract.NodeKept + day)
		m.pass(1, 1)
		m.pass(1, 1)
		m.runIs(run.Failed)
		m.is("b", job.Cancelled, 0)
		if is := m.run(); is.Reason.Code != run.ReasonExpired || !is.Lost {
			m.Errorf("its reason is %+v", is.Reason)
		}
		_, err := m.Runs.Retry(m.Context(), m.key, "", by)
		if wrong := new(runs.WrongState); !errors.As(err, &wrong) {
			m.Errorf("a retry is %v", err)
		}
		_, err = m.Runs.Retry(m.Context(), m.key, "c", by)
		m.Must(err)
		if m.ended["a"] != 1 || m.rows()["c"].Generation != 2 {
			m.Errorf("a was run %d times, and c is %+v", m.ended["a"], m.rows()["c"].Status)
		}
	})
}

// everything notes each item that a call writes.
type everything struct {
	mu   sync.Mutex // held briefly
	refs map[item.Ref]string
}

func (e *everything) note(c memory.Call) memory.Fault {
	if c.Op != memory.TableWrite && c.Op != memory.TableCommit {
		return memory.Fault{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ref := range append(c.Refs, c.Ref) {
		e.refs[ref] = cmp.Or(e.refs[ref], c.Name)
	}
	return memory.Fault{}
}

// left returns what is there of all that was written. What the table lets go is first treated as by the stream, which
// deletes the contents of rows.
func (e *everything) left(m *months) (left []string) {
	m.Helper()
	rows := map[item.Ref]job.Row{}
	for ref := range e.refs {
		i, err := m.World.Table().Get(m.Context(), ref)
		m.Must(err)
		if row, err := job.ParseRow(i); err == nil && ref.Table == contract.Jobs {
			rows[ref] = row
		}
	}
	m.World.Table().Expire()
	for ref, row := range rows {
		i, err := m.World.Table().Get(m.Context(), ref)
		m.Must(err)
		if _, asks := job.Forgotten(row); i == nil && asks {
			m.Must(m.Store.ForgetContents(m.Context(), row))
		}
	}
	for ref, name := range e.refs {
		i, err := m.World.Table().Get(m.Context(), ref)
		m.Must(err)
		if i != nil {
			left = append(left, fmt.Sprintf("%s, written by %s, expires at %v", ref, name,
				time.Unix(i.Int(contract.AttrExpiresAt), 0).UTC()))
		}
	}
	slices.Sort(left)
	return left
}

// noneOf reports what is left but for what is shared with other runs.
func (m *months) noneOf(left []string, but ...string) {
	m.Helper()
	for _, l := range left {
		if !slices.ContainsFunc(but, func(b string) bool { return strings.HasPrefix(l, b) }) {
			m.Errorf("left is %s", l)
		}
	}
}

// TestRun_LeavesNothingBehind lets a run of all kinds end, and its time pass: no item of it is left, of whatever kind.
// A new kind of item needs a time to live.
func TestRun_LeavesNothingBehind(t *testing.T) {
	t.Parallel()
	d := def("a1", "a2", "a3", "a4", "a5", "a6", "j: a1 a2 a3 a4 a5 a6", "m: j", "x: m", "z: x")
	d.OnFailure, d.MaxConcurrency = dag.Hold, 2
	with(d, "m", func(n *dag.Node) {
		n.ForEach, n.MaxParallel = "${[1, 2, 3, 4, 5, 6, 7]}", 3
		n.Payload = []byte(`{"item": "${item}", "text": "` + strings.Repeat("p", 600) + `"}`)
	})
	with(d, "z", func(n *dag.Node) { n.Payload = []byte(`"${nodes.x.result}"`) })
	for name, lasts := range map[string]int{"a short run": 1, "a run that goes on for half a year": 180} {
		e := &everything{refs: map[item.Ref]string{}}
		inMonths(t, name, def("first"), func(m *months) {
			m.World.SetFaults(e.note)
			m.key = run.Key{Tenant: "acme", ID: job.DeterministicID(time.Now(), "another")}
			_, created, err := m.Runs.Create(m.Context(), runs.Request{Key: m.key, Definition: d, By: by,
				Params: json.RawMessage(`{"p": "` + strings.Repeat("p", 600) + `"}`),
				Tags:   map[string]string{"team": "billing"}})
			if m.Must(err); !created {
				m.Fatal("there is a run already")
			}
			m.work(4)
			for range lasts {
				m.pass(1, 1)
				m.World.Table().Expire()
			}
			m.fails["x"] = true
			m.work(100)
			m.runIs(run.Held)
			_, err = m.Runs.Complete(m.Context(), m.key, "x", json.RawMessage(`"`+strings.Repeat("r", 600)+`"`), by)
			m.Must(err)
			m.work(100)
			m.runIs(run.Succeeded)
			time.Sleep(contract.DeadKept - day)
			if len(e.left(m)) == 0 {
				m.Error("nothing is left while the run may be retried")
			}
			time.Sleep(contract.NodeKept - contract.DeadKept + 8*day)
			m.noneOf(e.left(m), run.DefinitionRef(m.key.Tenant, d.Hash()).String(), "tasks/tasked#")
			time.Sleep(contract.NodeKept) // a note for the lists of a task lives for as long as retries may take
			m.noneOf(e.left(m), run.DefinitionRef(m.key.Tenant, d.Hash()).String())
		})
	}
}

// TestRun_IsKeptInSeveralWakeUps has a run of which one wake-up cannot keep everything: the next ones continue, and the
// run is brought on at each of them.
func TestRun_IsKeptInSeveralWakeUps(t *testing.T) {
	t.Parallel()
	wakeUps := func(m *months, most int, before func()) {
		m.Helper()
		time.Sleep(20 * day)
		for n := range most {
			before()
			at := m.run().WakeAt
			ctx, cancel := context.WithTimeout(m.Context(), scan.EntryTime)
			m.Must(m.Runs.Due(ctx, m.key))
			cancel()
			is := m.run()
			if !is.WakeAt.After(at) {
				m.Fatalf("at wake-up %d the run was not brought on", n+1)
			}
			if !is.KeptUntil.IsZero() {
				return
			}
			time.Sleep(time.Until(is.WakeAt))
		}
		m.Errorf("after %d wake-ups the run is not kept", most)
	}
	d := def("a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "z: a1 a2 a3 a4 a5 a6 a7 a8")
	inMonths(t, "because calls fail", d, func(m *months) {
		m.work(8)
		left := 0
		var mu sync.Mutex // held briefly
		m.World.SetFaults(func(c memory.Call) memory.Fault {
			mu.Lock()
			defer mu.Unlock()
			if c.Name != job.WriteKeep {
				return memory.Fault{}
			}
			if left--; left < 0 {
				return memory.Fault{Fail: fault.Throttled}
			}
			return memory.Fault{}
		})
		wakeUps(m, 4, func() {
			mu.Lock()
			defer mu.Unlock()
			left = 3
		})
	})
	inMonths(t, "because calls take long", def("a", "z: a"), func(m *months) {
		m.work(1)
		for n := range 2000 {
			ref := m.run().JoinRef(strconv.Itoa(n), 1)
			_, err := m.Store.Count(m.Context(), m.key, ref, 1, time.Now())
			m.Must(err)
		}
		m.Fault(stagetest.Named(run.WriteKeepItem), memory.Fault{Wait: 100 * time.Millisecond})
		wakeUps(m, 4, func() {})
	})
}

package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"punctual/shared/dag"
	"punctual/shared/job"
)

// Afters are stories about single jobs that come after others.
var Afters = []Story{
	{Name: "after two jobs", Play: func(w *Client) func() {
		a := w.Post("a", object{"payload": Work{Sleep: "3s"}})
		b := w.Post("b", object{"delay": "2s"})
		c := w.PostAfter("c", nil, a, b)
		return func() {
			w.Is(c, 1, job.Succeeded)
			w.RanAfter(c, 0, a, b)
		}
	}},
	{Name: "after a failure, down a chain", Play: func(w *Client) func() {
		a := w.Post("a", object{"payload": Work{Permanent: true}})
		b := w.PostAfter("b", nil, a)
		c := w.PostAfter("c", nil, b)
		d := w.PostAfter("d", object{"run_if": "all_done"}, c)
		return func() {
			w.Is(a, 1, job.Dead)
			w.Fell(b, dag.ReasonParentFailed)
			w.Fell(c, dag.ReasonParentFailed)
			w.Is(d, 1, job.Succeeded)
			w.Ran(b, 0)
			w.Ran(c, 0)
		}
	}},
	{Name: "after a job that tries again", Play: func(w *Client) func() {
		a := w.Post("a", object{"payload": Work{Fail: 1}})
		b := w.PostAfter("b", nil, a)
		return func() {
			w.Is(b, 1, job.Succeeded)
			w.RanAfter(b, 0, a)
		}
	}},
	{Name: "after a job that ends meanwhile", Play: func(w *Client) func() {
		a := w.Post("a", object{})
		ids := make([]job.ID, 4)
		for n := range ids { // before it starts, while it runs, as it is settled, and later
			ids[n] = w.PostAfter(string(rune('b'+n)), nil, a)
			time.Sleep(3 * time.Millisecond)
		}
		return func() {
			for _, id := range ids {
				w.Is(id, 1, job.Succeeded)
				w.RanAfter(id, 0, a)
			}
		}
	}},
	{Name: "half a minute after a job", Play: func(w *Client) func() {
		a := w.Post("a", object{"delay": "5s"})
		b := w.PostAfter("b", object{"delay": "30s"}, a)
		return func() {
			w.Is(b, 1, job.Succeeded)
			w.RanAfter(b, 30*time.Second-2*w.o.Skew, a)
		}
	}},
	{Name: "after a job, and beyond the horizon", Play: func(w *Client) func() {
		a := w.Post("a", object{})
		b := w.PostAfter("b", object{"delay": "40m"}, a)
		return func() {
			w.Is(b, 1, job.Succeeded)
			w.RanAfter(b, 40*time.Minute-2*w.o.Skew, a)
		}
	}},
	{Name: "after a job that expires", Play: func(w *Client) func() {
		a := w.Post("a",
			object{"payload": Work{Fail: 9}, "expire_after": "3s", "retry": object{"initial_delay": "10s"}})
		b := w.PostAfter("b", object{"run_if": "one_failed"}, a)
		return func() {
			w.Is(b, 1, job.Succeeded)
			w.RanAfter(b, 0, a)
		}
	}},
	{Name: "a blocked job is cancelled", Play: func(w *Client) func() {
		a := w.Post("a", object{"delay": "20s"})
		b := w.PostAfter("b", nil, a)
		c := w.PostAfter("c", object{"run_if": "all_failed"}, b)
		code, _ := w.Want([]int{200, 202, 409}, "POST", "/jobs/"+string(b)+"/cancel", nil)
		return func() {
			w.Is(a, 1, job.Succeeded)
			if code == 200 {
				w.Is(b, 1, job.Cancelled)
				w.Ran(b, 0)
				w.Is(c, 1, job.Succeeded)
			}
			w.RanAfter(c, 0, b)
		}
	}},
	{Name: "a job is cancelled as it is released", Workers: 2, Play: func(w *Client) func() {
		a := w.Post("a", object{})
		b := w.PostAfter("b", object{"payload": Work{Sleep: "12s"}}, a)
		code, _ := w.Want([]int{200, 202, 409}, "POST", "/jobs/"+string(b)+"/cancel", nil)
		return func() {
			if code == 200 {
				w.Is(b, 1, job.Cancelled)
				return
			}
			w.Is(b, 1, job.Cancelled, job.Succeeded)
			w.RanAfter(b, 0, a)
		}
	}},
	{Name: "a batch whose jobs come after each other", Play: func(w *Client) func() {
		jobs := []object{
			{"idempotency_key": "a"}, {"idempotency_key": "b", "after": []string{"#0"}},
			{"idempotency_key": "c", "after": []string{"#0", "#1"}},
		}
		for _, j := range jobs {
			j["task"] = taskOf(w.tenant)
			w.own(j)
		}
		_, v := w.Want([]int{200}, "POST", "/jobs/batch", object{"jobs": jobs})
		ids := make([]job.ID, len(jobs))
		items, _ := v["items"].([]any)
		for n, i := range items {
			of, _ := i.(object)["job"].(object)
			id, _ := of["job_id"].(string)
			ids[n] = job.ID(id)
		}
		return func() {
			if len(items) == 0 {
				return // it was not answered, and that is noted
			}
			for _, id := range ids {
				if w.faults() == 0 || id != "" { // a fault may refuse a part of the batch
					w.Is(id, 1, job.Succeeded)
				}
			}
			w.RanAfter(ids[1], 0, ids[0])
			w.RanAfter(ids[2], 0, ids[0], ids[1])
		}
	}},
	{Name: "a paused job comes after one that is not", Held: true, Play: func(w *Client) func() {
		a := w.Post("a", object{"payload": Work{Sleep: "5s"}})
		b := w.PostAfter("b", nil, a)
		time.Sleep(2 * time.Second)
		n := w.Pause(object{"reason": "maintenance"})
		time.Sleep(time.Minute)
		w.Lift(n)
		return func() {
			w.Is(b, 1, job.Succeeded)
			w.RanAfter(b, 0, a)
		}
	}},
}

// PostAfter is Post of a job that comes after others.
func (w *Client) PostAfter(key string, body object, after ...job.ID) job.ID {
	if body == nil {
		body = object{}
	}
	body["after"] = after
	for _, id := range after {
		if id == "" {
			return "" // a violation of its request is already noted
		}
	}
	return w.Post(key, body)
}

// comesAfter posts a job after up to three random ones, in whatever state they are, and may cancel it.
func (w *Client) comesAfter(n int, d *rand.Rand) {
	sleepUpTo(d, 5*time.Minute)
	body := object{"delay": []string{"0s", "7s", "3m"}[d.IntN(3)], "run_if": dag.Rules[d.IntN(len(dag.Rules))]}
	after := []job.ID{}
	if rows := w.rows(); len(rows) > 0 {
		for range 1 + d.IntN(3) {
			after = append(after, rows[d.IntN(len(rows))].ID)
		}
	}
	id := w.PostAfter(fmt.Sprintf("after %d", n), body, after...)
	if id == "" {
		return
	}
	for range d.IntN(3) {
		sleepUpTo(d, 40*time.Second)
		w.changesTheirMind(id, d)
	}
}

// RanAfter verifies that each run of a job started at least that long after its parents were over.
func (w *Client) RanAfter(id job.ID, least time.Duration, parents ...job.ID) {
	for _, r := range w.of(id) {
		for _, p := range parents {
			if p == "" {
				continue
			}
			if at, over := w.ledger.overAt(job.Key{Tenant: w.tenant, ID: p}); !over || r.from.Sub(at) < least {
				w.violation("job %s started %s after %s was over (%v), want %s", short(id), r.from.Sub(at), short(p),
					over, least)
			}
		}
	}
}

// Fell verifies that a job was cancelled by its rule.
func (w *Client) Fell(id job.ID, code string) {
	w.Is(id, 1, job.Cancelled)
	if r, ok := w.row(id); ok && r.Reason.Code != code {
		w.violation("job %s is cancelled because of %q, want %q", short(id), r.Reason.Code, code)
	}
}

// chosen verifies that a job was released, or ended, as its parents' rows say. The lock is held.
func (l *ledger) seeEvaluated(next job.Row, bad func(string, ...any)) {
	is, ok, err := dag.AfterOf(next)
	if !ok || err != nil {
		bad("it says nothing of what it comes after: %v", err)
		return
	}
	for i, p := range is.Parents {
		row, there := l.rows[job.Key{Tenant: next.Tenant, ID: p.ID}]
		if !there { // it was forgotten
			continue
		}
		is.Parents[i].End = dag.EndOf(row.Status)
	}
	v, why := is.Evaluate()
	fits := v == dag.Run && next.Status == job.Scheduled ||
		(v == dag.Cancel || v == dag.Skip) && next.Status == v.Status() && next.Reason.Code == why.Code
	if !fits {
		bad("it is %s (%s), and its parents say %s (%s)", next.Status, next.Reason.Code, v, why.Code)
	}
}

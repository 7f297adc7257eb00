package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"punctual/shared/job"
)

// Limited are stories about limits of work.
var Limited = []Story{
	{Name: "a limit of two, seven jobs", Held: true, Workers: 2, Play: func(w *Client) func() {
		w.limit("two", object{"max_running": 2})
		ids := w.postLimited(7, "two", "k", Work{Sleep: "3s"})
		return func() {
			w.allRan(ids)
			w.AtMost(2, ids)
		}
	}},
	{Name: "a limit of one, and jobs that try again", Held: true, Play: func(w *Client) func() {
		w.limit("one", object{"max_running": 1})
		ids := w.postLimited(4, "one", "", Work{Sleep: "1s", Fail: 1})
		return func() {
			for _, id := range ids {
				w.Is(id, 2, job.Succeeded)
			}
			w.AtMost(1, ids)
		}
	}},
	{Name: "two keys of a limit", Held: true, Workers: 2, Play: func(w *Client) func() {
		w.limit("each", object{"max_running": 1})
		a := w.postLimited(3, "each", "a", Work{Sleep: "2s"})
		b := w.postLimited(3, "each", "b", Work{Sleep: "2s"})
		return func() {
			w.allRan(slices.Concat(a, b))
			w.AtMost(1, a)
			w.AtMost(1, b)
		}
	}},
	{Name: "a wide limit", Held: true, Workers: 2, Play: func(w *Client) func() {
		w.limit("wide", object{"max_running": 18})
		ids := w.postLimited(24, "wide", "", Work{Sleep: "4s"})
		return func() {
			w.allRan(ids)
			w.AtMost(18, ids)
		}
	}},
	{Name: "a rate of three in ten seconds", Held: true, Workers: 2, Play: func(w *Client) func() {
		w.limit("rate", object{"rate": object{"count": 3, "per": "10s"}})
		ids := w.postLimited(8, "rate", "k", Work{})
		return func() {
			w.allRan(ids)
			w.AtMostStarts(3, 10*time.Second, ids)
		}
	}},
	{Name: "a limit and a rate", Held: true, Workers: 2, Play: func(w *Client) func() {
		w.limit("both", object{"max_running": 1, "rate": object{"count": 2, "per": "6s"}})
		ids := w.postLimited(5, "both", "", Work{Sleep: "1s"})
		return func() {
			w.allRan(ids)
			w.AtMost(1, ids)
			w.AtMostStarts(2, 6*time.Second, ids)
		}
	}},
	{Name: "a job that waits for a permit is cancelled", Held: true, Play: func(w *Client) func() {
		w.limit("one", object{"max_running": 1})
		ids := w.postLimited(3, "one", "", Work{Sleep: "5s"})
		time.Sleep(2 * time.Second)
		code, _ := w.Want([]int{200, 202, 409}, "POST", "/jobs/"+string(ids[1])+"/cancel", nil)
		return func() {
			if code == 200 {
				w.Is(ids[1], 1, job.Cancelled)
			}
			w.allRan([]job.ID{ids[0], ids[2]})
			w.AtMost(1, ids)
		}
	}},
	{Name: "a job that waits for a permit expires", Held: true, Redo: 2 * time.Minute, Play: func(w *Client) func() {
		w.limit("one", object{"max_running": 1})
		long := w.postLimited(1, "one", "", Work{Sleep: "2m"})
		time.Sleep(5 * time.Second)
		late := w.Post("late", object{"limits": []object{{"name": "one"}}, "start_within": "20s"})
		return func() {
			w.allRan(long)
			w.Is(late, 1, job.Expired, job.Succeeded)
		}
	}},
	{Name: "a limit that skips", Held: true, Play: func(w *Client) func() {
		w.limit("skips", object{"max_running": 1, "when_full": "skip"})
		ids := w.postLimited(1, "skips", "", Work{Sleep: "30s"})
		time.Sleep(10 * time.Second)
		other := w.Post("other", object{"limits": []object{{"name": "skips"}}})
		return func() {
			w.allRan(ids)
			w.Is(other, 1, job.Skipped, job.Succeeded)
		}
	}},
	{Name: "a limit that cancels the oldest", Held: true, Redo: 5 * time.Minute, Play: func(w *Client) func() {
		w.limit("newest", object{"max_running": 1, "when_full": "cancel_oldest"})
		old := w.Post("old", object{
			"limits": []object{{"name": "newest"}}, "payload": Work{Sleep: "5m"}, "timeout": "10m",
		})
		time.Sleep(20 * time.Second)
		next := w.Post("next", object{"limits": []object{{"name": "newest"}}})
		return func() {
			w.Is(old, 1, job.Cancelled, job.Succeeded)
			w.Is(next, 1, job.Succeeded)
			w.AtMost(1, []job.ID{old, next})
		}
	}},
	{Name: "a limit is raised, then deleted", Held: true, Workers: 2, Play: func(w *Client) func() {
		w.limit("one", object{"max_running": 1})
		ids := w.postLimited(6, "one", "", Work{Sleep: "20s"})
		time.Sleep(5 * time.Second)
		w.limit("one", object{"max_running": 2})
		time.Sleep(25 * time.Second)
		w.Want([]int{200, 204, 404}, "DELETE", "/limits/one", nil)
		return func() {
			w.allRan(ids)
		}
	}},
	{Name: "a limit is lowered", Held: true, Workers: 2, Play: func(w *Client) func() {
		w.limit("three", object{"max_running": 3})
		ids := w.postLimited(3, "three", "", Work{Sleep: "10s"})
		time.Sleep(3 * time.Second)
		w.limit("three", object{"max_running": 1})
		more := w.postNamed("more", 3, "three", "", Work{Sleep: "2s"})
		return func() {
			w.allRan(slices.Concat(ids, more))
			w.AtMost(1, more)
			w.AtMost(3, slices.Concat(ids, more))
		}
	}},
	{Name: "two limits", Held: true, Workers: 2, Play: func(w *Client) func() {
		w.limit("one", object{"max_running": 1})
		w.limit("two", object{"max_running": 2})
		both := make([]job.ID, 3)
		for n := range both {
			both[n] = w.Post(fmt.Sprint("both", n), object{
				"limits": []object{{"name": "one"}, {"name": "two"}}, "payload": Work{Sleep: "2s"},
			})
		}
		ids := w.postLimited(4, "two", "", Work{Sleep: "3s"})
		return func() {
			w.allRan(slices.Concat(both, ids))
			w.AtMost(1, both)
			w.AtMost(2, slices.Concat(both, ids))
		}
	}},
	{Name: "a limit under a pause", Held: true, Play: func(w *Client) func() {
		w.limit("one", object{"max_running": 1})
		ids := w.postLimited(3, "one", "", Work{Sleep: "3s"})
		time.Sleep(time.Second)
		n := w.Pause(object{})
		time.Sleep(20 * time.Second)
		w.Lift(n)
		return func() {
			w.allRan(ids)
			w.AtMost(1, ids)
		}
	}},
}

// limit puts a limit of work.
func (w *Client) limit(name string, body object) {
	w.Want([]int{200, 201}, "PUT", "/limits/"+name, body)
}

// postLimited posts n jobs that count under a key of a limit.
func (w *Client) postLimited(n int, name, key string, work Work) []job.ID {
	return w.postNamed("limited", n, name, key, work)
}

func (w *Client) postNamed(prefix string, n int, name, key string, work Work) []job.ID {
	under := object{"name": name}
	if key != "" {
		under["key"] = key
	}
	ids := make([]job.ID, n)
	for i := range ids {
		ids[i] = w.Post(fmt.Sprintf("%s %s %s %d", prefix, name, key, i),
			object{"limits": []object{under}, "payload": work, "retry": object{"initial_delay": "2s"},
				"timeout": "10m"})
	}
	return ids
}

func (w *Client) allRan(ids []job.ID) {
	for _, id := range ids {
		w.Is(id, 1, job.Succeeded)
	}
}

// AtMost requires that never more than n of the jobs ran at a time. A handler whose worker was lost, or which has lost
// its claim, may overlap with others.
func (w *Client) AtMost(n int, ids []job.ID) {
	type edge struct {
		at time.Time
		by int
	}
	var edges []edge
	for _, id := range ids {
		runs := w.of(id)
		for i, r := range runs {
			if r.process.dead.Load() || r.to.IsZero() || i+1 < len(runs) && runs[i+1].attempt == r.attempt {
				continue // it was taken over, or is to be
			}
			edges = append(edges, edge{r.from, 1}, edge{r.to, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by)) })
	running := 0
	for _, e := range edges {
		if running += e.by; running > n {
			w.violation("%d jobs ran at %v under a limit of %d", running, e.at.UTC(), n)
			return
		}
	}
}

// startsLate is how long after its permit a handler may begin.
const startsLate = 2 * time.Second

// AtMostStarts requires that of the jobs never more than n began within a window, but for what a handler may begin
// after it was counted.
func (w *Client) AtMostStarts(n int, window time.Duration, ids []job.ID) {
	var starts []time.Time
	for _, id := range ids {
		for _, r := range w.of(id) {
			starts = append(starts, r.from)
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	for i := n; i < len(starts); i++ {
		if starts[i].Sub(starts[i-n]) < window-startsLate-2*w.o.Skew {
			w.violation("%d jobs began within %v under a rate of %d in %v", n+1, starts[i].Sub(starts[i-n]), n, window)
			return
		}
	}
}

package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
)

// Story is something that people do with jobs, and how it must end, whatever fails in between.
type Story struct {
	Name     string
	Workers  int
	Held     bool          // a pause makes runs late on purpose
	Recurs   bool          // it is about a schedule
	Crowded  bool          // it has so many jobs that the race detector skips it
	Alone    bool          // not for two tenants at once: it affects both, or makes several jobs at once
	Calm     bool          // not in random weather: the story says why
	Redo     time.Duration // how long it takes to repeat what a crash has undone; 0: hardly any time
	Pumps    int
	Cores    int
	Webhooks bool        // events are announced to webhooks
	Indexed  bool        // there is the index of jobs
	Trouble  bool        // it is one of Troubles
	Plan     func() Plan // faults that belong to the story; nil: none
	Play     func(*Client) (end func())
}

// delay is what one fault may cost: a visibility timeout or grace period of three minutes, a minute
// until the sweeper's next pass, and a lease for the next attempt.
const delay = 5 * time.Minute

// Stories are about one-off jobs.
var Stories = []Story{
	{Name: "due now", Play: func(w *Client) func() {
		id := w.Post("k", object{})
		return func() { w.Is(id, 1, job.Succeeded) }
	}},
	{Name: "accepted without a key", Play: func(w *Client) func() {
		// Without a key, a client without an answer may not repeat the request: one request, at
		// most one job.
		code, v := w.Call("POST", "/jobs", object{"task": taskOf(w.tenant)})
		if code == 0 || code >= 500 {
			time.Sleep(20 * time.Second) // it may take effect late
		}
		jobs := len(w.rows())
		if code == 202 {
			id, _ := v["job_id"].(string)
			return func() { w.Is(job.ID(id), 1, job.Succeeded) }
		}
		return func() {
			if n := len(w.rows()); n != jobs || n > 1 || code != 0 && code < 500 || twice(w) {
				w.violation("one request made %d jobs and was answered %d", n, code)
			}
		}
	}},
	{Name: "due in five seconds", Workers: 2, Play: func(w *Client) func() {
		id := w.Post("k", object{"delay": "5s"})
		return func() { w.Is(id, 1, job.Succeeded) }
	}},
	{Name: "due in twenty minutes", Play: func(w *Client) func() {
		id := w.Post("k", object{"delay": "20m"})
		return func() { w.Is(id, 1, job.Succeeded) }
	}},
	{Name: "due beyond the horizon", Play: func(w *Client) func() {
		id := w.Post("k", object{"delay": "40m"})
		return func() { w.Is(id, 1, job.Succeeded) }
	}},
	{Name: "one slice by both lanes", Play: func(w *Client) func() {
		at := time.Now().Truncate(time.Minute).Add(20 * time.Minute)
		due := func(after time.Duration) string { return at.Add(after).UTC().Format(time.RFC3339) }
		ids := []job.ID{
			w.Post("waits", object{"run_at": due(20 * time.Second)}),
			w.Post("leaves", object{"run_at": due(30 * time.Second)}),
			w.Post("enters", object{"run_at": due(2 * time.Hour)}),
		}
		w.Want([]int{200}, "PATCH", "/jobs/"+string(ids[1]), object{"run_at": due(90 * time.Second)})
		time.Sleep(10 * time.Minute)
		ids = append(ids, w.Post("direct", object{"run_at": due(20 * time.Second)}))
		w.Want([]int{200}, "PATCH", "/jobs/"+string(ids[2]), object{"run_at": due(10 * time.Second)})
		time.Sleep(9*time.Minute + 30*time.Second) // the slice has been read
		ids = append(ids, w.Post("late", object{"run_at": due(55 * time.Second)}))
		return func() {
			for _, id := range ids {
				w.Is(id, 1, job.Succeeded)
			}
		}
	}},
	{Name: "retry, then success", Play: func(w *Client) func() {
		id := w.Post("k", object{"payload": Work{Fail: 2}})
		return func() { w.Is(id, 3, job.Succeeded) }
	}},
	{Name: "retry after a minute", Play: func(w *Client) func() {
		id := w.Post("k", object{"payload": Work{Fail: 1}, "retry": object{"initial_delay": "1m"}})
		return func() { w.Is(id, 2, job.Succeeded) }
	}},
	{Name: "snooze", Play: func(w *Client) func() {
		id := w.Post("k", object{"payload": Work{Snooze: 1}, "retry": object{"max_attempts": 1}})
		return func() { w.Is(id, 2, job.Succeeded) }
	}},
	{Name: "long with heartbeats", Workers: 2, Play: func(w *Client) func() {
		id := w.Post("k", object{"payload": Work{Sleep: "35s"}, "timeout": "2m"})
		return func() { w.Is(id, 1, job.Succeeded) }
	}},
	{Name: "timeout, then dead", Play: func(w *Client) func() {
		id := w.Post("k", object{"payload": Work{Sleep: "1m"}, "timeout": "3s", "retry": object{"max_attempts": 1}})
		return func() { w.Is(id, 1, job.Dead) }
	}},
	{Name: "dead, redriven twice", Alone: true, Play: redrivenTwice},
	{Name: "cancel before due", Play: func(w *Client) func() {
		id := w.Post("k", object{"delay": "30s"})
		code, _ := w.Want([]int{200}, "POST", "/jobs/"+string(id)+"/cancel", nil)
		return func() {
			if code == 200 {
				w.Is(id, 1, job.Cancelled)
				w.Ran(id, 0)
			}
		}
	}},
	{Name: "cancel while running", Play: func(w *Client) func() {
		id := w.Post("k", object{"payload": Work{Sleep: "10m"}, "timeout": "20m"})
		time.Sleep(15 * time.Second)
		w.Want([]int{200, 202}, "POST", "/jobs/"+string(id)+"/cancel", nil)
		return func() { w.Is(id, 1, job.Cancelled) }
	}},
	{Name: "cancel at due", Workers: 2, Play: func(w *Client) func() {
		id := w.Post("k", object{"payload": Work{Sleep: "12s"}, "delay": "3s"})
		time.Sleep(2*time.Second + 510*time.Millisecond)
		code, _ := w.Want([]int{200, 202, 409}, "POST", "/jobs/"+string(id)+"/cancel", nil)
		return func() {
			if code == 200 {
				w.Is(id, 1, job.Cancelled)
				return
			}
			w.Is(id, 1, job.Cancelled, job.Succeeded)
		}
	}},
	{Name: "moved earlier", Play: moved("20m", 5*time.Second)},
	{Name: "moved just before due", Workers: 2, Play: movedAt(2 * time.Second)},
	{Name: "moved at the last moment", Workers: 2, Play: movedAt(2600 * time.Millisecond)},
	{Name: "moved later", Play: moved("3s", 30*time.Second)},
	{Name: "moved to now", Play: moved("5m", time.Second)},
	{Name: "moved beyond the direct lane", Play: moved("5s", 16*time.Minute)},
	{Name: "run now", Play: func(w *Client) func() {
		id := w.Post("k", object{"delay": "2h", "payload": Work{Fail: 1}})
		w.Want([]int{200, 409}, "POST", "/jobs/"+string(id)+"/run-now", nil)
		return func() { w.Is(id, 2, job.Succeeded) }
	}},
	{Name: "pause and lift", Held: true, Play: func(w *Client) func() {
		n := w.Pause(object{"reason": "maintenance"})
		time.Sleep(3 * time.Second)
		a := w.Post("a", object{})
		b := w.Post("b", object{"delay": "20s"})
		time.Sleep(time.Minute)
		lifted := time.Now()
		w.Lift(n)
		return func() {
			w.Is(a, 1, job.Succeeded)
			w.Is(b, 1, job.Succeeded)
			for _, r := range append(w.of(a), w.of(b)...) {
				if held := r.from.Sub(lifted); held > 5*time.Second && w.faults() == 0 || held > 5*time.Minute {
					w.violation("it started %s after the pause was lifted", held)
				}
			}
		}
	}},
	{Name: "pause that ends", Held: true, Play: func(w *Client) func() {
		until := time.Now().Add(90 * time.Second).Truncate(time.Second)
		n := w.Pause(object{"until": until.UTC().Format(time.RFC3339)})
		w.Over(n, until.Add(-w.o.Skew))
		id := w.Post("a", object{"delay": "5s"})
		return func() { w.Is(id, 1, job.Succeeded) }
	}},
	{Name: "start_within passes", Held: true, Play: func(w *Client) func() {
		n := w.Pause(object{})
		time.Sleep(3 * time.Second)
		id := w.Post("k", object{"start_within": "10s"})
		time.Sleep(30 * time.Second)
		w.Lift(n)
		return func() {
			// A worker that is lost between its claim and its read of the pause leaves a start that only the
			// claim knows of, which makes start_within void: the job is taken over.
			if r, _ := w.row(id); w.lostOwner(r.Key) && r.Status == job.Succeeded {
				w.Ran(id, 1)
				return
			}
			w.Is(id, 1, job.Expired)
			w.Ran(id, 0)
		}
	}},
	{Name: "expire_after passes while retrying", Play: func(w *Client) func() {
		id := w.Post("k", object{"expire_after": "20s", "payload": Work{Fail: 20}, "retry": object{"max_attempts": 20}})
		return func() { w.Is(id, 0, job.Dead, job.Expired) }
	}},
	{Name: "a job crashes its workers", Alone: true, Held: true, Workers: 2, Play: func(w *Client) func() {
		w.poison = true
		id := w.Post("k", object{"payload": Work{Kill: true}})
		return func() {
			w.Is(id, 1, job.Dead)
			r, _ := w.row(id)
			if n := len(w.of(id)); r.Reason.Code != job.CodePoison || n > contract.MaxTakeovers ||
				n < contract.MaxTakeovers && w.faults() == 0 {
				w.violation("it ended as %s after killing %d workers", r.Reason.Code, n)
			}
		}
	}},
	{Name: "nobody works for twenty minutes", Alone: true, Held: true, Play: func(w *Client) func() {
		w.Strike()
		time.Sleep(5 * time.Second) // the last receives have ended
		id := w.Post("k", object{})
		for range 20 {
			time.Sleep(time.Minute)
			// A job that stays open gets its next wake-up, and repeated sweeps do not double the load.
			if r, ok := w.row(id); ok && w.faults() == 0 &&
				time.Since(r.WakeAt) > contract.Grace+time.Minute+time.Second {
				w.violation("its wake-up is overdue by %s", time.Since(r.WakeAt))
			}
		}
		if n := w.holds(contract.FiringQueue("short", "normal")); n > 10 {
			w.violation("%d firings of one job wait in the queue", n)
		}
		w.startWorker()
		return func() { w.Is(id, 1, job.Succeeded) }
	}},
	{Name: "its worker drains", Alone: true, Play: func(w *Client) func() {
		id := w.Post("k", object{"payload": Work{Sleep: "12s"}})
		time.Sleep(3 * time.Second)
		w.Deploy()
		return func() {
			w.Is(id, 1, job.Succeeded)
			if w.faults() == 0 {
				w.Ran(id, 1)
			}
		}
	}},
	{Name: "its worker drains and cannot wait", Alone: true, Held: true, Play: func(w *Client) func() {
		w.rerun = true
		id := w.Post("k", object{"payload": Work{Sleep: "50s"}, "timeout": "2m"})
		time.Sleep(3 * time.Second)
		w.Deploy()
		return func() {
			w.Is(id, 1, job.Succeeded)
			if w.faults() == 0 {
				w.Ran(id, 2)
			}
		}
	}},
	{Name: "batch with keys", Alone: true, Play: func(w *Client) func() {
		body := object{"jobs": []object{
			{"task": taskOf(w.tenant), "idempotency_key": "a"},
			{"task": taskOf(w.tenant), "idempotency_key": "b", "delay": "4s"},
			{"task": taskOf(w.tenant), "idempotency_key": "a"},
			{"task": taskOf(w.tenant), "payload": Work{Permanent: true}, "idempotency_key": "c"},
		}}
		var first []job.ID
		for n := range 2 {
			_, v := w.Want([]int{200}, "POST", "/jobs/batch", body)
			ids := idsOf(v)
			// Items may be refused for the moment; accepted ones stay the same.
			for m := 0; len(ids) < 4 || ids[0] == "" || ids[1] == "" || ids[2] == "" || ids[3] == ""; m++ {
				if m > 20 {
					w.violation("the batch is not accepted: %v", v)
					return func() {}
				}
				time.Sleep(time.Second)
				_, v = w.Want([]int{200}, "POST", "/jobs/batch", body)
				ids = idsOf(v)
			}
			if n == 0 {
				first = ids
			}
			for i := range ids {
				if ids[i] != first[i] {
					w.violation("the same key gave %s and %s", first[i], ids[i])
				}
			}
			if ids[0] != ids[2] {
				w.violation("one key gave two jobs in one batch")
			}
			time.Sleep(time.Second)
		}
		return func() {
			w.Is(first[0], 1, job.Succeeded)
			w.Is(first[1], 1, job.Succeeded)
			w.Is(first[3], 1, job.Dead)
			if n := len(w.rows()); n != 3 {
				w.violation("there are %d jobs of 3 keys", n)
			}
		}
	}},
	{Name: "a crowded slice", Alone: true, Crowded: true, Play: func(w *Client) func() {
		ids := w.crowd(w.nextCrowd())
		return func() {
			for _, id := range ids {
				w.Is(id, 1, job.Succeeded)
			}
		}
	}},
	{Name: "large payload and result", Play: func(w *Client) func() { return w.large(3_000, job.InItem) }},
	{Name: "a result in an object", Play: func(w *Client) func() { return w.large(12_000, job.InBlob) }},
	{Name: "forgotten when it is over", Play: func(w *Client) func() {
		id := w.Post("k", object{"payload": Work{Permanent: true}})
		for n := 0; ; n++ {
			code, _ := w.Want([]int{204, 404, 409}, "DELETE", "/jobs/"+string(id), nil)
			if code != 409 || n > 1000 {
				break
			}
			time.Sleep(time.Second)
		}
		return func() {
			if _, there := w.row(id); there {
				w.violation("job %s was forgotten and is there", short(id))
			}
		}
	}},
}

// large posts a job whose payload and result have about that many bytes, and requires that both are kept whole, the
// result where in says.
func (w *Client) large(bytes int, in string) func() {
	mark := strings.Repeat("x", bytes)
	id := w.Post("k", object{"payload": Work{Mark: mark, Fail: 1}, "tags": object{"team": "billing"}})
	return func() {
		w.Is(id, 2, job.Succeeded)
		for _, r := range w.of(id) {
			if r.mark != mark {
				w.violation("the handler was given another payload")
			}
		}
		row, there := w.row(id)
		if !there || row.Status != job.Succeeded {
			return // the story has said so
		}
		if row.ResultIn != in || row.Partial != job.Whole {
			w.violation("the result of job %s is in %q, partial %q", short(id), row.ResultIn, row.Partial)
		}
		if result, err := w.behindTheScenes().Result(context.Background(), row); err != nil || result != `"`+mark+`"` {
			w.violation("job %s has a result of %d bytes: %v", short(id), len(result), err)
		}
	}
}

// crowdOf is more than a page of a slice.
const crowdOf = 170

// nextCrowd returns a minute beyond the horizon for a crowd.
func (w *Client) nextCrowd() time.Time { return time.Now().Truncate(time.Minute).Add(34 * time.Minute) }

// lotOf is how many jobs of a crowd one batch posts. A batch is many calls, and any of them may crash its API or leave
// the client without an answer: in the worst weather one of a hundred jobs is answered at no try.
const lotOf = 20

// crowd posts crowdOf jobs, all due within that minute if they are accepted at once. They have a delay and no time:
// under faults a lot may be accepted only after the minute has passed, and a time would be refused for good by then.
func (w *Client) crowd(minute time.Time) (ids []job.ID) {
	lead := time.Until(minute)
	for len(ids) < crowdOf {
		var jobs []object
		for n := len(ids); n < min(crowdOf, len(ids)+lotOf); n++ {
			after := lead + time.Duration(n)*time.Minute/crowdOf
			jobs = append(jobs, object{"task": taskOf(w.tenant), "idempotency_key": fmt.Sprintf("crowd %d", n),
				"delay": fmt.Sprintf("%dms", after.Milliseconds())})
		}
		ids = append(ids, w.postAll(jobs)...)
	}
	return ids
}

// postAll posts jobs in one batch, and those that are refused for the moment in another.
func (w *Client) postAll(jobs []object) []job.ID {
	ids := make([]job.ID, len(jobs))
	for range 60 {
		var left []object
		var at []int
		for n, id := range ids {
			if id == "" {
				left, at = append(left, jobs[n]), append(at, n)
			}
		}
		if len(left) == 0 {
			return ids
		}
		_, v := w.Want([]int{200}, "POST", "/jobs/batch", object{"jobs": left})
		for n, id := range idsOf(v) {
			ids[at[n]] = id
		}
		time.Sleep(time.Second)
	}
	w.violation("of a batch not all are accepted")
	return ids
}

func idsOf(batch object) []job.ID {
	items, _ := batch["items"].([]any)
	ids := make([]job.ID, len(items))
	for i, it := range items {
		j, _ := it.(object)["job"].(object)
		s, _ := j["job_id"].(string)
		ids[i] = job.ID(s)
	}
	return ids
}

// moved moves a job before it is due.
func moved(delay string, to time.Duration) func(*Client) func() {
	return func(w *Client) func() {
		id := w.Post("k", object{"delay": delay})
		at := time.Now().Add(to).Truncate(time.Millisecond)
		w.Want([]int{200, 409}, "PATCH", "/jobs/"+string(id),
			object{"run_at": at.UTC().Format("2006-01-02T15:04:05.000Z07:00"), "payload": Work{Mark: "new"}})
		return func() {
			w.Is(id, 1, job.Succeeded)
			r, _ := w.row(id)
			for _, run := range w.of(id) {
				if r.Version > 1 && run.mark != "new" {
					w.violation("job %s ran with its old payload at version %d", short(id), r.Version)
				}
			}
		}
	}
}

// movedAt moves a job that is due in three seconds after passed.
func movedAt(passed time.Duration) func(*Client) func() {
	return func(w *Client) func() {
		id := w.Post("k", object{"delay": "3s"})
		time.Sleep(passed)
		at := time.Now().Add(20 * time.Second)
		code, _ := w.Want([]int{200, 409}, "PATCH", "/jobs/"+string(id),
			object{"run_at": at.UTC().Format(time.RFC3339)})
		return func() {
			w.Is(id, 1, job.Succeeded)
			if r, _ := w.row(id); code == 200 && r.Version < 2 {
				w.violation("the move was acknowledged, and the row is at version %d", r.Version)
			}
		}
	}
}

func redrivenTwice(w *Client) func() {
	id := w.Post("k", object{"payload": Work{Fail: 1}, "retry": object{"max_attempts": 1}})
	for range 3 { // the redriven jobs die as well, and their dead letters return with the next redrive
		w.Settle(20 * time.Minute)
		time.Sleep(20 * time.Second) // earlier, a dead letter could be mistaken for the one just sent
		w.Redrive()
		time.Sleep(2 * time.Second)
	}
	return func() {
		w.Is(id, 1, job.Dead)
		if r, _ := w.row(id); r.RedrivenBy == "" {
			w.violation("job %s was not brought back", short(id))
		} else if code, v := w.Ask("POST", "/jobs/"+string(id)+"/redrive", nil); code != 409 ||
			v["redriven_by"] != string(r.RedrivenBy) {
			w.violation("bringing it back once more answered %d %v", code, v)
		}
	}
}

// twice reports whether the only fault was a repeated call, which is no reason to refuse.
func twice(w *Client) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.struck) == 1 && strings.HasPrefix(w.struck[0], string(Twice))
}

package sim

import (
	"fmt"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/memory"
)

// lastSeconds are about what happens in the last second before due.
var lastSeconds = []Story{
	{Name: "cancelled in the last second", Workers: 2, Play: func(w *Client) func() {
		cancelled := w.lastSecond(func(id job.ID) (object, int) {
			code, v := w.Want([]int{200, 202, 409}, "POST", "/jobs/"+string(id)+"/cancel", nil)
			return v, code
		})
		return func() {
			for id, code := range cancelled {
				if code == 200 || code == 202 {
					w.Is(id, 1, job.Cancelled)
					w.Ran(id, 0)
				}
			}
		}
	}},
	{Name: "edited in the last second", Workers: 2, Play: func(w *Client) func() {
		edited := w.lastSecond(func(id job.ID) (object, int) {
			body := object{"payload": Work{Mark: "new", Owner: secretOf(w.tenant)}}
			code, v := w.Want([]int{200, 409}, "PATCH", "/jobs/"+string(id), body)
			return v, code
		})
		return func() {
			for id, code := range edited {
				w.Is(id, 1, job.Succeeded)
				for _, r := range w.of(id) {
					if code == 200 && r.mark != "new" {
						w.violation("job %s ran as it was before the edit that was answered before due", short(id))
					}
				}
			}
		}
	}},
	{Name: "its task is paused in the last seconds", Held: true, Workers: 2, Play: func(w *Client) func() {
		var ids []job.ID
		for n := range 8 {
			early := 2*time.Second + time.Duration(n)*37*time.Millisecond
			id := w.Post(fmt.Sprint(n), object{"delay": "5s"})
			r, _ := w.row(id)
			time.Sleep(time.Until(r.DueAt) - early)
			n := w.PauseScope("task:"+taskOf(w.tenant), object{})
			time.Sleep(10 * time.Second)
			w.LiftScope(n, "task:"+taskOf(w.tenant))
			time.Sleep(time.Second)
			ids = append(ids, id)
		}
		return func() {
			for _, id := range ids {
				w.Is(id, 1, job.Succeeded)
			}
		}
	}},
	{Name: "start_within passes while the payload is read",
		Held: true, Plan: slowPayload, Play: expiresLate("start_within")},
	{Name: "expire_after passes while the payload is read",
		Held: true, Plan: slowPayload, Play: expiresLate("expire_after")},
}

// meetings are about concurrent writes, clocks that are set, lost workers, and who must be
// notified.
var meetings = []Story{
	{Name: "a report of a running attempt comes between a retry's read and write", Pumps: 2, Plan: func() Plan {
		return func(p Point) (Fault, time.Duration) {
			switch (Point{p.Stage, p.Op, p.What, p.N}) {
			case Point{"status", memory.TableWrite, job.WriteRunning, 1}:
				return Slow, 700 * time.Millisecond
			case Point{"status", memory.TableWrite, job.WriteRetry, 1},
				Point{"status", memory.TableWrite, job.WriteSnooze, 1}:
				return Slow, 2 * time.Second
			}
			return None, 0
		}
	}, Play: func(w *Client) func() {
		body := object{
			"payload": Work{Sleep: "10200ms", Fail: 1},
			"timeout": "2m",
			"retry":   object{"initial_delay": "20s"},
		}
		id := w.Post("k", body)
		return func() { w.Is(id, 2, job.Succeeded) }
	}},
	{Name: "a report of a running attempt comes between a snooze's read and write", Pumps: 2, Plan: func() Plan {
		return func(p Point) (Fault, time.Duration) {
			switch (Point{p.Stage, p.Op, p.What, p.N}) {
			case Point{"status", memory.TableWrite, job.WriteRunning, 1}:
				return Slow, 700 * time.Millisecond
			case Point{"status", memory.TableWrite, job.WriteSnooze, 1}:
				return Slow, 2 * time.Second
			}
			return None, 0
		}
	}, Play: func(w *Client) func() {
		id := w.Post("k", object{"payload": Work{Sleep: "10200ms", Snooze: 1}, "timeout": "2m"})
		return func() { w.Is(id, 2, job.Succeeded) }
	}},
	{Name: "a worker claims a job once more that it could not let go", Workers: 2, Plan: func() Plan {
		// Reads of the payload hang, and no lease is given up: it is nearly over at the start, and
		// no heartbeat succeeds.
		return func(p Point) (Fault, time.Duration) {
			switch {
			case p.Stage == "worker" && p.What == "content" && p.N <= 2:
				return Hang, 9 * time.Second
			case p.What == job.WriteClaimLetGo && p.N <= 20, p.What == job.WriteClaimHeartbeat && p.N <= 26:
				return Fail, 0
			case p.Stage == "api" && p.Op == memory.QueueSend && p.N == 1:
				return Twice, 0
			}
			return None, 0
		}
	}, Play: func(w *Client) func() {
		id := w.Post("k", object{"payload": Work{Sleep: "45s", Mark: fmt.Sprintf("%600d", 1)}, "timeout": "2m"})
		w.rerun = true
		return func() { w.Is(id, 1, job.Succeeded) }
	}},
	{Name: "clocks are set while it runs", Workers: 2, Plan: func() Plan {
		firing := contract.FiringQueue("short", "normal")
		return At(Point{Stage: "api", Op: memory.QueueSend, What: firing, N: 1}, Twice, 0)
	}, Play: func(w *Client) func() {
		id := w.Post("k", object{"payload": Work{Sleep: "2m"}, "timeout": "5m"})
		for n := range 12 {
			time.Sleep(7300 * time.Millisecond)
			w.SetClocks([]time.Duration{4 * time.Second, -4 * time.Second, 0}[n%3])
		}
		w.SetClocks(0)
		return func() {
			w.Is(id, 1, job.Succeeded)
			if !w.o.Disturbed {
				w.Ran(id, 1)
			}
		}
	}},
	{Name: "a job without retries crashes its workers",
		Alone: true, Held: true, Workers: 2, Play: func(w *Client) func() {
			return w.diesOf(object{"max_attempts": 1, "on_worker_lost": "fail"}, 1)
		}},
	{Name: "a job crashes its workers until its attempts are used up",
		Alone: true, Held: true, Workers: 2, Play: func(w *Client) func() {
			return w.diesOf(object{"max_attempts": 3, "initial_delay": "1s", "on_worker_lost": "fail"}, 3)
		}},
	{Name: "each start of a job that crashes its workers is reported",
		Alone: true, Held: true, Workers: 2, Play: func(w *Client) func() {
			return w.diesOf(object{"max_attempts": 1, "on_worker_lost": "rerun"}, contract.MaxTakeovers)
		}},
	{Name: "start_within passes after a worker has died over its job", Alone: true, Held: true, Workers: 2,
		Play: func(w *Client) func() {
			w.poison = true
			var ids []job.ID
			for _, lost := range []string{"fail", "rerun"} {
				ids = append(ids, w.Post(lost, object{"payload": Work{Kill: true}, "start_within": "5s",
					"retry": object{"max_attempts": 1, "on_worker_lost": lost}}))
			}
			return func() {
				for _, id := range ids {
					// A worker that is lost before it claims the job leaves no start, so start_within is in force.
					if w.o.Disturbed && !w.lostOwner(job.Key{Tenant: w.tenant, ID: id}) && len(w.of(id)) == 0 {
						w.Is(id, 1, job.Expired)
						continue
					}
					w.Is(id, 1, job.Dead)
				}
			}
		}},
	{Name: "a schedule is edited after a worker has died over its job", Recurs: true, Alone: true, Held: true,
		Workers: 2, Play: diesBefore(func(w *Client) {
			w.Want([]int{200}, "PATCH", "/schedules/s", object{"overlap": "skip"})
		}, job.Dead)},
	{Name: "a schedule is deleted after a worker has died over its job", Recurs: true, Alone: true, Held: true,
		Workers: 2, Play: diesBefore(func(w *Client) { w.End("s") }, job.Dead)},

	{Name: "of four jobs of a schedule that end within a second every other fails",
		Recurs: true, Held: true, Cores: 3, Pumps: 3, Play: func(w *Client) func() {
			s := object{"job": w.template(Work{Quarters: true})}
			if !w.o.Disturbed { // disturbed, two that fail may well end one after the other
				s["pause_after_failures"] = 2
			}
			w.Put("s", every("1s", 40*time.Second), s)
			return func() {
				for _, e := range w.ledger.epochsOf(w.key("s")) {
					if e.Paused != nil {
						w.violation("it was paused: %s", e.Paused.Reason)
					}
				}
				w.Came("s", nil)
			}
		}},
	{Name: "the first in line starts when the API cancels the job before it",
		Recurs: true, Held: true, Play: cancelsHolder("buffer_all")},
	{Name: "the only waiting job starts when the API cancels the job before it",
		Recurs: true, Held: true, Play: cancelsHolder("buffer_one")},
	{Name: "rows past their time that the store has not removed", Alone: true, Play: func(w *Client) func() {
		ended := w.Post("a", object{})
		dead := w.Post("b", object{"payload": Work{Permanent: true}})
		w.Settle(2 * time.Minute)
		time.Sleep(20 * time.Second)
		for _, id := range []job.ID{ended, dead} {
			w.set(job.Key{Tenant: w.tenant, ID: id}.Ref(), contract.AttrExpiresAt, time.Now().Add(-time.Hour).Unix())
			for what, code := range map[string]int{"": 404, "/attempts": 404} {
				w.Want([]int{code}, "GET", "/jobs/"+string(id)+what, nil)
			}
		}
		w.Want([]int{404}, "POST", "/jobs/"+string(dead)+"/redrive", nil)
		for _, list := range []string{"/jobs", "/dead-letters"} {
			_, v := w.Want([]int{200}, "GET", list, nil)
			if items, _ := v["items"].([]any); len(items) > 0 {
				w.violation("GET %s shows %d jobs whose time is over", list, len(items))
			}
		}
		_, v := w.Want([]int{200}, "POST", "/dead-letters/redrive", object{"job_ids": []job.ID{dead}})
		if n, _ := v["matched"].(float64); n != 0 {
			w.violation("a redrive matched %v jobs whose time is over", n)
		}
		return func() {}
	}},
}

// lastSecond makes jobs and sends one request about each in its last second before due. It returns
// the codes that were answered before due, by job.
func (w *Client) lastSecond(ask func(job.ID) (object, int)) map[job.ID]int {
	answers := map[job.ID]int{}
	var all sync.WaitGroup
	var mu sync.Mutex
	for n := range 20 {
		early := 30*time.Millisecond + time.Duration(n)*53*time.Millisecond
		all.Go(func() {
			time.Sleep(time.Duration(n) * 1700 * time.Millisecond)
			id := w.Post(fmt.Sprint(n), object{"delay": "5s"})
			r, _ := w.row(id)
			time.Sleep(time.Until(r.DueAt) - early)
			_, code := ask(id)
			if before := time.Now().Before(r.DueAt.Add(-2 * w.o.Skew)); before {
				mu.Lock()
				defer mu.Unlock()
				answers[id] = code
			}
		})
	}
	all.Wait()
	if len(answers) < 10 && !w.o.Disturbed {
		w.violation("only %d were answered before they were due", len(answers))
	}
	return answers
}

// slowPayload makes the first read of a payload take until after the due time.
func slowPayload() Plan {
	return At(Point{Stage: "worker", Op: memory.TableGet, What: "content", N: 1}, Slow, 1600*time.Millisecond)
}

// expiresLate makes a job whose time passes between the read of its row and its start.
func expiresLate(field string) func(*Client) func() {
	return func(w *Client) func() {
		body := object{"delay": "5s", "payload": Work{Mark: fmt.Sprintf("%600d", 1)}}
		body[field] = "1s"
		if field == "expire_after" {
			body[field] = "1s" // from its due time
		}
		id := w.Post("k", body)
		return func() {
			w.Is(id, 0, job.Expired, job.Succeeded)
			r, _ := w.row(id)
			end := r.DueAt.Add(r.StartWithin)
			if field == "expire_after" {
				end = r.ExpiryAt
			}
			if field == "start_within" && w.lostOwner(r.Key) {
				return // a start that only the claim knows of makes start_within void
			}
			for _, run := range w.of(id) {
				if over := run.from.Sub(end); over > 20*time.Millisecond {
					w.violation("job %s started %s after %s had passed", short(id), over, field)
				}
			}
		}
	}
}

// diesOf makes a job that crashes each worker that starts it, and verifies how often it started.
func (w *Client) diesOf(retry object, starts int) func() {
	w.poison = true
	id := w.Post("k", object{"payload": Work{Kill: true}, "retry": retry})
	return func() {
		w.Is(id, 0, job.Dead)
		n := len(w.of(id))
		if n > starts || n < starts && !w.o.Disturbed {
			w.violation("it was started %d times, want %d", n, starts)
		}
		if r, _ := w.row(id); retry["on_worker_lost"] == "fail" && r.Reason.Code != "worker_lost" {
			w.violation("it died of %q", r.Reason.Code)
		}
		_, v := w.Want([]int{200}, "GET", "/jobs/"+string(id)+"/attempts", nil)
		items, _ := v["items"].([]any)
		reported := 0
		for _, it := range items {
			if o, _ := it.(object); o["started_at"] != nil {
				reported++
			}
		}
		if reported < n || reported > n && !w.o.Disturbed { // one that dies with its claim may or may not have started
			w.violation("it was started %d times, and its attempts show %d: %v", n, reported, items)
		}
	}
}

// diesBefore makes a job of a schedule that fails with its worker, which it crashes, and changes the schedule before
// anybody has noticed.
func diesBefore(change func(*Client), want job.Status) func(*Client) func() {
	return func(w *Client) func() {
		w.poison = true
		dies := w.template(Work{Kill: true})
		dies["retry"] = object{"max_attempts": 1, "on_worker_lost": "fail"}
		at := time.Now().Add(20 * time.Second)
		w.Put("s", object{"dates": []string{stamp(at)}}, object{"job": dies})
		time.Sleep(25 * time.Second)
		change(w)
		id := w.key("s").JobID(at.UTC().Truncate(time.Second))
		return func() {
			w.Is(id, 1, want)
			if r, _ := w.row(id); r.Reason.Code != job.CodeWorkerLost && want == job.Dead {
				w.violation("it ended with %q", r.Reason.Code)
			}
		}
	}
}

// cancelsHolder cancels a job that waits for its retry and holds its schedule's slot.
func cancelsHolder(policy string) func(*Client) func() {
	return func(w *Client) func() {
		fails := w.template(Work{Fail: 1})
		fails["retry"] = object{"max_attempts": 2, "initial_delay": "10m", "jitter": 0}
		w.Put("s", every("10s", 25*time.Second), object{"overlap": policy, "job": fails})
		time.Sleep(32300 * time.Millisecond)
		var first job.Row
		for _, r := range w.rows() {
			if first.ID == "" || r.NominalAt.Before(first.NominalAt) {
				first = r
			}
		}
		codes := []int{200, 202}
		if w.o.Disturbed { // its firing may have been lost, and a later one come first
			codes = append(codes, 409)
		}
		code, _ := w.Want(codes, "POST", "/jobs/"+string(first.ID)+"/cancel", nil)
		cancelled := time.Now()
		return func() {
			if code != 200 || w.o.Disturbed {
				return
			}
			next := time.Time{}
			for _, r := range w.rows() {
				if runs := w.runs(r.Key); r.ID != first.ID && len(runs) > 0 &&
					(next.IsZero() || runs[0].from.Before(next)) {
					next = runs[0].from
				}
			}
			if wait := next.Sub(cancelled); next.IsZero() || wait > 5*time.Second {
				w.violation("the next in line started %s after the cancel", wait.Round(time.Millisecond))
			}
		}
	}
}

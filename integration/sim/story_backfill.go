package sim

import (
	"cmp"
	"slices"
	"time"

	"punctual/shared/job"
)

// Backfilled are stories about backfills.
var Backfilled = []Story{
	{Recurs: true, Name: "a backfill, two at a time", Held: true, Workers: 2, Play: func(w *Client) func() {
		past := w.putPast("s", 5, object{"job": w.template(Work{Sleep: "3s"})})
		o := w.backfill("s", "k", past, object{"max_running": 2})
		w.operationEnds(o, "SUCCEEDED", 5, 0)
		return func() { w.AtMost(2, w.madeOnce(past, 1)) }
	}},
	{Recurs: true, Name: "a backfill of the newest first, one at a time", Held: true, Play: func(w *Client) func() {
		past := w.putPast("s", 4, nil)
		o := w.backfill("s", "k", past, object{"order": "newest"})
		w.operationEnds(o, "SUCCEEDED", 4, 0)
		return func() {
			ids := w.madeOnce(past, 1)
			w.AtMost(1, ids)
			w.inOrder(ids, func(a, b job.Row) int { return b.NominalAt.Compare(a.NominalAt) })
		}
	}},
	{Recurs: true, Name: "two backfills of the same times", Held: true, Workers: 2, Play: func(w *Client) func() {
		past := w.putPast("s", 6, object{"job": w.template(Work{Sleep: "2s"})})
		one := w.backfill("s", "one", past, object{"max_running": 2})
		two := w.backfill("s", "two", past, object{"max_running": 2, "order": "newest"})
		w.operationEnds(one, "SUCCEEDED", -1, -1)
		w.operationEnds(two, "SUCCEEDED", -1, -1)
		repeated := w.backfill("s", "again", past, object{"max_running": 3, "again": true})
		w.operationEnds(repeated, "SUCCEEDED", 6, 0)
		return func() { w.AtMost(4, w.madeOnce(past, 2)) }
	}},
	{Recurs: true, Name: "a backfill is paused, resumed and stopped, and another one does the rest", Held: true,
		Play: func(w *Client) func() {
			past := w.putPast("s", 5, object{"job": w.template(Work{Sleep: "2s"})})
			o := w.backfill("s", "k", past, nil)
			w.changeOperation(o, "pause")
			time.Sleep(20 * time.Second)
			w.changeOperation(o, "resume")
			time.Sleep(3 * time.Second)
			w.changeOperation(o, "stop")
			rest := w.backfill("s", "rest", past, object{"max_running": 5})
			w.operationEnds(rest, "SUCCEEDED", -1, -1)
			return func() { w.madeOnce(past, 1) }
		}},
	{Recurs: true, Name: "a backfill whose jobs fail", Held: true, Play: func(w *Client) func() {
		past := w.putPast("s", 3, object{"job": w.template(Work{Permanent: true})})
		o := w.backfill("s", "k", past, object{"max_running": 2})
		w.operationEnds(o, "FAILED", 0, 3)
		return func() {
			for _, r := range w.madeOf(past) {
				w.Is(r.ID, 1, job.Dead)
			}
		}
	}},
	{Recurs: true, Name: "the schedule of a backfill is deleted", Held: true, Play: func(w *Client) func() {
		past := w.putPast("s", 5, object{"job": w.template(Work{Sleep: "3s"})})
		o := w.backfill("s", "k", past, nil)
		w.End("s")
		w.operationEnds(o, "FAILED", -1, 0)
		return func() {}
	}},
	{Recurs: true, Name: "a backfill of runs", Held: true, Workers: 2, Play: func(w *Client) func() {
		w.Post("other", object{})
		w.PutRuns("s", pastDates(4), Work{Sleep: "2s"}, nil)
		past := pastTimes(4)
		o := w.backfill("s", "k", past, object{"max_running": 2})
		w.operationEnds(o, "SUCCEEDED", 4, 0)
		return func() {
			for _, r := range w.madeOf(past) {
				if r.Status != job.Succeeded || !r.StartsRun() {
					w.violation("the row of %s is %s", clockTime(r.NominalAt), r.Status)
				}
			}
			if n := len(w.madeOf(past)); n != 4 {
				w.violation("%d runs were made", n)
			}
		}
	}},
}

// pastTimes are the last n full hours, the oldest first.
func pastTimes(n int) (times []time.Time) {
	for hour := time.Now().UTC().Truncate(time.Hour); n > 0; n-- {
		times = append(times, hour.Add(-time.Duration(n)*time.Hour))
	}
	return times
}

// pastDates is a calendar of the last n full hours, and of a time to come, without which a schedule is refused.
func pastDates(n int) object {
	dates := []string{stamp(time.Now().Add(10 * time.Minute))}
	for _, at := range pastTimes(n) {
		dates = append(dates, stamp(at))
	}
	return object{"dates": dates}
}

// putPast makes a schedule of the last n full hours, and returns them. A job that is none of its has an id that two
// tenants at once share.
func (w *Client) putPast(name string, n int, body object) []time.Time {
	w.Post("other", object{})
	w.Put(name, pastDates(n), body)
	return pastTimes(n)
}

// backfill makes a backfill of those times, and returns its id.
func (w *Client) backfill(name, key string, past []time.Time, more object) string {
	body := object{"from": stamp(past[0]), "to": stamp(past[len(past)-1].Add(time.Second))}
	for k, v := range more {
		body[k] = v
	}
	_, v := w.Want([]int{202}, "POST", "/schedules/"+name+"/backfills", body, "Idempotency-Key", "backfill "+key)
	id, _ := v["operation_id"].(string)
	return id
}

func (w *Client) changeOperation(id, verb string) {
	w.Want([]int{200, 409}, "POST", "/operations/"+id+"/"+verb, nil)
}

// operationEnds waits for the end of an operation, and verifies its status and its counts; -1 is any.
func (w *Client) operationEnds(id, status string, done, failed float64) {
	for range 1000 {
		_, v := w.Want([]int{200}, "GET", "/operations/"+id, nil)
		if s := v["status"]; s == "RUNNING" || s == "COUNTING" || s == "CANARY" {
			time.Sleep(10 * time.Second)
			continue
		}
		if v["status"] != status || done >= 0 && v["done"] != done || failed >= 0 && v["failed"] != failed {
			w.violation("the operation is %v", v)
		}
		return
	}
	w.violation("operation %s does not end", id)
}

// madeOf reads the rows that backfills made of those times, in the order in which they were made.
func (w *Client) madeOf(past []time.Time) (rows []job.Row) {
	for _, r := range w.rows() {
		if r.Backfill != "" && slices.ContainsFunc(past, r.NominalAt.Equal) {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b job.Row) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return rows
}

// madeOnce verifies that backfills have made each time so often, and that all of it has succeeded. It returns the jobs.
func (w *Client) madeOnce(past []time.Time, often int) (ids []job.ID) {
	times := map[time.Time]int{}
	for _, r := range w.madeOf(past) {
		w.Is(r.ID, 1, job.Succeeded)
		times[r.NominalAt]++
		ids = append(ids, r.ID)
	}
	for _, at := range past {
		if times[at] != often {
			w.violation("%s was made %d times, want %d", clockTime(at), times[at], often)
		}
	}
	return ids
}

// inOrder verifies that jobs were made in an order.
func (w *Client) inOrder(ids []job.ID, order func(a, b job.Row) int) {
	for n := range len(ids) - 1 {
		a, _ := w.row(ids[n])
		b, _ := w.row(ids[n+1])
		if cmp.Or(a.CreatedAt.Compare(b.CreatedAt), order(a, b)) > 0 {
			w.violation("%s was made before %s", clockTime(a.NominalAt), clockTime(b.NominalAt))
		}
	}
}

package sim

import (
	"fmt"
	"sync"
	"time"

	"punctual/shared/job"
	"punctual/shared/tenant"
)

// Unique are stories about unique keys. The ledger verifies at each write that one open job has a key at most.
var Unique = []Story{
	{Name: "five requests for one unique key", Alone: true, Play: func(w *Client) func() {
		ids := make([]job.ID, 5)
		var g sync.WaitGroup
		for n := range ids {
			g.Go(func() {
				_, ids[n] = w.postKeyed(fmt.Sprint("taker", n), "k", "return", object{"payload": Work{Sleep: "20s"}})
			})
		}
		g.Wait()
		return func() {
			for _, id := range ids {
				w.Is(id, 1, job.Succeeded)
				if id != ids[0] && w.faults() == 0 {
					w.violation("requests at once got the jobs %s and %s", short(id), short(ids[0]))
				}
			}
		}
	}},
	{Name: "a unique key is taken after each end", Play: func(w *Client) func() {
		var ids []job.ID
		for n, work := range []Work{{Sleep: "2s"}, {Fail: 9}, {Sleep: "1m"}, {}} {
			body := object{"payload": work, "retry": object{"max_attempts": 1}}
			if n == 2 {
				body["delay"] = "1h"
			}
			code, id := w.postKeyed(fmt.Sprint("each", n), "k", "reject", body)
			if code == 409 && w.faults() == 0 {
				w.violation("request %d is refused", n)
			}
			time.Sleep(5 * time.Second)
			if n == 2 && id != "" {
				w.Want([]int{200, 202, 409}, "POST", "/jobs/"+string(id)+"/cancel", nil)
				time.Sleep(time.Second)
			}
			ids = append(ids, id)
		}
		return func() {
			for _, id := range ids {
				w.Is(id, 1, job.Succeeded, job.Dead, job.Cancelled)
			}
		}
	}},
	{Name: "a unique key until the start", Play: func(w *Client) func() {
		body := func() object {
			return object{"payload": Work{Sleep: "20s"}, "unique": object{"key": "k", "until": "started"}}
		}
		_, first := w.postKeyed("first", "k", "return", body())
		time.Sleep(3 * time.Second)
		code, second := w.postKeyed("second", "k", "return", body())
		if (code != 202 || second == first) && w.faults() == 0 {
			w.violation("a request after the start got job %s, by code %d", short(second), code)
		}
		return func() {
			w.Is(first, 1, job.Succeeded)
			w.Is(second, 1, job.Succeeded)
		}
	}},
	{Name: "a job is replaced until it starts", Play: func(w *Client) func() {
		last, mark := job.ID(""), ""
		for n := range 5 {
			m := fmt.Sprint("change", n)
			_, id := w.postKeyed(m, "k", "replace", object{"payload": Work{Mark: m}, "delay": "2s"})
			if id != "" {
				last, mark = id, m
			}
			time.Sleep(time.Second)
		}
		return func() {
			w.Is(last, 1, job.Succeeded)
			if runs := w.of(last); len(runs) > 0 && runs[len(runs)-1].mark != mark {
				w.violation("job %s did %q, and was replaced by %q", short(last), runs[len(runs)-1].mark, mark)
			}
		}
	}},
	{Name: "times fall due while their unique key is held", Recurs: true, Play: func(w *Client) func() {
		_, holder := w.postKeyed("holder", "k", "return", object{"payload": Work{Sleep: "35s"}})
		template := w.template(Work{Sleep: "3s"})
		template["unique"] = object{"key": "k"}
		w.Put("s", every("10s", 75*time.Second), object{"job": template})
		return func() {
			w.Is(holder, 1, job.Succeeded)
			w.Came("s", nil)
		}
	}},
	{Name: "a time supersedes the job with its unique key", Recurs: true, Play: func(w *Client) func() {
		_, holder := w.postKeyed("holder", "k", "return", object{"delay": "10m"})
		template := w.template(Work{Sleep: "15s"})
		template["unique"] = object{"key": "k", "on_conflict": "replace"}
		w.Put("s", every("10s", 45*time.Second), object{"job": template})
		return func() {
			w.Is(holder, 1, job.Skipped, job.Succeeded)
			w.Came("s", nil)
		}
	}},
	{Name: "a dead job is redriven while its unique key is held", Play: func(w *Client) func() {
		_, dead := w.postKeyed("dead", "k", "return",
			object{"payload": Work{Fail: 9}, "retry": object{"max_attempts": 1}})
		time.Sleep(5 * time.Second)
		_, holder := w.postKeyed("holder", "k", "return", object{"payload": Work{Sleep: "30s"}})
		body := object{} // the next one succeeds
		w.own(body)
		for n := range 2 {
			code, _ := w.Want([]int{202, 409}, "POST", "/jobs/"+string(dead)+"/redrive", body)
			if code != []int{409, 202}[n] && w.faults() == 0 {
				w.violation("redrive %d answered %d", n, code)
			}
			time.Sleep(time.Minute)
		}
		return func() {
			w.Is(dead, 1, job.Dead)
			w.Is(holder, 1, job.Succeeded, job.Dead)
		}
	}},
}

// postKeyed asks for a job with a unique key. The id is that of the job that was made or found; "" for neither.
func (w *Client) postKeyed(name, key, conflict string, body object) (code int, id job.ID) {
	body["task"], body["timeout"] = taskOf(w.tenant), "10m"
	unique, ok := body["unique"].(object)
	if !ok {
		unique = object{"key": key}
		body["unique"] = unique
	}
	unique["on_conflict"] = conflict
	w.own(body)
	w.awaitSameID()
	code, v := w.Want([]int{200, 202, 409}, "POST", "/jobs", body, "Idempotency-Key", name)
	if code == 409 {
		return code, ""
	}
	found, _ := v["job_id"].(string)
	return code, job.ID(found)
}

// seeKey verifies that of the open jobs with a unique key the one alone has it that the key's item names. A job of a
// schedule takes the key at its start. The lock is held.
func (l *ledger) seeKey(t tenant.ID, key string) {
	if key == "" {
		return
	}
	holder := job.HolderOf(l.items[job.UniqueRef(t, key)])
	for k, r := range l.rows {
		if r.Tenant == t && r.Unique.Key == key && r.HoldsKey(l.claims[k]) && r.ID != holder && !r.TakesKeyWhenDue() {
			l.w.violation("job %s is open, and its unique key names %s", short(r.ID), short(holder))
		}
	}
}

// startsWithKey verifies that a job which starts has its unique key, or has marked its start.
func (w *World) startsWithKey(row job.Row, bad func(string, ...any)) {
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	c := w.ledger.claims[row.Key]
	switch holder := job.HolderOf(w.ledger.items[job.UniqueRef(row.Tenant, row.Unique.Key)]); {
	case row.MarksStart() && c.Begun == 0:
		bad("its start is not marked, and frees its unique key")
	case row.HoldsKey(c) && holder != row.ID:
		bad("its unique key names %s", short(holder))
	}
}

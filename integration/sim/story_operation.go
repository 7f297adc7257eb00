package sim

import (
	"time"

	"punctual/shared/job"
)

// Operated are stories about operations on many jobs.
var Operated = []Story{
	{Name: "many jobs are redriven by an operation, a canary first", Alone: true, Redo: operationRedo,
		Play: func(w *Client) func() {
			ids := w.postMany(8, object{"payload": Work{Fail: 1}, "retry": object{"max_attempts": 1}})
			w.Settle(20 * time.Minute)
			o := w.beginOperation("k", object{"action": "redrive", "all": true,
				"canary": object{"count": 2, "min_succeeded": 0, "within": "2m"},
				"rate":   object{"count": 5, "per": "1s"}})
			w.operationEnds(o, "SUCCEEDED", 8, 0)
			time.Sleep(15 * time.Minute) // the redriven jobs die as well, and their dead letters come to their queue
			return func() {
				made := map[job.ID]int{}
				for _, r := range w.rows() {
					if r.RedriveOf != "" {
						made[r.RedriveOf]++
					}
				}
				for _, id := range ids {
					if made[id] != 1 {
						w.violation("job %s was redriven %d times", short(id), made[id])
					}
				}
			}
		}},
	{Name: "many jobs are cancelled by an operation", Alone: true, Redo: operationRedo, Play: func(w *Client) func() {
		ids := w.postMany(6, object{"delay": "3h"})
		o := w.beginOperation("k", object{"action": "cancel", "filter": object{"task": taskOf(w.tenant)}})
		w.operationEnds(o, "SUCCEEDED", 6, 0)
		return func() {
			for _, id := range ids {
				w.Is(id, 1, job.Cancelled)
			}
		}
	}},
	{Name: "many jobs get another priority by an operation, and run", Alone: true, Redo: operationRedo,
		Play: func(w *Client) func() {
			ids := w.postMany(6, object{"delay": "40m"})
			o := w.beginOperation("k", object{"action": "reprioritize", "filter": object{"task": taskOf(w.tenant)},
				"set": object{"priority": "high"}})
			w.operationEnds(o, "SUCCEEDED", 6, 0)
			return func() {
				for _, id := range ids {
					if w.Is(id, 1, job.Succeeded); id != "" {
						if r, _ := w.row(id); r.Priority != job.High {
							w.violation("job %s has priority %s", short(id), r.Priority)
						}
					}
				}
			}
		}},
}

// operationRedo is how long an operation takes to go on after its process has crashed: its lease ends, and the sweeper
// asks for it.
const operationRedo = 10 * time.Minute

// postMany makes jobs, one after the other.
func (w *Client) postMany(n int, body object) (ids []job.ID) {
	for i := range n {
		one := object{}
		for k, v := range body {
			one[k] = v
		}
		ids = append(ids, w.Post("many "+string(rune('a'+i)), one))
	}
	return ids
}

// beginOperation begins an operation, and returns its id.
func (w *Client) beginOperation(key string, body object) string {
	_, v := w.Want([]int{202}, "POST", "/operations", body, "Idempotency-Key", "operation "+key)
	id, _ := v["operation_id"].(string)
	return id
}

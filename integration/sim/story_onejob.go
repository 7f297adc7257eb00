package sim

import (
	"time"

	"punctual/shared/job"
	graphs "punctual/shared/run"
)

// OneJob are stories about pauses of single jobs, and about redrives with corrections.
var OneJob = []Story{
	{Name: "one job is paused long before it is due", Held: true, Play: func(w *Client) func() {
		id := w.Post("k", object{"delay": "40m"})
		w.pauseJob(id)
		time.Sleep(45 * time.Minute)
		w.staysPaused(id, job.Scheduled)
		w.resumeJob(id)
		return func() { w.Is(id, 1, job.Succeeded) }
	}},
	{Name: "one job is paused and resumed before it is due", Play: func(w *Client) func() {
		id := w.Post("k", object{"delay": "20m"})
		w.pauseJob(id)
		time.Sleep(time.Minute)
		w.resumeJob(id)
		return func() { w.Is(id, 1, job.Succeeded) }
	}},
	{Name: "one job is paused as its firing is on its way", Held: true, Workers: 2, Play: func(w *Client) func() {
		id := w.Post("k", object{"delay": "4s"})
		time.Sleep(2 * time.Second)
		w.pauseJob(id)
		time.Sleep(time.Minute)
		w.staysPaused(id, job.Scheduled)
		w.resumeJob(id)
		return func() { w.Is(id, 1, job.Succeeded) }
	}},
	{Name: "one job is paused as a worker takes it", Held: true, Workers: 2, Play: func(w *Client) func() {
		id := w.Post("k", object{"delay": "3s", "payload": Work{Sleep: "12s"}})
		time.Sleep(2*time.Second + 495*time.Millisecond)
		w.pauseJob(id)
		time.Sleep(time.Minute)
		w.staysPaused(id, job.Scheduled)
		w.resumeJob(id)
		return func() { w.Is(id, 1, job.Succeeded) }
	}},
	{Name: "one job is paused in the queue", Alone: true, Held: true, Play: func(w *Client) func() {
		w.Strike()
		time.Sleep(5 * time.Second) // the last receives have ended
		id := w.Post("k", object{})
		time.Sleep(5 * time.Second)
		w.pauseJob(id)
		w.startWorker()
		time.Sleep(5 * time.Minute)
		w.staysPaused(id, job.Scheduled)
		w.resumeJob(id)
		return func() { w.Is(id, 1, job.Succeeded) }
	}},
	{Name: "one job is paused between its attempts", Held: true, Play: func(w *Client) func() {
		id := w.Post("k", object{"payload": Work{Fail: 1}, "retry": object{"initial_delay": "30s"}})
		time.Sleep(10 * time.Second)
		w.pauseJob(id)
		time.Sleep(2 * time.Minute)
		w.staysPaused(id, job.Scheduled)
		w.resumeJob(id)
		return func() { w.Is(id, 2, job.Succeeded) }
	}},
	{Name: "one job is paused before its parent ends", Held: true, Play: func(w *Client) func() {
		a := w.Post("a", object{"payload": Work{Sleep: "5s"}, "delay": "5s"})
		b := w.PostAfter("b", nil, a)
		w.pauseJob(b)
		time.Sleep(time.Minute)
		w.staysPaused(b, job.Blocked, job.Scheduled)
		w.resumeJob(b)
		return func() {
			w.Is(b, 1, job.Succeeded)
			w.RanAfter(b, 0, a)
		}
	}},
	{Name: "one job is paused as its parent ends", Alone: true, Held: true, Workers: 2, Play: func(w *Client) func() {
		a := w.Post("a", object{"payload": Work{Sleep: "2s"}})
		b := w.PostAfter("b", object{"payload": Work{Sleep: "8s"}}, a)
		time.Sleep(2 * time.Second)
		w.pauseJob(b)
		time.Sleep(time.Minute)
		w.staysPaused(b, job.Blocked, job.Scheduled)
		w.resumeJob(b)
		return func() {
			w.Is(b, 1, job.Succeeded)
			w.RanAfter(b, 0, a)
		}
	}},
	{Name: "one job is paused past start_within", Held: true, Play: func(w *Client) func() {
		id := w.Post("k", object{"delay": "5s", "start_within": "20s"})
		paused := w.pauseJob(id)
		return func() {
			if paused {
				w.Is(id, 1, job.Expired)
				w.Ran(id, 0)
			}
			w.Want([]int{409}, "POST", "/jobs/"+string(id)+"/resume", nil)
		}
	}},
	{Name: "one job is paused past expire_after", Held: true, Play: func(w *Client) func() {
		id := w.Post("k",
			object{"expire_after": "3m", "payload": Work{Fail: 1}, "retry": object{"initial_delay": "2m"}})
		time.Sleep(10 * time.Second)
		paused := w.pauseJob(id)
		return func() {
			if paused {
				w.Is(id, 0, job.Expired, job.Dead)
			}
		}
	}},
	{Name: "one job is paused and cancelled", Held: true, Play: func(w *Client) func() {
		id := w.Post("k", object{"delay": "5s"})
		paused := w.pauseJob(id)
		time.Sleep(20 * time.Second)
		w.Want([]int{200, 409}, "POST", "/jobs/"+string(id)+"/cancel", nil)
		return func() {
			if paused {
				w.Is(id, 1, job.Cancelled)
				w.Ran(id, 0)
			}
		}
	}},
	{Name: "one job is paused and moved", Held: true, Play: func(w *Client) func() {
		id := w.Post("k", object{"delay": "1h"})
		w.pauseJob(id)
		w.Want([]int{200}, "PATCH", "/jobs/"+string(id), object{"delay": "3s", "priority": "high"})
		time.Sleep(time.Minute)
		w.staysPaused(id, job.Scheduled)
		w.Want([]int{409}, "POST", "/jobs/"+string(id)+"/run-now", nil)
		w.resumeJob(id)
		return func() { w.Is(id, 1, job.Succeeded) }
	}},
	{Name: "one job is paused under a pause of everything", Held: true, Play: func(w *Client) func() {
		n := w.Pause(object{})
		time.Sleep(3 * time.Second)
		id := w.Post("k", object{})
		time.Sleep(10 * time.Second) // it is parked
		w.pauseJob(id)
		w.Lift(n)
		time.Sleep(time.Minute)
		w.staysPaused(id, job.Scheduled)
		w.resumeJob(id)
		return func() { w.Is(id, 1, job.Succeeded) }
	}},
	{
		Name: "one job is paused among those that wait for a permit", Held: true, Workers: 2,
		Play: func(w *Client) func() {
			w.limit("one", object{"max_running": 1})
			ids := w.postLimited(4, "one", "k", Work{Sleep: "6s"})
			time.Sleep(time.Second)
			w.pauseJob(ids[1])
			time.Sleep(2 * time.Minute)
			w.staysPaused(ids[1], job.Scheduled)
			w.resumeJob(ids[1])
			return func() {
				w.allRan(ids)
				w.AtMost(1, ids)
			}
		},
	},
	{Name: "one job is paused after its worker was lost", Alone: true, Held: true, Play: func(w *Client) func() {
		w.poison = true
		id := w.Post("k", object{"payload": Work{Kill: true}})
		time.Sleep(10 * time.Second) // another worker is there
		w.Strike()
		time.Sleep(40 * time.Second) // the lease has ended, and no worker takes the attempt over
		w.pauseJob(id)
		w.startWorker()
		time.Sleep(5 * time.Minute)
		w.staysPaused(id, job.Scheduled)
		w.resumeJob(id)
		return func() { w.Is(id, 1, job.Dead) }
	}},
	{
		Name: "one job of a schedule is paused", Alone: true, Recurs: true, Held: true, Redo: delay,
		Play: func(w *Client) func() {
			w.Put("s", every("20s", 70*time.Second), object{"overlap": "buffer_all"})
			time.Sleep(15 * time.Second)
			var id job.ID
			for _, r := range w.rows() {
				if r.ScheduleID == "s" && r.DueAt.After(time.Now()) && (id == "" || r.ID < id) {
					id = r.ID
				}
			}
			w.pauseJob(id)
			time.Sleep(3 * time.Minute)
			w.staysPaused(id, job.Scheduled)
			w.resumeJob(id)
			return func() { w.Came("s", map[string]int{"ran": 3}) }
		},
	},
	{
		Name: "one job of a deleted schedule is paused", Alone: true, Recurs: true, Held: true, Redo: time.Hour,
		Play: func(w *Client) func() {
			w.Put("s", every("10m", 15*time.Minute), nil)
			time.Sleep(time.Second)
			var id job.ID
			for _, r := range w.rows() {
				id = r.ID
			}
			w.pauseJob(id)
			w.End("s")
			return func() { w.Is(id, 1, job.Skipped) }
		},
	},
	{Name: "one job of a run is paused", Held: true, Redo: afterOperation, Play: func(w *Client) func() {
		g := w.StartAt("g", w.graphOf(map[string]Work{"a": {Sleep: "8s"}}, "a", "b: a"), time.Now().Add(10*time.Second))
		id := g.Job("a", 1, 0).ID
		w.pauseJob(id)
		time.Sleep(time.Minute)
		w.staysPaused(id, job.Scheduled)
		w.resumeJob(id)
		return func() { w.CameTo(g, graphs.Succeeded, "a=SUCCEEDED b=SUCCEEDED") }
	}},
	{Name: "one job of a cancelled run is paused", Held: true, Redo: afterOperation, Play: func(w *Client) func() {
		g := w.StartAt("g", w.graphOf(map[string]Work{"a": {Sleep: "8s"}}, "a", "b: a"), time.Now().Add(10*time.Second))
		id := g.Job("a", 1, 0).ID
		w.pauseJob(id)
		time.Sleep(20 * time.Second)
		w.Want([]int{200, 202, 409}, "POST", "/runs/"+string(g.ID)+"/cancel", nil)
		return func() { w.Is(id, 1, job.Cancelled, job.Succeeded) }
	}},
	{Name: "dead, redriven twice with corrections", Play: func(w *Client) func() {
		id := w.Post("k", object{
			"payload": Work{Permanent: true, Mark: "as it died"}, "tags": object{"from": "the client"},
		})
		w.Settle(20 * time.Minute)
		path := "/jobs/" + string(id) + "/redrive"
		code, v := w.Ask("POST", path, object{
			"payload_patch": object{"permanent": nil, "mark": "first"}, "tags": object{"fix": "first"}, "delay": "3s",
		})
		by, _ := v["redriven_by"].(string)
		if code == 202 {
			by, _ = v["job_id"].(string)
		}
		second, v := w.Ask("POST", path, object{"payload_patch": object{"permanent": nil, "mark": "second"}})
		if code != 202 && code != 409 || second != 409 || v["redriven_by"] != by || by == "" {
			w.violation("redrives answered %d and %d, by %s and %v", code, second, by, v["redriven_by"])
		}
		return func() {
			w.Is(id, 1, job.Dead)
			w.Is(job.ID(by), 1, job.Succeeded)
			_, v := w.Want([]int{200}, "GET", "/jobs/"+by, nil)
			payload, _ := v["payload"].(object)
			tags, _ := v["tags"].(object)
			if payload["mark"] != "first" || v["result"] != "first" || tags["fix"] != "first" {
				w.violation("the job of the redrive has payload %v, result %v, tags %v", payload, v["result"], tags)
			}
			if r, _ := w.row(id); string(r.RedrivenBy) != by || len(w.rows()) != 2 {
				w.violation("%d jobs, redriven by %s and not %s", len(w.rows()), r.RedrivenBy, by)
			}
		}
	}},
}

// pauseJob pauses a job; false if a fault has had it start or end before, or not be there yet.
func (w *Client) pauseJob(id job.ID) bool {
	if id == "" {
		return false
	}
	code, _ := w.Want([]int{200, 404, 409}, "POST", "/jobs/"+string(id)+"/pause", object{"reason": "a story"})
	if code != 200 && w.faults() == 0 {
		w.violation("the pause of job %s was answered %d", short(id), code)
	}
	return code == 200
}

// staysPaused verifies that a job is still paused, unless a fault has had it start before it was.
func (w *Client) staysPaused(id job.ID, statuses ...job.Status) {
	switch r, ok := w.row(id); {
	case id == "":
	case ok && r.IsPaused() && !r.Status.Final():
		w.Is(id, 0, statuses...)
	case w.faults() == 0:
		w.violation("job %s is %s and not paused", short(id), r.Status)
	}
}

// resumeJob resumes a job, which may have ended if it was never paused.
func (w *Client) resumeJob(id job.ID) {
	if id != "" {
		w.Want([]int{200, 404, 409}, "POST", "/jobs/"+string(id)+"/resume", nil)
	}
}

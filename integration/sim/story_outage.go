package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
)

// Troubles are about what lasts for a while, or coincides, and who must not be affected.
var Troubles = slices.Concat(refusals, timerless, outages, hiddenCopies, lastSeconds, unreadables, meetings,
	shortPauses, endless)

// oddText is text that SQS refuses and any target may answer.
const oddText = "x\uffffy\x01\ufffez"

// refusals are about queues that refuse messages, for a while or for good.
var refusals = []Story{
	{Name: "text that SQS refuses", Play: func(w *Client) func() {
		var good []job.ID
		for n := range 20 {
			good = append(good, w.Post(fmt.Sprint("odd ", n), object{"payload": Work{Mark: oddText}}))
		}
		dead := w.Post("dead", object{"payload": Work{Permanent: true, Text: oddText}})
		retried := w.Post("retried", object{"payload": Work{Fail: 1, Text: oddText, Mark: oddText}})
		long := w.Post("long", object{"payload": Work{Sleep: "25s", Text: oddText}})
		time.Sleep(5 * time.Second)
		good = append(good, w.Post("plain", object{}))
		return func() {
			for _, id := range append(good, long) {
				w.Is(id, 1, job.Succeeded)
			}
			w.Is(dead, 1, job.Dead)
			w.Is(retried, 2, job.Succeeded)
			w.Ended(10*time.Second, append(good, dead, long)...)
		}
	}},
	{Name: "a report that its queue refuses for two minutes", Play: func(w *Client) func() {
		bad := w.Post("bad", object{"delay": "5s"})
		stop := w.Refuse(func(queue, body string) bool {
			return queue == contract.ReportQueue && strings.Contains(body, string(bad))
		})
		good := w.many("good", 20, 4*time.Second, 2*time.Second, Work{})
		time.Sleep(2 * time.Minute)
		stop()
		return func() {
			w.Is(bad, 1, job.Succeeded)
			for _, id := range good {
				w.Is(id, 1, job.Succeeded)
			}
			w.Started(time.Time{}, time.Second, good...)
			w.Ended(2*time.Second, good...)
		}
	}},
	{Name: "queues refuse everything for a minute", Held: true, Play: func(w *Client) func() {
		ids := w.many("good", 10, 5*time.Second, 10*time.Second, Work{})
		dead := w.Post("dead", object{"delay": "30s", "payload": Work{Permanent: true}})
		time.Sleep(20 * time.Second)
		stop := w.Refuse(func(string, string) bool { return true })
		ids = append(ids, w.Post("meanwhile", object{}))
		time.Sleep(time.Minute)
		stop()
		return func() {
			w.Is(dead, 1, job.Dead)
			for _, id := range ids {
				w.Is(id, 1, job.Succeeded)
			}
		}
	}},
}

// timerless are about a Scheduler that makes no timer for longer than the horizon. No firing may be late because of it:
// neither one that is queued after a request for a timer, nor one of the slice itself.
var timerless = []Story{
	{Name: "no timer can be made", Plan: noTimer(Fail, 0), Play: dueAround},
	{Name: "Scheduler does not answer", Plan: noTimer(Hang, 12*time.Second), Play: dueAround},
	{Name: "Scheduler's answers are lost", Plan: noTimer(Lost, 0), Play: dueAround},
}

// noTimer is the fault of each call that makes a timer.
func noTimer(f Fault, after time.Duration) func() Plan {
	return func() Plan {
		return func(p Point) (Fault, time.Duration) {
			if p.Op == memory.TimerArm {
				return f, after
			}
			return None, 0
		}
	}
}

// dueAround posts jobs that wait for their slices, after each of them one that is due at once, and jobs beyond the
// horizon.
func dueAround(w *Client) func() {
	var ids []job.ID
	for n := range 12 {
		ids = append(ids, w.Post(fmt.Sprint("waits ", n), object{"delay": fmt.Sprint(15+n, "m")}),
			w.Post(fmt.Sprint("after ", n), object{"delay": "2500ms"}))
		time.Sleep(5 * time.Second)
	}
	ids = append(ids, w.many("far", 4, 35*time.Minute, 20*time.Second, Work{})...)
	return func() {
		for _, id := range ids {
			w.Is(id, 1, job.Succeeded)
		}
		w.Started(time.Time{}, 100*time.Millisecond, ids...)
	}
}

// outages are about a table that is unavailable, all of it or a part.
var outages = []Story{
	{Name: "the table is away for twelve seconds during a long attempt", Redo: 20 * time.Minute,
		Held: true, Play: awayDuring(12*time.Second, 10*time.Second)},
	{Name: "the table is away for a minute during a long attempt", Redo: 20 * time.Minute,
		Held: true, Play: awayDuring(time.Minute, 35*time.Second)},
	{Name: "workers do not reach the table for fifteen seconds during a long attempt", Redo: 20 * time.Minute,
		Held: true, Play: func(w *Client) func() {
			return awayFor(w, 15*time.Second, 10*time.Second, func(stage string, r item.Ref) error {
				if stage != "worker" {
					return nil
				}
				return outage(stage, r)
			})
		}},
	{Name: "another tenant's partition is throttled for three minutes", Redo: 15 * time.Minute,
		Held: true, Alone: true, Play: func(w *Client) func() {
			other := w.As(tenants[1])
			other.Define()
			long := w.Post("long", object{"payload": Work{Sleep: "15m"}, "timeout": "30m"})
			mine := w.many("mine", 20, 20*time.Second, 10*time.Second, Work{})
			theirs := other.many("theirs", 10, 20*time.Second, 15*time.Second, Work{})
			time.Sleep(15 * time.Second)
			heal := w.Hurt(throttled(other.tenant))
			time.Sleep(3 * time.Minute)
			heal()
			healed := time.Now()
			return func() {
				for _, id := range append(mine, long) {
					w.Is(id, 1, job.Succeeded)
				}
				w.Started(time.Time{}, time.Second, mine...)
				for _, id := range theirs {
					other.Is(id, 1, job.Succeeded)
				}
				other.Started(healed, 90*time.Second, theirs...)
			}
		}},
	{Name: "one claim meets conflicts for a minute",
		Redo: 10 * time.Minute, Held: true, Play: func(w *Client) func() {
			long := w.Post("long", object{"payload": Work{Sleep: "10m"}, "timeout": "30m"})
			one := w.Post("one", object{"delay": "20s"})
			mine := w.many("mine", 10, 20*time.Second, 10*time.Second, Work{})
			time.Sleep(15 * time.Second)
			heal := w.Hurt(conflicting(job.Key{Tenant: w.tenant, ID: one}))
			time.Sleep(time.Minute)
			heal()
			healed := time.Now()
			return func() {
				for _, id := range append(mine, long, one) {
					w.Is(id, 1, job.Succeeded)
				}
				w.Started(time.Time{}, time.Second, mine...)
				w.Started(healed, 90*time.Second, one)
			}
		}},
}

// hiddenCopies are about messages that are made visible later, over and over.
var hiddenCopies = []Story{
	{Name: "one at a time, five minutes each",
		Redo: 30 * time.Minute, Alone: true, Held: true, Play: func(w *Client) func() {
			w.Want([]int{200, 201}, "PUT", "/tasks/"+aloneTask(w.tenant), object{"executor": "go", "timeout": "10m"})
			var ids []job.ID
			for n := range 30 {
				body := object{"task": aloneTask(w.tenant), "payload": Work{Sleep: "5m"}, "timeout": "10m"}
				ids = append(ids, w.Post(fmt.Sprint(n), body))
			}
			w.Bounded(155 * time.Minute)
			return func() {
				for _, id := range ids {
					w.Is(id, 1, job.Succeeded)
				}
			}
		}},
	{Name: "no worker knows the task for fifty minutes", Alone: true, Held: true, Play: func(w *Client) func() {
		w.Want([]int{200, 201}, "PUT", "/tasks/"+unknownTask(w.tenant), object{"executor": "go"})
		var ids []job.ID
		for n := range 10 {
			ids = append(ids, w.Post(fmt.Sprint(n), object{"task": unknownTask(w.tenant)}))
		}
		w.Bounded(50 * time.Minute)
		w.mu.Lock()
		w.knows = true
		old := len(w.drains)
		w.mu.Unlock()
		for range old { // also one that has replaced a dead one
			w.Deploy()
		}
		if w.o.Disturbed { // a firing that no worker takes is repeated less and less often
			w.Bounded(contract.MaxPostpone)
		}
		return func() {
			for _, id := range ids {
				w.Is(id, 1, job.Succeeded)
			}
		}
	}},
	{Name: "three hours, and a second message of it",
		Redo: 3 * time.Hour, Alone: true, Held: true, Workers: 2, Plan: func() Plan {
			firing := contract.FiringQueue("short", "normal")
			return At(Point{Stage: "api", Op: memory.QueueSend, What: firing, N: 1}, Twice, 0)
		}, Play: func(w *Client) func() {
			id := w.Post("k", object{"payload": Work{Sleep: "3h"}, "timeout": "4h"})
			w.Bounded(181 * time.Minute)
			return func() {
				w.Is(id, 1, job.Succeeded)
				if !w.o.Disturbed {
					w.Ran(id, 1)
				}
			}
		}},
}

// awayDuring makes the whole table unavailable during a long attempt while other jobs fall due.
func awayDuring(d, most time.Duration) func(*Client) func() {
	return func(w *Client) func() { return awayFor(w, d, most, outage) }
}

func awayFor(w *Client, d, most time.Duration, how Trouble) func() {
	w.rerun = d > contract.Lease // the long attempt loses its lease
	long := w.Post("long", object{"payload": Work{Sleep: "20m"}, "timeout": "30m"})
	during := w.many("during", 4, 17*time.Second, 2*time.Second, Work{})
	later := w.many("later", 7, 15*time.Second+d+time.Minute, time.Minute, Work{})
	time.Sleep(15 * time.Second)
	heal := w.Hurt(how)
	time.Sleep(d)
	heal()
	healed := time.Now()
	return func() {
		for _, id := range append(append(during, later...), long) {
			w.Is(id, 1, job.Succeeded)
		}
		w.Started(healed, most, during...)
		w.Started(healed, 2*time.Second, later...)
	}
}

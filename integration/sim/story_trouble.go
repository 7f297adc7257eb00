package sim

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
)

// oddText is what SQS refuses to carry, and an answer of any target may hold.
const oddText = "x\uffffy\x01\ufffez"

// Troubles are the stories of what lasts for a while, or meets at one moment, and of who is not
// hurt by it.
var Troubles = []Story{
	{Name: "text that SQS refuses", Play: func(w *Client) func() {
		var good []job.ID
		for n := range 20 {
			good = append(good, w.Post(fmt.Sprint("odd ", n), object{"payload": Work{Mark: oddText}}))
		}
		dead := w.Post("dead", object{"payload": Work{Permanent: true, Text: oddText}})
		again := w.Post("again", object{"payload": Work{Fail: 1, Text: oddText, Mark: oddText}})
		long := w.Post("long", object{"payload": Work{Sleep: "25s", Text: oddText}})
		time.Sleep(5 * time.Second)
		good = append(good, w.Post("plain", object{}))
		return func() {
			for _, id := range append(good, long) {
				w.Is(id, 1, job.Succeeded)
			}
			w.Is(dead, 1, job.Dead)
			w.Is(again, 2, job.Succeeded)
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

	{Name: "the table is away for twelve seconds during a long attempt", Held: true, Play: awayDuring(12*time.Second, 10*time.Second)},
	{Name: "the table is away for a minute during a long attempt", Held: true, Play: awayDuring(time.Minute, 35*time.Second)},
	{Name: "workers do not reach the table for fifteen seconds during a long attempt", Held: true, Play: func(w *Client) func() {
		return awayFor(w, 15*time.Second, 10*time.Second, func(stage string, r item.Ref) error {
			if stage != "worker" {
				return nil
			}
			return outage(stage, r)
		})
	}},
	{Name: "another tenant's partition is throttled for three minutes", Held: true, Alone: true, Play: func(w *Client) func() {
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
	{Name: "one claim meets conflicts for a minute", Held: true, Play: func(w *Client) func() {
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

	{Name: "one at a time, five minutes each", Alone: true, Held: true, Play: func(w *Client) func() {
		w.Want([]int{200, 201}, "PUT", "/tasks/"+aloneTask(w.tenant), object{"executor": "go", "timeout": "10m"})
		var ids []job.ID
		for n := range 30 {
			ids = append(ids, w.Post(fmt.Sprint(n), object{"task": aloneTask(w.tenant), "payload": Work{Sleep: "5m"}, "timeout": "10m"}))
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
		w.mu.Unlock()
		w.Deploy()
		return func() {
			for _, id := range ids {
				w.Is(id, 1, job.Succeeded)
			}
		}
	}},
	{Name: "three hours, and a second message of it", Alone: true, Held: true, Workers: 2, Plan: func() Plan {
		return At(Point{Stage: "api", Op: "queue.send", What: contract.FiringQueue("short", "normal"), N: 1}, Twice, 0)
	}, Play: func(w *Client) func() {
		id := w.Post("k", object{"payload": Work{Sleep: "3h"}, "timeout": "4h"})
		w.Bounded(181 * time.Minute)
		return func() {
			w.Is(id, 1, job.Succeeded)
			w.Ran(id, 1)
		}
	}},

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
	{Name: "start_within passes while the payload is read", Held: true, Plan: slowPayload, Play: expiresLate("start_within")},
	{Name: "expire_after passes while the payload is read", Held: true, Plan: slowPayload, Play: expiresLate("expire_after")},

	{Name: "a pause of one task cannot be read", Alone: true, Held: true, Play: func(w *Client) func() {
		remove := w.Plant(job.PauseRef(job.Everyone, "task:nobodys"), item.Item{"body": `{"scope":"task:nobodys","until":"tomorrow"}`})
		return w.neighbours(remove, 20*time.Minute)
	}},
	{Name: "a tenant's pause of everything cannot be read", Alone: true, Held: true, Play: func(w *Client) func() {
		other := w.As(tenants[1])
		other.Define()
		remove := w.Plant(job.PauseRef(other.tenant, "all"), item.Item{"body": `{"scope":"all","until":"tomorrow"}`})
		held := other.many("held", 3, 10*time.Second, time.Minute, Work{})
		other.Put("s", every("10s", 5*time.Minute), object{"catch_up": object{"policy": "all"}})
		end := w.neighbours(remove, 20*time.Minute)
		return func() {
			end()
			for _, id := range held {
				other.Is(id, 1, job.Succeeded)
			}
			other.fates(other.key("s"))
		}
	}},
	{Name: "a job cannot be read for twenty minutes", Alone: true, Held: true, Play: func(w *Client) func() {
		id := w.Post("k", object{"delay": "3m"})
		mend := w.Spoil(job.Key{Tenant: w.tenant, ID: id}.Ref(), "due_at", "at three")
		end := w.neighbours(mend, 20*time.Minute)
		return func() {
			end()
			w.Is(id, 1, job.Succeeded)
		}
	}},
	{Name: "a job cannot be read until twenty minutes after it was due", Alone: true, Held: true, Play: func(w *Client) func() {
		id := w.Post("k", object{"delay": "40m"})
		mend := w.Spoil(job.Key{Tenant: w.tenant, ID: id}.Ref(), "due_at", "at three")
		end := w.neighbours(mend, time.Hour)
		return func() {
			end()
			w.Is(id, 1, job.Succeeded)
		}
	}},
	{Name: "a schedule cannot be read for twenty minutes", Alone: true, Held: true, Play: func(w *Client) func() {
		w.Put("bad", every("1m", 50*time.Minute), object{"catch_up": object{"policy": "all"}})
		mend := w.Spoil(w.key("bad").Ref(), "body", "a schedule")
		end := w.neighbours(mend, 20*time.Minute)
		return func() {
			end()
			w.Came("bad", nil)
		}
	}},
	{Name: "an exclusion cannot be read for twenty minutes", Alone: true, Held: true, Play: func(w *Client) func() {
		w.Want([]int{200, 201}, "PUT", "/exclusions/days", object{"yearly": []string{"12-25"}})
		bad := every("1m", 50*time.Minute)
		bad["exclude"] = []string{"days"}
		w.Put("bad", bad, object{"catch_up": object{"policy": "all"}})
		mend := w.Spoil(item.Ref{Table: contract.Tasks, PK: "exclusion#" + string(w.tenant), SK: "days"}, "body", "days")
		end := w.neighbours(mend, 20*time.Minute)
		return func() {
			end()
			w.Came("bad", map[string]int{ran: 50})
		}
	}},
	{Name: "who holds a slot cannot be read for three minutes", Alone: true, Held: true, Play: func(w *Client) func() {
		// The holder is a job that somebody has written by hand.
		k := job.Key{Tenant: w.tenant, ID: w.Post("k", object{"delay": "45m"})}
		mend := w.Spoil(k.Ref(), "due_at", "at three")
		w.Plant(w.key("bad").SlotRef(), item.Item{"holder": string(k.ID)})
		w.Put("bad", every("10s", time.Minute), object{"overlap": "skip"})
		long := w.Post("long", object{"payload": Work{Sleep: "15m"}, "timeout": "30m"})
		end := w.neighbours(func() {
			mend()
			w.Want([]int{200, 409}, "POST", "/jobs/"+string(k.ID)+"/run-now", nil)
		}, 3*time.Minute)
		return func() {
			end()
			w.Is(long, 1, job.Succeeded)
			w.Came("bad", nil)
		}
	}},

	{Name: "word of a running attempt comes between a retry's read and write", Pumps: 2, Plan: func() Plan {
		return func(p Point) (Fault, time.Duration) {
			switch (Point{p.Stage, p.Op, p.What, p.N}) {
			case Point{"status", "table.write", "row.running", 1}:
				return Slow, 700 * time.Millisecond
			case Point{"status", "table.write", "row.retry", 1}, Point{"status", "table.write", "row.snooze", 1}:
				return Slow, 2 * time.Second
			}
			return None, 0
		}
	}, Play: func(w *Client) func() {
		id := w.Post("k", object{"payload": Work{Sleep: "10200ms", Fail: 1}, "timeout": "2m", "retry": object{"initial_delay": "20s"}})
		return func() { w.Is(id, 2, job.Succeeded) }
	}},
	{Name: "word of a running attempt comes between a snooze's read and write", Pumps: 2, Plan: func() Plan {
		return func(p Point) (Fault, time.Duration) {
			switch (Point{p.Stage, p.Op, p.What, p.N}) {
			case Point{"status", "table.write", "row.running", 1}:
				return Slow, 700 * time.Millisecond
			case Point{"status", "table.write", "row.snooze", 1}:
				return Slow, 2 * time.Second
			}
			return None, 0
		}
	}, Play: func(w *Client) func() {
		id := w.Post("k", object{"payload": Work{Sleep: "10200ms", Snooze: 1}, "timeout": "2m"})
		return func() { w.Is(id, 2, job.Succeeded) }
	}},
	{Name: "a worker asks again for the claim that it could not let go", Workers: 2, Plan: func() Plan {
		// Reads of the payload hang, and nothing is let go: its lease is nearly over when it starts,
		// and no heartbeat comes through.
		return func(p Point) (Fault, time.Duration) {
			switch {
			case p.Stage == "worker" && p.What == "content" && p.N <= 2:
				return Hang, 9 * time.Second
			case p.What == "claim.let_go" && p.N <= 20, p.What == "claim.heartbeat" && p.N <= 26:
				return Fail, 0
			case p.Stage == "api" && p.Op == "queue.send" && p.N == 1:
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
		return At(Point{Stage: "api", Op: "queue.send", What: contract.FiringQueue("short", "normal"), N: 1}, Twice, 0)
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
	{Name: "its workers die of it, and it is not to be run again", Alone: true, Held: true, Workers: 2, Play: func(w *Client) func() {
		return w.diesOf(object{"max_attempts": 1, "on_worker_lost": "fail"}, 1)
	}},
	{Name: "its workers die of it, and each time is an attempt", Alone: true, Held: true, Workers: 2, Play: func(w *Client) func() {
		return w.diesOf(object{"max_attempts": 3, "initial_delay": "1s", "on_worker_lost": "fail"}, 3)
	}},
	{Name: "its workers die of it, and each start is told", Alone: true, Held: true, Workers: 2, Play: func(w *Client) func() {
		return w.diesOf(object{"max_attempts": 1, "on_worker_lost": "rerun"}, contract.MaxTakeovers)
	}},

	{Recurs: true, Name: "of four jobs of a schedule that end within a second every other fails", Held: true, Cores: 3, Pumps: 3, Play: func(w *Client) func() {
		w.Put("s", every("1s", 40*time.Second), object{"pause_after_failures": 2, "job": w.template(Work{Quarters: true})})
		return func() {
			for _, e := range w.ledger.epochsOf(w.key("s")) {
				if e.Paused != nil && !w.o.Disturbed {
					w.violation("it was paused: %s", e.Paused.Reason)
				}
			}
			w.Came("s", nil)
		}
	}},
	{Recurs: true, Name: "who is in line starts when the API cancels whom it waits for", Held: true, Play: cancelsHolder("buffer_all")},
	{Recurs: true, Name: "the one that waits starts when the API cancels whom it waits for", Held: true, Play: cancelsHolder("buffer_one")},
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

func init() {
	for _, word := range []string{"drop", "last", "all"} {
		Troubles = append(Troubles,
			Story{Recurs: true, Held: true, Name: "an every-second schedule is paused for seven seconds, " + word, Play: secondsPaused(word, "schedule")},
			Story{Recurs: true, Held: true, Name: "the task of an every-second schedule is paused for seven seconds, " + word, Play: secondsPaused(word, "task")},
			Story{Recurs: true, Held: true, Name: "everything is paused for seven seconds under an every-second schedule, " + word, Play: secondsPaused(word, "all")},
		)
	}
}

// awayDuring has all of the table be away during a long attempt while others fall due.
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

// lastSecond has jobs come due and something be asked about each in the second before; it returns
// what was answered before due, by job.
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

// slowPayload has the first read of a payload take until after the due time.
func slowPayload() Plan {
	return At(Point{Stage: "worker", Op: "table.get", What: "content", N: 1}, Slow, 1600*time.Millisecond)
}

// expiresLate has a job whose time passes between the look at its row and its start.
func expiresLate(field string) func(*Client) func() {
	return func(w *Client) func() {
		body := object{"delay": "5s", "payload": Work{Mark: fmt.Sprintf("%600d", 1)}}
		body[field] = "1s"
		if field == "expire_after" {
			body[field] = "1s" // from when it is due
		}
		id := w.Post("k", body)
		return func() {
			w.Is(id, 0, job.Expired, job.Succeeded)
			r, _ := w.row(id)
			end := r.DueAt.Add(r.StartWithin)
			if field == "expire_after" {
				end = r.ExpiryAt
			}
			for _, run := range w.of(id) {
				if over := run.from.Sub(end); over > 20*time.Millisecond {
					w.violation("job %s started %s after %s had passed", short(id), over, field)
				}
			}
		}
	}
}

// neighbours has others work beside something that cannot be read, and asks that they did not
// notice. mend is called after so long, and within an hour all has come to rest.
func (w *Client) neighbours(mend func(), after time.Duration) func() {
	ids := w.many("neighbour", 12, 20*time.Second, after/12, Work{})
	w.Put("neighbour", every("1m", after), nil)
	time.Sleep(after)
	mend()
	return func() {
		for _, id := range ids {
			w.Is(id, 1, job.Succeeded)
		}
		w.Started(time.Time{}, 2*time.Second, ids...)
		for _, f := range w.fates(w.key("neighbour")) {
			runs := w.runs(f.row.Key)
			if !w.o.Disturbed && (len(runs) == 0 || runs[0].from.Sub(f.DueAt) > 2*time.Second) {
				w.violation("the neighbour's %s ran %d times, or late", clockTime(f.NominalAt), len(runs))
			}
		}
	}
}

// diesOf has a job kill each worker that starts it, and asks how often it was started.
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
		told := 0
		for _, it := range items {
			if o, _ := it.(object); o["started_at"] != nil {
				told++
			}
		}
		if told != n {
			w.violation("it was started %d times, and its attempts tell of %d: %v", n, told, items)
		}
	}
}

// cancelsHolder has the API cancel a job that waits for its retry and holds its schedule's slot.
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
		code, _ := w.Want([]int{200, 202}, "POST", "/jobs/"+string(first.ID)+"/cancel", nil)
		cancelled := time.Now()
		return func() {
			if code != 200 || w.o.Disturbed {
				return
			}
			next := time.Time{}
			for _, r := range w.rows() {
				if runs := w.runs(r.Key); r.ID != first.ID && len(runs) > 0 && (next.IsZero() || runs[0].from.Before(next)) {
					next = runs[0].from
				}
			}
			if wait := next.Sub(cancelled); next.IsZero() || wait > 5*time.Second {
				w.violation("the next in line started %s after the cancel", wait.Round(time.Millisecond))
			}
		}
	}
}

// secondsPaused has a schedule of every second be held for seven seconds.
func secondsPaused(word, what string) func(*Client) func() {
	return func(w *Client) func() {
		w.Put("s", every("1s", 40*time.Second), object{"catch_up": object{"policy": "all"}})
		time.Sleep(15200 * time.Millisecond)
		var h heldTimes
		switch what {
		case "schedule":
			h.effective = effectiveAt(w.Do("s", "pause", object{"missed": word}))
			time.Sleep(7 * time.Second)
			h.lifted = time.Now()
			w.Do("s", "resume", object{})
		default:
			scope := what
			if what == "task" {
				scope += ":" + taskOf(w.tenant)
			}
			n := w.PauseScope(scope, object{"missed": word})
			h.effective = w.pauses[n].since
			time.Sleep(7 * time.Second)
			h.lifted = time.Now()
			w.LiftScope(n, scope)
		}
		return func() {
			w.Decided("s", word, h)
			w.lateness("s")
		}
	}
}

// effectiveAt is from when a pause holds, as its answer says.
func effectiveAt(v object) time.Time {
	s, _ := v["effective_at"].(string)
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Now().Add(contract.EffectiveAfter)
	}
	return at
}

// lateness asks that the views of a schedule's jobs say how long after due they started.
func (w *Client) lateness(name string) {
	for _, f := range w.fates(w.key(name)) {
		runs := w.runs(f.row.Key)
		if len(runs) == 0 {
			continue
		}
		_, v := w.Want([]int{200}, "GET", "/jobs/"+string(f.row.ID), nil)
		said, _ := v["start_lateness_ms"].(float64)
		is := runs[0].from.Sub(f.DueAt)
		if off := time.Duration(said)*time.Millisecond - is; off > 100*time.Millisecond+w.o.Skew || off < -100*time.Millisecond-w.o.Skew {
			w.violation("%s started %s after it was due, and its job says %v ms", clockTime(f.NominalAt), is, said)
		}
	}
}

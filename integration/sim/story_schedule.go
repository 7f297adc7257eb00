package sim

import (
	"fmt"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/schedule"
)

// Put makes or replaces a schedule. Its jobs hold the tenant's secret.
func (w *Client) Put(name string, calendar object, body object) object {
	full := object{"calendar": calendar, "job": w.template(Work{})}
	for k, v := range body {
		full[k] = v
	}
	_, v := w.Want([]int{200, 201}, "PUT", "/schedules/"+name, full)
	return v
}

// PutList is Put with a list of calendars.
func (w *Client) PutList(name string, body object, calendars ...object) object {
	full := object{"calendars": calendars, "job": w.template(Work{})}
	for k, v := range body {
		full[k] = v
	}
	_, v := w.Want([]int{200, 201}, "PUT", "/schedules/"+name, full)
	return v
}

// template returns a job of a schedule that does that work once, without a retry.
func (w *Client) template(work Work) object {
	work.Owner = secretOf(w.tenant)
	return object{"task": taskOf(w.tenant), "payload": work, "timeout": "1m", "retry": object{"max_attempts": 1}}
}

// every returns an interval calendar that ends after most.
func every(span string, most time.Duration) object {
	return object{"every": span, "end_at": stamp(time.Now().Add(most))}
}

func stamp(at time.Time) string { return at.UTC().Truncate(time.Second).Format(time.RFC3339) }

// Do pauses or resumes a schedule.
func (w *Client) Do(name, what string, body object) object {
	_, v := w.Want([]int{200}, "POST", "/schedules/"+name+"/"+what, body)
	return v
}

// End deletes a schedule.
func (w *Client) End(name string) { w.Want([]int{204, 404}, "DELETE", "/schedules/"+name, nil) }

func (w *Client) key(name string) schedule.Key { return schedule.Key{Tenant: w.tenant, Name: name} }

// Came verifies how many of a schedule's times have each outcome, unless there were faults, which
// may make some be missed. It returns the fates.
func (w *Client) Came(name string, want map[string]int) []fate {
	list := w.fates(w.key(name))
	got := map[string]int{}
	for _, f := range list {
		got[f.outcome]++
	}
	if want != nil && w.faults() == 0 && fmt.Sprint(got) != fmt.Sprint(want) {
		w.violation("of schedule %s came %v, want %v", name, got, want)
	}
	if len(list) == 0 {
		w.violation("schedule %s had no times", name)
	}
	return list
}

// Shown verifies that the list of occurrences shows each fate.
func (w *Client) Shown(name string, list []fate) {
	shown := map[string]string{}
	for next := ""; ; {
		_, v := w.Want([]int{200}, "GET", "/schedules/"+name+"/occurrences?limit=7"+next, nil)
		items, _ := v["items"].([]any)
		for _, it := range items {
			o, _ := it.(object)
			at, _ := o["nominal_at"].(string)
			outcome, _ := o["outcome"].(string)
			if _, several := o["until"]; !several {
				shown[at] = outcome
			}
		}
		cursor, _ := v["next_cursor"].(string)
		if cursor == "" {
			break
		}
		next = "&cursor=" + cursor
	}
	for _, f := range list {
		at := f.NominalAt.UTC().Format("2006-01-02T15:04:05.000Z07:00")
		if f.row.ID != "" && shown[at] != f.outcome {
			w.violation("schedule %s shows %s as %q, and it is %q", name, at, shown[at], f.outcome)
		}
	}
}

const (
	ran        = schedule.Ran
	skipped    = schedule.Skipped
	missed     = schedule.Missed
	superseded = schedule.Superseded
)

// Recurring are about schedules.
var Recurring = []Story{
	{Recurs: true, Name: "every ten seconds", Play: func(w *Client) func() {
		w.Put("s", every("10s", 95*time.Second), nil)
		return func() { w.Shown("s", w.Came("s", map[string]int{ran: 10})) }
	}},
	{Recurs: true, Name: "every minute for longer than the horizon", Play: func(w *Client) func() {
		w.Put("s", every("1m", 34*time.Minute), nil)
		return func() { w.Came("s", map[string]int{ran: 34}) }
	}},
	{Recurs: true, Name: "a schedule is edited", Play: func(w *Client) func() {
		w.Put("s", every("10s", 2*time.Minute), nil)
		time.Sleep(35 * time.Second)
		edit := object{"calendar": every("15s", time.Minute), "job": w.template(Work{Mark: "new"})}
		w.Want([]int{200}, "PATCH", "/schedules/s", edit)
		edited := time.Now()
		return func() {
			for _, f := range w.Came("s", map[string]int{ran: 8}) {
				for _, r := range w.runs(f.row.Key) {
					if r.mark != "new" && r.from.After(edited.Add(contract.EffectiveAfter)) {
						w.violation("%s ran as it was before the edit, %s after it", clockTime(f.NominalAt),
							r.from.Sub(edited))
					}
				}
			}
		}
	}},
	{Recurs: true, Name: "a schedule is edited, and its times stay", Play: func(w *Client) func() {
		w.Put("s", every("10s", 75*time.Second), nil)
		for _, mark := range []string{"b", "c"} {
			time.Sleep(25 * time.Second)
			w.Want([]int{200}, "PATCH", "/schedules/s", object{"job": w.template(Work{Mark: mark})})
		}
		return func() { w.Came("s", map[string]int{ran: 8}) }
	}},
	{Recurs: true, Name: "a schedule is deleted", Held: true, Play: func(w *Client) func() {
		w.Put("s", every("10s", 2*time.Minute), object{"job": w.template(Work{Sleep: "5s"})})
		time.Sleep(33 * time.Second)
		w.End("s")
		return func() { w.Came("s", map[string]int{ran: 4}) }
	}},
	{Recurs: true, Name: "a schedule is deleted and made anew", Held: true, Play: func(w *Client) func() {
		w.Put("s", every("10s", 2*time.Minute), nil)
		time.Sleep(25 * time.Second)
		w.End("s")
		w.Put("s", every("10s", 30*time.Second), object{"job": w.template(Work{Mark: "new"})})
		return func() { w.Came("s", map[string]int{ran: 6}) }
	}},
	{
		Recurs: true,
		Name:   "a schedule is paused and resumed, all that was held runs",
		Held:   true,
		Play: func(w *Client) func() {
			w.Put("s", every("10s", 2*time.Minute), nil)
			w.pausedFor("s", object{"missed": "all"}, 40*time.Second)
			return func() { w.Came("s", map[string]int{ran: 12}) }
		},
	},
	{Recurs: true, Name: "a schedule is paused and resumed, the last runs", Held: true, Play: func(w *Client) func() {
		w.Put("s", every("10s", 6*time.Minute), nil)
		w.pausedFor("s", object{"missed": "last"}, 4*time.Minute)
		return func() { w.Came("s", map[string]int{ran: 13, skipped: 23}) }
	}},
	{Recurs: true, Name: "a schedule is paused and resumed, none of it runs", Held: true, Play: func(w *Client) func() {
		w.Put("s", every("10s", 6*time.Minute), nil)
		w.pausedFor("s", object{"missed": "drop"}, 4*time.Minute)
		return func() { w.Came("s", map[string]int{ran: 12, skipped: 24}) }
	}},
	{Recurs: true, Name: "a schedule's pause ends by itself", Held: true, Play: func(w *Client) func() {
		w.Put("s", every("10s", 2*time.Minute), nil)
		time.Sleep(25 * time.Second)
		w.Do("s", "pause", object{"missed": "all", "until": stamp(time.Now().Add(65 * time.Second))})
		return func() { w.Came("s", map[string]int{ran: 12}) }
	}},
	{Recurs: true, Name: "a paused schedule is edited", Held: true, Play: func(w *Client) func() {
		w.Put("s", every("10s", 4*time.Minute), nil)
		time.Sleep(25 * time.Second)
		w.Do("s", "pause", object{"missed": "all"})
		time.Sleep(40 * time.Second)
		w.Want([]int{200}, "PATCH", "/schedules/s", object{"calendar": every("15s", 2*time.Minute)})
		time.Sleep(30 * time.Second)
		w.Do("s", "resume", object{})
		return func() { w.Came("s", map[string]int{ran: 15}) } // four were due under the pause before the edit
	}},
	{Recurs: true, Name: "an edit pauses a schedule, and another resumes it", Held: true, Play: func(w *Client) func() {
		w.Put("s", every("10s", 2*time.Minute), nil)
		time.Sleep(25 * time.Second)
		w.Put("s", every("10s", 3*time.Minute), object{"paused": object{"reason": "the shop moves"}})
		paused := time.Now()
		time.Sleep(40 * time.Second)
		resumed := time.Now()
		w.Put("s", every("10s", 3*time.Minute), object{"paused": false})
		return func() {
			for _, f := range w.Came("s", map[string]int{ran: 22, skipped: 3}) {
				for _, r := range w.runs(f.row.Key) {
					if r.from.After(paused.Add(contract.EffectiveAfter)) && r.from.Before(resumed) {
						w.violation("%s ran under the pause, %s after the edit", clockTime(f.NominalAt),
							r.from.Sub(paused))
					}
				}
			}
		}
	}},
	{Recurs: true, Name: "a schedule begins paused", Held: true, Play: func(w *Client) func() {
		w.Put("s", every("10s", 2*time.Minute), object{"paused": true})
		time.Sleep(45 * time.Second)
		w.Do("s", "resume", object{})
		return func() { w.Came("s", map[string]int{ran: 8, skipped: 4}) }
	}},
	{Recurs: true, Name: "everything is paused while a schedule goes on", Held: true, Play: func(w *Client) func() {
		w.Put("s", every("10s", 3*time.Minute), nil)
		time.Sleep(25 * time.Second)
		n := w.Pause(object{"missed": "drop"})
		time.Sleep(time.Minute)
		w.Lift(n)
		return func() { w.Came("s", map[string]int{ran: 12, skipped: 6}) }
	}},
	{Recurs: true, Name: "a schedule is run now", Play: func(w *Client) func() {
		w.Put("s", every("1m", 130*time.Second), nil)
		time.Sleep(5 * time.Second)
		_, v := w.Want([]int{202}, "POST", "/schedules/s/run-now", nil)
		id, _ := v["job_id"].(string)
		return func() {
			w.Is(job.ID(id), 1, job.Succeeded)
			w.Came("s", map[string]int{ran: 2})
		}
	}},
	{Recurs: true, Name: "a schedule is run now with another payload", Held: true, Play: func(w *Client) func() {
		// The payloads lie in items of their own, and the job waits behind another while the schedule is edited.
		w.Put("s", every("1m", 90*time.Second), object{"overlap": "buffer_all",
			"job": w.template(Work{Sleep: "25s", Text: strings.Repeat("long ", 20<<10)})})
		time.Sleep(55 * time.Second)
		_, v := w.Want([]int{202}, "POST", "/schedules/s/run-now",
			object{"overlap": "obey", "payload_patch": object{"mark": "patched", "sleep": nil}})
		id, _ := v["job_id"].(string)
		w.Want([]int{200}, "PATCH", "/schedules/s", object{"job": w.template(Work{Mark: "new"})})
		return func() {
			w.Is(job.ID(id), 1, job.Succeeded)
			for _, r := range w.rows() { // of a request without an answer, too
				for _, one := range w.runs(r.Key) {
					if (r.ManualOf == "s") != (one.mark == "patched") {
						w.violation("job %s of %q ran with the mark %q", r.ID, r.ScheduleID, one.mark)
					}
				}
			}
			w.Came("s", map[string]int{ran: 1})
		}
	}},
	{Recurs: true, Name: "two calendars name the same instants", Play: func(w *Client) func() {
		w.PutList("s", nil, every("20s", 95*time.Second), every("30s", 95*time.Second))
		return func() { w.Shown("s", w.Came("s", map[string]int{ran: 7})) }
	}},
	{Recurs: true, Name: "a schedule gets a second calendar", Play: func(w *Client) func() {
		w.Put("s", every("20s", 2*time.Minute), nil)
		time.Sleep(50 * time.Second)
		w.Want([]int{200}, "PATCH", "/schedules/s",
			object{"calendars": []object{every("20s", 70*time.Second), every("30s", 70*time.Second)}})
		return func() { w.Came("s", map[string]int{ran: 7}) }
	}},
	{Recurs: true, Name: "no worker for three minutes, all late times of two calendars run", Held: true,
		Play: func(w *Client) func() {
			w.PutList("s", object{"catch_up": object{"policy": "all"}}, every("1m", 5*time.Minute),
				every("90s", 5*time.Minute))
			time.Sleep(20 * time.Second)
			w.Away("worker")
			time.Sleep(200 * time.Second)
			w.Back()
			return func() { w.Came("s", map[string]int{ran: 7}) }
		}},
	{Recurs: true, Name: "nobody was there to make jobs of two calendars, the last runs", Held: true,
		Play: func(w *Client) func() {
			w.PutList("s", object{"catch_up": object{"policy": "last"}}, every("1m", 41*time.Minute),
				every("150s", 41*time.Minute))
			time.Sleep(90 * time.Second)
			w.Away("promoter", "sweeper")
			time.Sleep(37 * time.Minute)
			w.Back()
			return func() { w.Came("s", nil) }
		}},
	{Recurs: true, Name: "one of two calendars runs twice", Held: true, Play: func(w *Client) func() {
		often := every("7s", 90*time.Second)
		often["max_runs"] = 2
		w.PutList("s", nil, often, every("30s", 90*time.Second))
		return func() {
			first, second := 0, 0
			for _, f := range w.Came("s", nil) {
				at := f.NominalAt.Unix()
				switch started := len(w.runs(f.row.Key)) > 0; {
				case started && at%30 == 0:
					second++
				case started:
					first++
				}
			}
			if first > 2 || w.faults() == 0 && (first != 2 || second != 3) {
				w.violation("the calendar that may run twice ran %d times, the other one %d", first, second)
			}
		}
	}},
	{Recurs: true, Name: "overlap skip", Held: true, Play: overlap("skip", map[string]int{ran: 4, skipped: 6})},
	{
		Recurs: true,
		Name:   "overlap buffer_one",
		Held:   true,
		Play:   overlap("buffer_one", map[string]int{ran: 5, skipped: 5}),
	},
	{Recurs: true, Name: "overlap buffer_all", Held: true, Play: overlap("buffer_all", map[string]int{ran: 10})},
	{Recurs: true, Name: "overlap cancel_running", Held: true, Play: overlap("cancel_running", nil)},
	{Recurs: true, Name: "overlap skip with a retry", Held: true, Play: func(w *Client) func() {
		retried := w.template(Work{Fail: 1})
		retried["retry"] = object{"max_attempts": 2, "initial_delay": "15s", "jitter": 0}
		w.Put("s", every("10s", 95*time.Second), object{"overlap": "skip", "job": retried})
		return func() { w.Came("s", map[string]int{ran: 5, skipped: 5}) }
	}},
	{Recurs: true, Name: "a schedule runs three times", Held: true, Play: func(w *Client) func() {
		w.Put("s", object{"every": "5m", "max_runs": 3}, nil)
		return func() {
			runs := 0
			for _, f := range w.fates(w.key("s")) {
				if len(w.runs(f.row.Key)) > 0 {
					runs++
				}
			}
			if runs > 3 || runs < 3 && w.faults() == 0 {
				w.violation("it ran %d times", runs)
			}
		}
	}},
	{Recurs: true, Name: "two failures pause a schedule", Held: true, Play: func(w *Client) func() {
		w.Put("s", every("10s", 95*time.Second), object{"pause_after_failures": 2,
			"job": w.template(Work{Permanent: true})})
		time.Sleep(2 * time.Minute)
		_, v := w.Want([]int{200}, "GET", "/schedules/s", nil)
		if v["paused"] == nil && w.faults() == 0 {
			w.violation("it is not paused: %v", v)
		}
		w.Put("s", every("10s", 55*time.Second), object{"pause_after_failures": 2, "job": w.template(Work{})})
		w.Do("s", "resume", object{})
		// Of the eight times under the pause the edit lets the last one run, as the pause's policy says.
		return func() { w.Came("s", map[string]int{ran: 9, skipped: 7}) }
	}},
	{Recurs: true, Name: "no worker for three minutes, none of the late times runs", Held: true,
		Play: unattended("none", map[string]int{ran: 3, missed: 2})},
	{Recurs: true, Name: "no worker for three minutes, one of the late times runs", Held: true,
		Play: unattended("last", map[string]int{ran: 4, missed: 1})},
	{Recurs: true, Name: "no worker for three minutes, all of the late times run", Held: true,
		Play: unattended("all", map[string]int{ran: 5})},
	{Recurs: true, Name: "a schedule is edited while its job waits for a worker", Held: true,
		Play: func(w *Client) func() {
			w.Put("s", every("1m", 3*time.Minute), object{"overlap": "allow"})
			time.Sleep(20 * time.Second)
			w.Away("worker")
			time.Sleep(35 * time.Second) // two seconds past its due time
			w.Want([]int{200}, "PATCH", "/schedules/s",
				object{"overlap": "skip", "catch_up": object{"policy": "none"}, "job": w.template(Work{Mark: "new"})})
			time.Sleep(20 * time.Second)
			w.Back()
			return func() {
				for n, f := range w.Came("s", map[string]int{ran: 3}) {
					for _, r := range w.runs(f.row.Key) {
						if (r.mark == "new") != (n > 0) {
							w.violation("%s ran with the mark %q", clockTime(f.NominalAt), r.mark)
						}
					}
				}
			}
		}},
	{Recurs: true, Name: "a schedule is paused while its job waits for a worker", Held: true,
		Play: func(w *Client) func() {
			w.Put("s", every("1m", 4*time.Minute), nil)
			time.Sleep(20 * time.Second)
			w.Away("worker")
			time.Sleep(35 * time.Second)
			w.Do("s", "pause", object{"missed": "drop"})
			time.Sleep(10 * time.Second)
			w.Back()
			time.Sleep(time.Minute)
			w.Do("s", "resume", object{})
			return func() { w.Came("s", map[string]int{ran: 3, skipped: 1}) }
		}},
	{Recurs: true, Name: "a schedule is edited while its job waits behind another", Held: true,
		Play: func(w *Client) func() {
			w.Put("s", every("10s", 45*time.Second), object{"overlap": "buffer_one",
				"job": w.template(Work{Sleep: "25s"})})
			time.Sleep(16 * time.Second) // the first runs, and the second waits
			w.Want([]int{200}, "PATCH", "/schedules/s", object{"overlap": "skip"})
			return func() {
				list := w.Came("s", nil)
				if len(list) > 1 && list[1].outcome != ran && w.faults() == 0 {
					w.violation("the one that waited was %s (%s)", list[1].outcome, list[1].reason)
				}
			}
		}},
	{
		Recurs: true,
		Name:   "nobody was there to make jobs, all run",
		Held:   true,
		Play:   away("all", map[string]int{ran: 41}),
	},
	{
		Recurs: true,
		Name:   "nobody was there to make jobs, the last runs",
		Held:   true,
		Play:   away("last", map[string]int{ran: 35, missed: 6}),
	},
	{
		Recurs: true,
		Name:   "nobody was there to make jobs, none runs",
		Held:   true,
		Play:   away("none", map[string]int{ran: 34, missed: 7}),
	},
}

// pausedFor runs a schedule for 25 s and then pauses it for d.
func (w *Client) pausedFor(name string, pause object, d time.Duration) {
	time.Sleep(25 * time.Second)
	w.Do(name, "pause", pause)
	time.Sleep(d)
	w.Do(name, "resume", object{})
}

// overlap makes a schedule of every ten seconds with jobs that take 25 s each.
func overlap(policy string, want map[string]int) func(*Client) func() {
	return func(w *Client) func() {
		w.Put("s", every("10s", 95*time.Second), object{"overlap": policy, "job": w.template(Work{Sleep: "25s"})})
		return func() {
			list := w.Came("s", want)
			if last := len(list) - 1; policy == "cancel_running" && last >= 0 && list[last].outcome != ran &&
				w.faults() == 0 {
				w.violation("the last time was %s", list[last].outcome)
			}
		}
	}
}

// unattended stops the workers of a schedule of every minute for 200 seconds: two of its five times are late then, by
// more than a minute, and a third is late by less.
func unattended(policy string, want map[string]int) func(*Client) func() {
	return func(w *Client) func() {
		w.Put("s", every("1m", 5*time.Minute), object{"catch_up": object{"policy": policy}})
		time.Sleep(20 * time.Second)
		w.Away("worker")
		time.Sleep(200 * time.Second)
		w.Back()
		return func() { w.Came("s", want) }
	}
}

// away stops promoter and sweeper so long that nominal times pass without a job.
func away(policy string, want map[string]int) func(*Client) func() {
	return func(w *Client) func() {
		w.Put("s", every("1m", 41*time.Minute), object{"catch_up": object{"policy": policy}})
		time.Sleep(90 * time.Second)
		w.Away("promoter", "sweeper")
		time.Sleep(37 * time.Minute)
		w.Back()
		return func() { w.Came("s", want) }
	}
}

package sim

import (
	"context"
	"fmt"
	"time"

	"punctual/functions/engine"
	"punctual/shared/job"
	graphs "punctual/shared/run"
	"punctual/shared/schedule"
)

// PutRuns makes a dag of two nodes, of which the first does that work, and a schedule of its runs.
func (w *Client) PutRuns(name string, calendar object, work Work, body object) {
	d := w.graphOf(map[string]Work{"a": work}, "a", "b: a")
	nodes := object{}
	for node, n := range d.Nodes {
		nodes[node] = object{
			"task": n.Task, "payload": n.Payload, "depends_on": n.DependsOn, "timeout": "1m",
			"retry": object{"max_attempts": 1},
		}
	}
	w.Want([]int{200, 201}, "PUT", "/dags/etl", object{"nodes": nodes})
	full := object{"calendar": calendar, "dag": object{"name": "etl"}}
	for k, v := range body {
		full[k] = v
	}
	w.Want([]int{200, 201}, "PUT", "/schedules/"+name, full)
}

// scheduled returns the run of a fate; false if none has begun.
func (w *Client) scheduled(f fate) (graphs.Run, bool) {
	if !f.row.StartsRun() || f.row.StartedAt.IsZero() {
		return graphs.Run{}, false
	}
	is, err := w.behindTheScenes().Run(context.Background(), graphs.Key{Tenant: w.tenant, ID: f.row.ID})
	if err != nil {
		w.violation("the run of %s has begun, and cannot be read: %v", clockTime(f.NominalAt), err)
	}
	return is, err == nil
}

// RunsCame verifies that each run of a schedule has that status and its nominal time. It returns how many there are.
func (w *Client) RunsCame(list []fate, s ...graphs.Status) (n int) {
	for _, f := range list {
		is, begun := w.scheduled(f)
		if !begun {
			continue
		}
		n++
		good := false
		for _, status := range s {
			good = good || is.Status == status
		}
		if !good {
			w.violation("the run of %s is %s (%s), want %v", clockTime(f.NominalAt), is.Status, is.Reason.Code, s)
		}
		if !is.NominalAt.Equal(f.NominalAt) || is.Schedule != f.row.ScheduleID || !is.DueAt.Equal(f.DueAt) ||
			!is.Notified {
			w.violation("the run of %s is %+v", clockTime(f.NominalAt), is)
		}
		first, there := w.row(is.Job("a").ID)
		if there && len(w.runs(first.Key)) > 0 && w.runs(first.Key)[0].from.Before(f.DueAt) {
			w.violation("the run of %s began before its time", clockTime(f.NominalAt))
		}
	}
	return n
}

// RunsOfSchedules are stories about schedules of dags.
var RunsOfSchedules = []Story{
	{Recurs: true, Name: "runs every twenty seconds", Play: func(w *Client) func() {
		w.PutRuns("s", every("20s", 95*time.Second), Work{}, nil)
		return func() { w.RunsCame(w.Came("s", map[string]int{ran: 5}), graphs.Succeeded) }
	}},
	{Recurs: true, Name: "runs that do not overlap", Play: func(w *Client) func() {
		w.PutRuns("s", every("20s", 2*time.Minute), Work{Sleep: "25s"}, object{"overlap": "skip"})
		return func() { w.RunsCame(w.Came("s", map[string]int{ran: 3, skipped: 3}), graphs.Succeeded) }
	}},
	{Recurs: true, Name: "runs that wait in line", Held: true, Play: func(w *Client) func() {
		w.PutRuns("s", every("10s", 35*time.Second), Work{Sleep: "15s"}, object{"overlap": "buffer_all"})
		return func() { w.RunsCame(w.Came("s", map[string]int{ran: 4}), graphs.Succeeded) }
	}},
	{Recurs: true, Name: "a run takes the place of the one before", Held: true, Redo: afterOperation,
		Play: func(w *Client) func() {
			w.PutRuns("s", every("20s", 65*time.Second), Work{Sleep: "50s"}, object{"overlap": "cancel_running"})
			return func() {
				list := w.Came("s", map[string]int{ran: 3})
				w.RunsCame(list, graphs.Cancelled, graphs.Succeeded)
				if last, ok := w.scheduled(list[len(list)-1]); ok && w.faults() == 0 &&
					last.Status != graphs.Succeeded {
					w.violation("the last run is %s", last.Status)
				}
			}
		}},
	{Recurs: true, Name: "as many runs as there may be", Play: func(w *Client) func() {
		w.PutRuns("s", object{"every": "20s", "max_runs": 3}, Work{}, nil)
		return func() {
			if n := w.RunsCame(w.fates(w.key("s")), graphs.Succeeded); n > 3 || n < 3 && w.faults() == 0 {
				w.violation("%d runs have begun, and max_runs is 3", n)
			}
		}
	}},
	{Recurs: true, Name: "runs that fail pause their schedule", Held: true, Play: func(w *Client) func() {
		w.PutRuns("s", every("20s", 2*time.Minute), Work{Permanent: true},
			object{"pause_after_failures": 2, "catch_up": object{"policy": "all"}})
		for range 600 {
			if w.ledger.paused(w.key("s")) {
				break
			}
			time.Sleep(time.Second)
		}
		s := w.ledger.epochsOf(w.key("s"))
		if p := s[len(s)-1].Paused; p == nil || p.By != schedule.ByPunctual {
			w.violation("two runs failed, and the schedule is not paused")
		}
		w.End("s")
		return func() { w.RunsCame(w.Came("s", nil), graphs.Failed) }
	}},
	{Recurs: true, Name: "a schedule of runs is paused", Held: true, Play: func(w *Client) func() {
		w.PutRuns("s", every("20s", 2*time.Minute), Work{}, nil)
		time.Sleep(35 * time.Second)
		w.Do("s", "pause", object{"missed": "last"})
		time.Sleep(50 * time.Second)
		w.Do("s", "resume", object{})
		return func() { w.RunsCame(w.Came("s", nil), graphs.Succeeded) }
	}},
	{Recurs: true, Name: "a schedule of runs is edited", Play: func(w *Client) func() {
		w.PutRuns("s", every("20s", 2*time.Minute), Work{}, nil)
		time.Sleep(50 * time.Second)
		w.Want([]int{200}, "PATCH", "/schedules/s", object{"calendar": every("30s", time.Minute)})
		return func() { w.RunsCame(w.Came("s", nil), graphs.Succeeded) }
	}},
	{Recurs: true, Name: "a job takes the place of a run", Play: func(w *Client) func() {
		w.PutRuns("s", every("20s", 2*time.Minute), Work{}, nil)
		time.Sleep(50 * time.Second)
		w.Want([]int{200}, "PATCH", "/schedules/s", object{"job": w.template(Work{})})
		return func() { w.RunsCame(w.Came("s", map[string]int{ran: 6}), graphs.Succeeded) }
	}},
	{Recurs: true, Name: "a schedule's run is retried", Held: true, Redo: afterOperation, Play: func(w *Client) func() {
		w.PutRuns("s", every("20s", 25*time.Second), Work{Permanent: true}, object{"overlap": "skip"})
		time.Sleep(50 * time.Second)
		for _, r := range w.rows() { // not all of its times may have one yet
			is, begun := w.scheduled(fate{row: r})
			if !begun || !is.Status.Final() {
				continue
			}
			w.ask("retry", func(ctx context.Context, r *engine.Runs) error {
				_, err := r.Retry(ctx, is.Key, "", sam)
				return err
			})
		}
		return func() { w.RunsCame(w.Came("s", nil), graphs.Failed) }
	}},
}

// seeBegun verifies a run that begins for a row of a schedule: the schedule allows it, and where its runs may
// not overlap no other goes on. The lock is held.
func (l *ledger) seeBegun(r job.Row, bad func(string, ...any)) {
	of := l.lives[schedule.Key{Tenant: r.Tenant, Name: r.ScheduleID}]
	if r.ScheduleID == "" {
		return
	}
	if of == nil {
		bad("there is no schedule %q", r.ScheduleID)
		return
	}
	s := of.now
	e := epoch{Schedule: s}
	if why := of.forbids(e, r, false); why != "" {
		bad("%s", why)
	}
	begun := int64(1)
	for _, o := range l.rows {
		if o.Tenant != r.Tenant || o.ScheduleID != r.ScheduleID || o.ID == r.ID || o.StartedAt.IsZero() ||
			o.CreatedAt.Before(s.CreatedAt) {
			continue
		}
		if o.StartsRun() {
			begun++
		}
		if s.For(r).Limited() && !o.Status.Final() {
			bad("overlap is %s, and %s of %s is %s", s.Overlap, short(o.ID), clockTime(o.NominalAt), o.Status)
		}
	}
	if most := mostRuns(s); most > 0 && begun > most {
		bad("its schedule has run %d times, and max_runs is %d", begun, most)
	}
}

// seeClosed verifies that a row ends as its run has ended. The lock is held.
func (l *ledger) seeClosed(r job.Row, bad func(string, ...any)) {
	i, err := l.Table.Get(context.Background(), graphs.Key{Tenant: r.Tenant, ID: r.ID}.Ref())
	if err != nil {
		bad("its run cannot be read: %v", err)
		return
	}
	is, err := graphs.Parse(i)
	want := map[job.Status]graphs.Status{
		job.Succeeded: graphs.Succeeded, job.Dead: graphs.Failed, job.Cancelled: graphs.Cancelled,
	}[r.Status]
	if err != nil || is.Status != want && is.Epoch == 1 {
		bad("it is %s, and its run is %s (%v)", r.Status, is.Status, fmt.Sprint(err))
	}
}

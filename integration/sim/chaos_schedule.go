package sim

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Timetable does random things with schedules for some minutes while faults happen, then calms the
// world and lets everything settle.
func Timetable(w *World) {
	d := dice(w.o.Seed, "timetable")
	tenantCount := 1 + d.IntN(len(tenants))
	var people sync.WaitGroup
	for _, t := range tenants[:tenantCount] {
		w.As(t).Define()
	}
	for n := range tenantCount + d.IntN(3) {
		c, mine := w.As(tenants[n%tenantCount]), dice(w.o.Seed, fmt.Sprintf("schedule %d", n))
		people.Go(func() { c.userWithASchedule(fmt.Sprintf("s%d", n/tenantCount), mine) })
	}
	if d.IntN(3) == 0 {
		c, mine := w.As(tenants[0]), dice(w.o.Seed, "pauses")
		people.Go(func() { c.userPauses(mine) })
	}
	kept := func() {}
	if w.o.Hazards.ShortPauses && dice(w.o.Seed, "short").IntN(2) == 0 {
		c, mine := w.As(tenants[0]), dice(w.o.Seed, "short pauses")
		people.Go(func() { kept = c.userPausesForSeconds("seconds", mine) })
	}
	if w.o.Hazards.Outages && dice(w.o.Seed, "hurt").IntN(3) == 0 {
		people.Go(w.outages)
	}
	if d.IntN(2) == 0 {
		mine := dice(w.o.Seed, "outage")
		people.Go(func() {
			sleepUpTo(mine, 2*time.Minute)
			w.Away(
				[][]string{{"promoter"}, {"sweeper"}, {"promoter", "sweeper"}, {"promoter", "sweeper", "stream"},
					{"worker"}, {"status"}}[mine.IntN(6)]...)
			sleepUpTo(mine, 45*time.Minute)
			w.Back()
		})
	}
	if d.IntN(3) == 0 {
		people.Go(w.deployments)
	}
	for n := range dice(w.o.Seed, "pauses of jobs").IntN(4) {
		c, mine := w.As(tenants[n%tenantCount]), dice(w.o.Seed, fmt.Sprintf("pauses of jobs %d", n))
		people.Go(func() { c.pausesSome(mine) })
	}
	people.Wait()
	w.Calm()
	for range 40 { // failures may pause them once more
		for _, k := range w.ledger.schedules() {
			if w.ledger.paused(k) {
				w.As(k.Tenant).Want([]int{200}, "POST", "/schedules/"+k.Name+"/resume", nil)
			}
		}
		if w.unsettled() == "" {
			break
		}
		time.Sleep(10 * time.Minute)
	}
	w.Settle(4 * time.Hour)
	time.Sleep(4 * time.Minute)
	w.Check()
	kept()
}

// userWithASchedule puts a schedule and may pause, edit or delete it.
func (w *Client) userWithASchedule(name string, d *rand.Rand) {
	sleepUpTo(d, time.Minute)
	if code, _ := w.Want(orOver(200, 201), "PUT", "/schedules/"+name, w.whole(d)); code == 400 {
		return
	}
	for range d.IntN(5) {
		sleepUpTo(d, 100*time.Second)
		w.changesTheSchedule(name, d)
	}
}

func (w *Client) anyCalendar(d *rand.Rand) object {
	spans := []string{"5s", "10s", "17s", "30s", "1m", "7m"}
	n := d.IntN(len(spans))
	most := time.Duration(1+d.IntN(6)) * time.Minute
	if n == 5 || n == 4 && d.IntN(2) == 0 {
		most = 50 * time.Minute // beyond the horizon
	}
	c := every(spans[n], most)
	if d.IntN(6) == 0 {
		c["max_runs"] = 1 + d.IntN(6)
	}
	return c
}

func (w *Client) anyWork(d *rand.Rand) object {
	work := Work{Mark: fmt.Sprint(d.IntN(1000))}
	switch d.IntN(6) {
	case 0:
		work.Sleep = "3s"
	case 1:
		work.Sleep = "14s"
	case 2:
		work.Fail = 1
	case 3:
		work.Permanent = d.IntN(2) == 0
	}
	j := w.template(work)
	if d.IntN(2) == 0 {
		j["retry"] = object{"max_attempts": 2}
	}
	if d.IntN(8) == 0 {
		j["start_within"] = "20s"
	}
	return j
}

func (w *Client) anyRule(d *rand.Rand) object {
	r := object{"job": w.anyWork(d)}
	if d.IntN(2) == 0 {
		r["overlap"] = []string{"skip", "buffer_one", "buffer_all", "cancel_running"}[d.IntN(4)]
	}
	if d.IntN(2) == 0 {
		r["catch_up"] = object{
			"policy": []string{"none", "last", "all"}[d.IntN(3)],
			"window": []string{"90s", "10m", "1d"}[d.IntN(3)],
			"cap":    1 + d.IntN(20),
		}
	}
	if d.IntN(5) == 0 {
		r["pause_after_failures"] = 1 + d.IntN(3)
	}
	return r
}

func (w *Client) changesTheSchedule(name string, d *rand.Rand) {
	path := "/schedules/" + name
	there := []int{200, 404} // 404: it may have been deleted
	switch d.IntN(10) {
	case 0, 1:
		pause := object{}
		if m := d.IntN(4); m > 0 {
			pause["missed"] = []string{"drop", "last", "all"}[m-1]
		}
		if d.IntN(3) == 0 {
			pause["until"] = stamp(time.Now().Add(time.Minute + time.Duration(d.Int64N(int64(20*time.Minute)))))
		}
		w.Want(orOver(there...), "POST", path+"/pause", pause)
	case 2, 3, 4:
		w.Want(there, "POST", path+"/resume", nil)
	case 5:
		w.Want(orOver(there...), "PATCH", path, object{"calendar": w.anyCalendar(d)})
	case 6:
		w.Want(there, "PATCH", path, w.anyRule(d))
	case 7:
		w.End(name)
		if d.IntN(2) == 0 {
			w.Want(orOver(200, 201), "PUT", path, w.whole(d))
		}
	case 8:
		w.Want([]int{202, 404}, "POST", path+"/run-now", nil)
	case 9:
		w.Want(there, "GET", path, nil)
		w.Want(there, "GET", path+"/occurrences?limit=5", nil)
	}
}

// orOver adds 400 to the codes of an answer: a calendar may end, or a time pass, before the answer.
func orOver(codes ...int) []int { return append(codes, 400) }

// whole returns a complete random schedule.
func (w *Client) whole(d *rand.Rand) object {
	r := w.anyRule(d)
	r["calendar"] = w.anyCalendar(d)
	return r
}

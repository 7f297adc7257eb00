package sim

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"punctual/shared/job"
)

// Climate derives the world of a seed: how many workers and tenants it has, how far clocks differ,
// and how much goes wrong.
func Climate(seed uint64) Options {
	d := dice(seed, "climate")
	pick := func(of ...time.Duration) time.Duration { return of[d.IntN(len(of))] }
	o := Options{
		Seed:       seed,
		Shards:     1 + d.IntN(3),
		EmptyPages: d.IntN(3) == 0,
		Workers:    1 + d.IntN(3),
		Pumps:      1 + d.IntN(2),
		TimersBad:  d.IntN(3) == 0,
		Skew:       pick(0, time.Second, 2400*time.Millisecond),
		IndexLag:   pick(0, 2*time.Second, 10*time.Second, 100*time.Second),
		StreamLag:  pick(0, 500*time.Millisecond, 4*time.Second),
		Restart:    pick(time.Second, 20*time.Second, 70*time.Second),
		Late:       3 * time.Minute,
	}
	share := func(most int) int { return max(0, d.IntN(most+most/2)-most/2) } // zero for a third of the seeds
	o.Plan = Storm(seed, Weather{
		Fail:   share(80),
		Lost:   share(80),
		Twice:  share(120),
		Hang:   share(15),
		Slow:   share(30),
		Late:   share(50),
		Freeze: share(6),
		Crash:  share(12),
	})
	return o
}

// Chaos does random things with jobs for some minutes while faults happen, then calms the world and
// lets everything settle.
func Chaos(w *World) {
	d := dice(w.o.Seed, "people")
	jobs := 5 + d.IntN(8)
	tenantCount := 1 + d.IntN(len(tenants))
	var people sync.WaitGroup
	for n := range tenantCount {
		w.As(tenants[n]).Define()
	}
	for n := range jobs {
		mine := rand.New(rand.NewPCG(w.o.Seed, uint64(n)))
		c := w.As(tenants[n%tenantCount])
		people.Go(func() { c.user(n/tenantCount, mine) }) // each tenant uses the same keys
	}
	for n := range tenantCount {
		if d.IntN(2) == 0 {
			c, mine := w.As(tenants[n]), dice(w.o.Seed, "pauses of "+string(tenants[n]))
			people.Go(func() { c.userPauses(mine) })
		}
	}
	if d.IntN(2) == 0 {
		mine := dice(w.o.Seed, "console")
		people.Go(func() {
			for range 3 {
				sleepUpTo(mine, 2*time.Minute)
				w.Redrive()
			}
		})
	}
	if d.IntN(2) == 0 {
		people.Go(w.deployments)
	}
	if d.IntN(30) == 0 {
		c := w.As(tenants[0])
		jobs += crowdOf
		people.Go(func() { c.crowd(c.nextCrowd()) })
	}
	if w.o.Hazards.Outages && dice(w.o.Seed, "hurt").IntN(2) == 0 {
		people.Go(w.outages)
	}
	if w.o.Hazards.LastSecond {
		mine := dice(w.o.Seed, "late")
		late := mine.IntN(4)
		jobs += late
		for n := range late {
			of := rand.New(rand.NewPCG(w.o.Seed, uint64(1000+n)))
			people.Go(func() { w.As(tenants[n%tenantCount]).cancelsLate(n, of) })
		}
	}
	if w.o.Hazards.Afters {
		mine := dice(w.o.Seed, "afters")
		after := mine.IntN(6)
		jobs += after
		for n := range after {
			of := rand.New(rand.NewPCG(w.o.Seed, uint64(2000+n)))
			people.Go(func() { w.As(tenants[n%tenantCount]).comesAfter(n, of) })
		}
	}
	for n := range dice(w.o.Seed, "pauses of jobs").IntN(6) {
		of := rand.New(rand.NewPCG(w.o.Seed, uint64(3000+n)))
		people.Go(func() { w.As(tenants[n%tenantCount]).pausesSome(of) })
	}
	people.Wait()
	w.Calm()
	for range 3 { // a job that was redriven too early comes back to the dead-letter queue
		w.Settle(2 * time.Hour)
		time.Sleep(20 * time.Second)
		w.Redrive()
		time.Sleep(2 * time.Second)
	}
	w.Settle(2 * time.Hour)
	time.Sleep(4 * time.Minute)
	w.Check()
	posted := 0
	for _, r := range w.ledger.all() {
		if r.RedriveOf == "" {
			posted++
		}
	}
	if posted != jobs {
		w.violation("%d jobs were posted, each under a key of its own, and there are %d", jobs, posted)
	}
}

func sleepUpTo(d *rand.Rand, most time.Duration) {
	time.Sleep(time.Duration(d.Int64N(int64(most))))
}

// deployments replaces processes at random times.
func (w *World) deployments() {
	mine := dice(w.o.Seed, "deployments")
	for range 1 + mine.IntN(3) {
		sleepUpTo(mine, 2*time.Minute)
		w.Deploy()
	}
}

// user posts a job and may cancel, move or edit it.
func (w *Client) user(n int, d *rand.Rand) {
	sleepUpTo(d, 3*time.Minute)
	delays := []string{"1ms", "1900ms", "2500ms", "7s", "40s", "3m", "13m59s", "14m30s", "31m", "33m"}
	body := object{"delay": delays[d.IntN(len(delays))], "timeout": "1m"}
	work := Work{}
	switch d.IntN(8) {
	case 0:
		work.Fail = 1 + d.Int64N(3)
	case 1:
		work.Snooze = 1
	case 2:
		work.Permanent = true
	case 3:
		work.Fail = 9
		body["retry"] = object{"max_attempts": 2}
	case 4:
		work.Sleep = "50s"
	case 5:
		work.Sleep = "3s"
		work.Fail = 1
	}
	switch d.IntN(8) {
	case 0:
		body["start_within"] = "20s"
	case 1:
		body["expire_after"] = "30s"
	case 2:
		body["priority"] = "critical"
	}
	if w.o.Hazards.OddText && n%3 == 0 {
		work.Mark, work.Text = oddText, oddText
	}
	body["payload"] = work
	id := w.Post(fmt.Sprintf("job %d", n), body)
	if id == "" {
		return
	}
	for range d.IntN(3) {
		sleepUpTo(d, 40*time.Second)
		w.changesTheirMind(id, d)
	}
	if r, ok := w.row(id); !ok {
		w.violation("job %s was acknowledged and is not there", short(id))
	} else if r.CancelRequestedAt.IsZero() && r.Status == job.Cancelled {
		w.violation("job %s was cancelled by nobody", short(id))
	}
}

func (w *Client) changesTheirMind(id job.ID, d *rand.Rand) {
	path := "/jobs/" + string(id)
	switch d.IntN(6) {
	case 0, 1:
		code, v := w.Want([]int{200, 202, 409}, "POST", path+"/cancel", nil)
		if r, _ := w.row(id); code == 200 && (v["status"] != "CANCELLED" || r.Status != job.Cancelled) {
			w.violation("cancelling %s answered 200 %v, and it is %s", short(id), v["status"], r.Status)
		}
	case 2:
		at := time.Now().Add(time.Duration(d.Int64N(int64(5 * time.Minute)))).Truncate(time.Millisecond)
		// 400: its time may be in the past when it is answered.
		w.Want([]int{200, 400, 409}, "PATCH", path, object{"run_at": at.UTC().Format("2006-01-02T15:04:05.000Z07:00")})
	case 3:
		w.Want([]int{200, 409}, "POST", path+"/run-now", nil)
	case 4:
		w.Want([]int{202, 409}, "POST", path+"/redrive", nil)
	case 5:
		w.Want([]int{200}, "GET", path, nil)
	}
}

// pausesSome pauses and resumes random jobs, in whatever state they are.
func (w *Client) pausesSome(d *rand.Rand) {
	for range 1 + d.IntN(4) {
		sleepUpTo(d, 2*time.Minute)
		rows := w.rows()
		if len(rows) == 0 {
			continue
		}
		path := "/jobs/" + string(rows[d.IntN(len(rows))].ID)
		w.Want([]int{200, 404, 409}, "POST", path+"/pause", nil)
		sleepUpTo(d, 4*time.Minute)
		w.Want([]int{200, 404, 409}, "POST", path+"/resume", nil)
	}
}

func (w *Client) userPauses(d *rand.Rand) {
	for range 1 + d.IntN(2) {
		sleepUpTo(d, 3*time.Minute)
		if d.IntN(2) == 0 {
			n := w.Pause(object{})
			sleepUpTo(d, 5*time.Minute)
			w.Lift(n)
			continue
		}
		until := time.Now().Add(2*time.Minute + time.Duration(d.Int64N(int64(20*time.Minute)))).Truncate(time.Second)
		n := w.Pause(object{"until": until.UTC().Format(time.RFC3339)})
		w.Over(n, until.Add(-w.o.Skew))
		time.Sleep(time.Until(until) + 2*w.o.Skew)
	}
}

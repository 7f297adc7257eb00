package sim

import (
	"time"

	"punctual/shared/contract"
)

// shortPauses are about schedules of every second that are paused for seconds.
var shortPauses = []Story{
	{
		Name: "an every-second schedule is paused for seven seconds, drop", Recurs: true, Held: true,
		Play: secondsPaused("drop", "schedule"),
	},
	{
		Name: "an every-second schedule is paused for seven seconds, last", Recurs: true, Held: true,
		Play: secondsPaused("last", "schedule"),
	},
	{
		Name: "an every-second schedule is paused for seven seconds, all", Recurs: true, Held: true,
		Play: secondsPaused("all", "schedule"),
	},
	{
		Name: "the task of an every-second schedule is paused for seven seconds, drop", Recurs: true, Held: true,
		Play: secondsPaused("drop", "task"),
	},
	{
		Name: "the task of an every-second schedule is paused for seven seconds, last", Recurs: true, Held: true,
		Play: secondsPaused("last", "task"),
	},
	{
		Name: "the task of an every-second schedule is paused for seven seconds, all", Recurs: true, Held: true,
		Play: secondsPaused("all", "task"),
	},
	{
		Name: "everything is paused for seven seconds under an every-second schedule, drop", Recurs: true, Held: true,
		Play: secondsPaused("drop", "all"),
	},
	{
		Name: "everything is paused for seven seconds under an every-second schedule, last", Recurs: true, Held: true,
		Play: secondsPaused("last", "all"),
	},
	{
		Name: "everything is paused for seven seconds under an every-second schedule, all", Recurs: true, Held: true,
		Play: secondsPaused("all", "all"),
	},
}

// secondsPaused pauses a schedule of every second for seven seconds.
func secondsPaused(missed, what string) func(*Client) func() {
	return func(w *Client) func() {
		w.Put("s", every("1s", 40*time.Second), object{"catch_up": object{"policy": "all"}})
		time.Sleep(15200 * time.Millisecond)
		var h heldTimes
		switch what {
		case "schedule":
			h.effective = effectiveAt(w.Do("s", "pause", object{"missed": missed}))
			time.Sleep(7 * time.Second)
			h.lifted = time.Now()
			w.Do("s", "resume", object{})
		default:
			scope := what
			if what == "task" {
				scope += ":" + taskOf(w.tenant)
			}
			n := w.PauseScope(scope, object{"missed": missed})
			h.effective = w.pauses[n].since
			time.Sleep(7 * time.Second)
			h.lifted = time.Now()
			w.LiftScope(n, scope)
		}
		return func() {
			w.Decided("s", missed, h)
			w.lateness("s")
		}
	}
}

// effectiveAt returns from when a pause holds, as its answer says.
func effectiveAt(v object) time.Time {
	s, _ := v["effective_at"].(string)
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Now().Add(contract.EffectiveAfter)
	}
	return at
}

// lateness verifies that the views of a schedule's jobs show how long after due they started.
func (w *Client) lateness(name string) {
	if w.o.Disturbed { // a worker may have been frozen between its own start and the handler's
		return
	}
	for _, f := range w.fates(w.key(name)) {
		runs := w.runs(f.row.Key)
		if len(runs) == 0 {
			continue
		}
		_, v := w.Want([]int{200}, "GET", "/jobs/"+string(f.row.ID), nil)
		said, _ := v["start_lateness_ms"].(float64)
		is := runs[0].from.Sub(f.DueAt)
		off := time.Duration(said)*time.Millisecond - is
		if off.Abs() > 100*time.Millisecond+2*w.o.Skew {
			w.violation("%s started %s after it was due, and its job says %v ms", clockTime(f.NominalAt), is, said)
		}
	}
}

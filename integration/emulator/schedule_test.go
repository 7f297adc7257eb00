package emulator_test

import (
	"slices"
	"testing"
	"time"

	"punctual/integration/emulator/environment"
	"punctual/integration/story"
)

// ran returns when each run of a schedule started, by nominal time.
func ran(t *testing.T, h *shop, schedule string) map[time.Time]time.Time {
	t.Helper()
	started := map[time.Time]time.Time{}
	for cursor := ""; ; {
		page := h.Want(200, "GET", "/schedules/"+schedule+"/occurrences?outcome=ran&limit=200"+cursor, nil)
		items, _ := page["items"].([]any)
		for _, i := range items {
			o := i.(story.Object)
			if v := h.Job(o["job_id"].(string)); v["started_at"] != nil {
				started[story.At(t, o["nominal_at"])] = story.At(t, v["started_at"])
			}
		}
		next, _ := page["next_cursor"].(string)
		if next == "" {
			return started
		}
		cursor = "&cursor=" + next
	}
}

// A schedule of every five seconds runs twelve times a minute, and a pause stops it exactly.
func TestSchedule_RunsEveryFiveSecondsOverMiniStack(t *testing.T) {
	t.Parallel()
	h := build(t, environment.MiniStack(t).Config())
	h.Want(201, "PUT", "/schedules/tick", story.Object{"calendar": story.Object{"cron": "*/5 * * * * *"},
		"job": story.Object{"task": "echo"}})
	from := time.Now().Truncate(time.Minute).Add(time.Minute)
	time.Sleep(time.Until(from.Add(time.Minute)))
	for over := time.Now().Add(patient); ; time.Sleep(500 * time.Millisecond) {
		inMinute := 0
		for nominal := range ran(t, h, "tick") {
			if !nominal.Before(from) && nominal.Before(from.Add(time.Minute)) {
				inMinute++
			}
		}
		if inMinute == 12 {
			break
		}
		if time.Now().After(over) {
			t.Fatalf("%d of 12 times of one minute have run %s after it", inMinute, patient)
		}
	}
	paused := h.Want(200, "POST", "/schedules/tick/pause", story.Object{"reason": "enough"})
	effective := story.At(t, paused["effective_at"])
	time.Sleep(12 * time.Second)

	var late []time.Duration
	for nominal, started := range ran(t, h, "tick") {
		late = append(late, started.Sub(nominal))
		if started.After(effective) {
			t.Errorf("the run of %s started at %s, after the pause was effective at %s", nominal, started, effective)
		}
	}
	slices.Sort(late)
	t.Logf("start lateness of %d runs: p50 %s, p99 %s", len(late), late[len(late)/2], late[len(late)*99/100])
	if late[0] < 0 || late[len(late)*99/100] > promised() {
		t.Errorf("lateness is %s to %s, want at most %s", late[0], late[len(late)-1], promised())
	}
}

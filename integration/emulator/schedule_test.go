package emulator_test

import (
	"slices"
	"testing"
	"time"

	"punctual/integration/emulator/environment"
	"punctual/integration/story"
)

// A schedule of every five seconds runs twelve times a minute, and pausing stops it exactly.
func TestAScheduleOfEveryFiveSecondsOverMiniStack(t *testing.T) {
	t.Parallel()
	h := build(t, environment.MiniStack(t).Config())
	h.Want(201, "PUT", "/schedules/tick", story.Object{"calendar": story.Object{"cron": "*/5 * * * * *"}, "job": story.Object{"task": "echo"}})
	from := time.Now().Truncate(time.Minute).Add(time.Minute)
	time.Sleep(time.Until(from.Add(62 * time.Second)))
	paused := h.Want(200, "POST", "/schedules/tick/pause", story.Object{"reason": "enough"})
	effective := story.At(t, paused["effective_at"])
	time.Sleep(12 * time.Second)

	var late []time.Duration
	inMinute := map[time.Time]bool{}
	for cursor := ""; ; {
		page := h.Want(200, "GET", "/schedules/tick/occurrences?outcome=ran&limit=200"+cursor, nil)
		items, _ := page["items"].([]any)
		for _, i := range items {
			o := i.(story.Object)
			nominal := story.At(t, o["nominal_at"])
			v := h.Job(o["job_id"].(string))
			started := story.At(t, v["started_at"])
			late = append(late, started.Sub(nominal))
			if started.After(effective) {
				t.Errorf("the run of %s started at %s, after the pause was effective at %s", nominal, started, effective)
			}
			if !nominal.Before(from) && nominal.Before(from.Add(time.Minute)) {
				inMinute[nominal] = true
			}
		}
		next, _ := page["next_cursor"].(string)
		if next == "" {
			break
		}
		cursor = "&cursor=" + next
	}
	if len(inMinute) != 12 {
		t.Errorf("%d of 12 times of one minute ran", len(inMinute))
	}
	slices.Sort(late)
	t.Logf("start lateness of %d runs: p50 %s, p99 %s", len(late), late[len(late)/2], late[len(late)*99/100])
	if late[0] < 0 || late[len(late)*99/100] > promised() {
		t.Errorf("lateness is %s to %s, want at most %s", late[0], late[len(late)-1], promised())
	}
}

package system_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"punctual/integration/story"
)

// occurrences returns all of a schedule's occurrences that began in that range, page by page.
func (b *bench) occurrences(name, query string) []object {
	b.T.Helper()
	var all []object
	for cursor := ""; ; {
		path := "/schedules/" + name + "/occurrences?limit=200" + query
		if cursor != "" {
			path += "&cursor=" + cursor
		}
		page := b.Want(http.StatusOK, "GET", path, nil)
		items, _ := page["items"].([]any)
		for _, i := range items {
			all = append(all, i.(object))
		}
		next, _ := page["next_cursor"].(string)
		if cursor = next; cursor == "" {
			return all
		}
	}
}

//proof:of 3
func TestSchedule_RunsOverRESTFromStartToEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		defer b.stop()
		body := object{
			"calendar": object{"cron": "*/5 * * * * *"}, "job": object{"task": "echo", "payload": object{"n": 1}},
			"catch_up": object{"policy": "last", "window": "1h"},
		}
		b.Want(http.StatusCreated, "PUT", "/schedules/often", body)
		b.Want(http.StatusOK, "PUT", "/schedules/often", body) // the same body changes nothing
		time.Sleep(10*time.Minute + 2*time.Second)
		ran := b.occurrences("often", "&outcome=ran")
		if len(ran) < 119 || len(ran) > 121 {
			t.Errorf("%d ran in ten minutes", len(ran))
		}
		for _, o := range ran {
			if late, _ := o["start_lateness_ms"].(float64); late > 100 {
				t.Errorf("late: %v", o)
			}
		}
		paused := b.Want(http.StatusOK, "POST", "/schedules/often/pause",
			object{"reason": "a look at it", "missed": "drop"})
		effective := story.At(t, paused["paused"].(object)["effective_at"])
		time.Sleep(10 * time.Minute)
		for _, o := range b.occurrences("often", "&outcome=ran") {
			if at := story.At(t, o["nominal_at"]); at.After(effective) {
				t.Errorf("ran under the pause: %v", o)
			}
		}
		b.Want(http.StatusOK, "POST", "/schedules/often/resume", nil)
		time.Sleep(5*time.Minute + time.Second)
		if n := len(b.occurrences("often", "&outcome=ran")); n < 178 || n > 200 {
			t.Errorf("%d ran in all", n)
		}
		if len(b.occurrences("often", "&outcome=skipped")) == 0 {
			t.Error("nothing says what passed under the pause")
		}
		b.Want(http.StatusOK, "PATCH", "/schedules/often", object{"calendar": object{"cron": "0 0 1 1 *"}})
		edited := time.Now()
		time.Sleep(time.Hour)
		for _, o := range b.occurrences("often", "&outcome=ran") {
			if at := story.At(t, o["nominal_at"]); at.After(edited) {
				t.Errorf("ran after the edit: %v", o)
			}
		}
		if n := len(b.occurrences("often", "&outcome=superseded")); n < 300 {
			t.Errorf("%d were superseded by the edit", n)
		}
		if n := len(b.occurrences("often", "&outcome=pending")); n > 1 {
			t.Errorf("%d are pending", n)
		}
		job := b.Want(http.StatusAccepted, "POST", "/schedules/often/run-now", nil)
		time.Sleep(time.Second)
		b.WantStatus(job["job_id"].(string), "SUCCEEDED")
		if newest := b.occurrences("often", "&outcome=ran")[0]; newest["job_id"] != job["job_id"] ||
			newest["manual"] != true {
			t.Errorf("the run that was asked for is not the newest of its schedule: %v", newest)
		}
		b.Want(http.StatusNoContent, "DELETE", "/schedules/often", nil)
		if code, _ := b.Call("GET", "/schedules/often", nil); code != http.StatusNotFound {
			t.Errorf("a deleted schedule answers %d", code)
		}
	})
}

//proof:of F40
func TestPauseSchedule_EndsAtItsUntilOverREST(t *testing.T) {
	t.Parallel()
	for name, lasts := range map[string]time.Duration{
		"in the queue's reach": 5*time.Minute + 300*time.Millisecond, "in a timer's reach": 25 * time.Minute,
		"beyond the horizon": 2*time.Hour + 30*time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				defer b.stop()
				b.Want(http.StatusCreated, "PUT", "/schedules/often", object{
					"calendar": object{"every": "10s"}, "job": object{"task": "echo"},
				})
				time.Sleep(time.Minute)
				until := time.Now().Add(lasts).UTC()
				b.Want(http.StatusOK, "POST", "/schedules/often/pause",
					object{"until": until.Format("2006-01-02T15:04:05.000Z07:00")})
				time.Sleep(time.Until(until) - time.Second)
				if s := b.Want(http.StatusOK, "GET", "/schedules/often", nil); s["paused"] == nil {
					t.Error("a second before its end it is over")
				}
				time.Sleep(6 * time.Second)
				if s := b.Want(http.StatusOK, "GET", "/schedules/often", nil); s["paused"] != nil {
					t.Errorf("five seconds after its end it holds: %v", s["paused"])
				}
				time.Sleep(10 * time.Second)
				kept := 0 // the last of the times that the pause held
				for _, o := range b.occurrences("often", "&outcome=ran") {
					if at := story.At(t, o["nominal_at"]); at.Before(until) && until.Sub(at) <= 10*time.Second {
						kept++
					}
				}
				newest := b.occurrences("often", "&outcome=ran")[0]
				if at := story.At(t, newest["nominal_at"]); kept != 1 || at.Before(until) {
					t.Errorf("%d ran of those that it held, and the newest is %v", kept, newest)
				}
			})
		})
	}
}

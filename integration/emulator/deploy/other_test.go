package deploy

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"punctual/integration/story"
)

// exercised reports that the roles have had occasion to use their grants.
var exercised bool

// The stories matter here only for the calls that they make.
func TestRoles_UseTheirRarerGrants(t *testing.T) {
	d := setup(t)
	if os.Getenv("AWS_ENDPOINT_URL") != "" {
		t.Skip("functions of an emulator that was started elsewhere do not record their calls")
	}
	d.explain(t, "api-write", "api-read", "stream", "status", "sweeper", "promoter", "prewarm")
	d.work(t, "short")
	a := d.api(t, "umbrella", everything...)
	const most = 3 * time.Minute
	large := strings.Repeat("x", 300<<10)

	a.Want(http.StatusCreated, "PUT", "/exclusions/never", story.Object{"dates": []string{"2000-06-06"}})
	a.Want(http.StatusCreated, "PUT", "/schedules/each-minute", story.Object{
		"calendar": story.Object{"every": "1m", "exclude": []string{"never"}},
		"job":      story.Object{"task": "echo", "payload": large},
	})
	a.Want(http.StatusCreated, "PUT", "/tasks/unused", story.Object{"executor": "go"})
	a.Call("DELETE", "/tasks/unused", nil)

	big := a.Post(story.Object{"task": "echo", "payload": large})
	a.Await(big, "SUCCEEDED", most)
	a.Call("DELETE", "/jobs/"+big, nil)

	later := a.Post(story.Object{"task": "echo", "delay": "50m"})
	a.Want(http.StatusOK, "PATCH", "/jobs/"+later, story.Object{"delay": "20m"})
	a.Call("POST", "/jobs/"+later+"/run-now", nil)
	a.Await(later, "SUCCEEDED", most)

	dead := a.Post(story.Object{"task": "echo", "payload": story.Object{"fail": 9},
		"retry": story.Object{"max_attempts": 1}})
	a.Await(dead, "DEAD", most)
	a.Call("POST", "/dead-letters/purge", story.Object{"job_ids": []string{dead}})

	held := a.Post(story.Object{"task": "echo", "delay": "50m"})
	a.Want(http.StatusAccepted, "POST", "/operations", story.Object{"action": "cancel",
		"filter": story.Object{"job_ids": []string{held}}})
	a.Await(held, "CANCELLED", most)

	for over := time.Now().Add(6 * time.Minute); ; time.Sleep(time.Second) { // the ticks of the next minute
		made, err := os.ReadFile(calls())
		if err != nil {
			t.Fatal(err)
		}
		missing := ""
		for _, who := range []string{"promoter", "sweeper", "prewarm"} {
			if !strings.Contains(string(made), prefix+"-"+who+"\t") {
				missing = who
			}
		}
		if missing == "" {
			break
		}
		if time.Now().After(over) {
			t.Fatalf("%s made no call in six minutes", missing)
		}
	}
	a.Call("DELETE", "/schedules/each-minute", nil)
	exercised = true
}

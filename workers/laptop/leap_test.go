package laptop

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

// here serves in this process until the test ends.
func here(t *testing.T, o Options) *client.Client {
	t.Helper()
	var url string
	return hereAt(t, o, &url)
}

func hereAt(t *testing.T, o Options, url *string) *client.Client {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	addr, ended := make(chan string), make(chan error, 1)
	o.Addr, o.Serving = "127.0.0.1:0", func(at string) { addr <- at }
	go func() { ended <- Serve(ctx, o) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case at := <-addr:
		*url = "http://" + at
		return must[*client.Client](t)(client.New(*url))
	case err := <-ended:
		t.Fatal(err)
	}
	return nil
}

func putSchedule(t *testing.T, c *client.Client, name, body string) rest.ScheduleView {
	t.Helper()
	var r rest.ScheduleRequest
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	return must[rest.ScheduleView](t)(c.PutSchedule(t.Context(), name, r))
}

func TestServe_ShowsAClockChangeInSeconds(t *testing.T) {
	t.Parallel()
	c := here(t, Options{At: time.Date(2027, 3, 28, 0, 25, 0, 0, time.UTC), Speed: maxSpeed})
	putSchedule(t, c, "night",
		`{"calendar":{"cron":"30 1,2 * * *","timezone":"Europe/Berlin"},"job":{"task":"echo"}}`)
	ran := map[string]bool{}
	for end := time.Now().Add(time.Minute); len(ran) < 2; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in a minute only these ran: %v", ran)
		}
		for o, err := range c.Occurrences(t.Context(), "night", nil) {
			if err != nil {
				t.Fatal(err)
			}
			if late := o.StartLatenessMs; late != nil {
				ran[o.NominalAt.Format("15:04")] = true
				if *late > 5000 {
					t.Errorf("%s started %d ms late", o.NominalAt, *late)
				}
			}
		}
	}
	// 01:30 is there as every night; 02:30 is not, and its job runs when the clocks have gone forward.
	if !ran["00:30"] || !ran["01:00"] {
		t.Errorf("%v", ran)
	}
}

func TestServe_RefusesToKeepAnotherTime(t *testing.T) {
	t.Parallel()
	for words, o := range map[string]Options{
		"time 1960-01-01T00:00:00Z: want one of the years 1971 to 2299": {At: time.Date(1960, 1, 1, 0, 0, 0, 0,
			time.UTC)},
		"the years 1971 to 2299": {At: time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)},
		"nothing is kept":        {Data: t.TempDir(), Speed: 60},
		"want 1 to 600":          {Speed: 601},
		"want 1 to":              {Speed: -1},
	} {
		o.Addr = "127.0.0.1:0"
		if err := Serve(t.Context(), o); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%+v: %v, want %q", o, err, words)
		}
	}
}

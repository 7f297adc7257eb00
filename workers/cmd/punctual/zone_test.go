package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// asked are the requests that an API got: their queries and bodies.
type asked struct {
	mu   sync.Mutex
	text strings.Builder
}

// serveAsked serves an API at which it is now, and which knows nothing else.
func serveAsked(t *testing.T, now string) (a *asked, address string) {
	t.Helper()
	a = &asked{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/ready") {
			_, _ = fmt.Fprintf(w, `{"now":%q}`, now)
			return
		}
		body, _ := io.ReadAll(r.Body)
		a.mu.Lock()
		defer a.mu.Unlock()
		query, _ := url.QueryUnescape(r.URL.RawQuery)
		_, _ = fmt.Fprintln(&a.text, query, string(body))
		if strings.HasSuffix(r.URL.Path, "/dead-letters/redrive") {
			_, _ = io.WriteString(w, `{"items":[{"job_id":"01JQ7Z3W9V5K2M8X4T6B1N0C9D"}]}`)
			return
		}
		_, _ = io.WriteString(w, `{"items":[],"series":{},"starts":[],"step":"1h"}`)
	}))
	t.Cleanup(server.Close)
	return a, server.URL
}

var written = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:[\d.]+(?:Z|[+-]\d\d:\d\d)`)

// minutes are the times of the requests, to the minute, in UTC.
func (a *asked) minutes() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []string
	for _, text := range written.FindAllString(strings.ReplaceAll(a.text.String(), " 05:30", "+05:30"), -1) {
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			all = append(all, at.UTC().Format("01-02 15:04"))
		}
	}
	return strings.Join(all, ", ")
}

// In Kolkata it is 01:30 of December 1st: another day, and five and a half hours ahead of UTC.
func TestTimesOfDay_AreThoseOfTheMachinesZone(t *testing.T) {
	t.Parallel()
	const id = "01JQ7Z3W9V5K2M8X4T6B1N0C9D"
	command := filepath.Join(program(t), "punctual")
	for _, args := range []string{
		"run echo --at 23:26",
		"redrive " + id + " --at 23:26",
		"dead redrive " + id + " --at 23:26",
		"pause all --until 23:26",
		"schedule pause nightly --until 23:26",
		"schedule why nightly --at 23:26",
		"schedule backfill nightly --from 22:00 --to 23:26",
		"ls --created-after 22:00 --created-before 23:26",
		"ls --due-after 22:00 --due-before 23:26",
		"ls --finished-after 22:00 --finished-before 23:26",
		"dead ls --after 22:00 --before 23:26",
		"dead groups --after 23:26",
		"audit ls --after 22:00 --before 23:26",
		"stats --from 22:00 --to 23:26",
		"usage --from 22:00 --to 23:26",
		"forecast show --from 22:00 --to 23:26",
		"operation create reschedule --task echo --at 23:26",
		"operation create cancel --created-after 22:00 --created-before 23:26",
		"operation create cancel --due-after 22:00 --due-before 23:26",
		"operation create cancel --finished-after 22:00 --finished-before 23:26",
		"operation create redrive --dead-after 22:00 --dead-before 23:26",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			a, address := serveAsked(t, "2026-11-30T20:00:00Z")
			cmd := exec.CommandContext(t.Context(), command, append([]string{"--url", address},
				strings.Fields(args)...)...)
			cmd.Env = append(os.Environ(), "TZ=Asia/Kolkata", "PUNCTUAL_TOKEN=", "PUNCTUAL_CONFIG="+t.TempDir()+"/none")
			out, _ := cmd.CombinedOutput() // only the requests count
			got := a.minutes()
			for typed, want := range map[string]string{"22:00": "12-01 16:30", "23:26": "12-01 17:56"} {
				if strings.Contains(args, typed) && !strings.Contains(got, want) {
					t.Errorf("%s is not sent as %s but as %s\n%s", typed, want, got, out)
				}
			}
		})
	}
}

// Each flag for a time has a row in the test above.
func TestTimesOfDay_AreTriedForEachFlag(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("zone_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range modelOf(t).Model.Leaves(false) {
		for _, f := range verb.Flags {
			tried := regexp.MustCompile(`"` + strings.TrimSuffix(nameOf(verb), " <scope>") + ` [^\n]*--` + f.Name + ` `)
			if f.PlaceHolder == "TIME" && nameOf(verb) != "serve" && !tried.Match(text) {
				t.Errorf("%s --%s is not tried", nameOf(verb), f.Name)
			}
		}
	}
}

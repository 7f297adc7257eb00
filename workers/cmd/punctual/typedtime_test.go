package main

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones of the table, wherever the test runs
)

func TestTypedTime_IsATimeOfTodayOrADateWithItsZone(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, berlin)
	for _, c := range []struct {
		typed string
		now   time.Time
		at    string // in UTC; "" for an error
		words string
	}{
		{"13:26", noon, "2026-11-30T12:26:00Z", ""},
		{"23:59:59", noon, "2026-11-30T22:59:59Z", ""},
		{"2026-11-30T12:26:00+05:30", noon, "2026-11-30T06:56:00Z", ""}, // a past date is the API's to refuse
		{"11:26", noon, "", "11:26 is today at 2026-11-30T11:26:00+01:00, which has passed: it is 12:00:00; " +
			"for tomorrow write 2026-12-01T11:26:00+01:00"},
		{"12:00", noon, "", "has passed"},
		{"02:30", time.Date(2027, 3, 28, 0, 0, 0, 0, berlin), "", "skip this time today"},
		{"02:30", time.Date(2026, 10, 25, 0, 0, 0, 0, berlin), "", "show this time twice today"},
		{"03:30", time.Date(2027, 3, 28, 0, 0, 0, 0, berlin), "2027-03-28T01:30:00Z", ""},
	} {
		var m typedTime
		if err := m.UnmarshalText([]byte(c.typed)); err != nil {
			t.Fatal(err)
		}
		at, err := m.comingOn(c.now)
		if c.at == "" {
			if err == nil || code(err) != exitUsage || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%s: %v, want %q", c.typed, err, c.words)
			}
			continue
		}
		if err != nil || at.UTC().Format(time.RFC3339) != c.at {
			t.Errorf("%s: %s %v, want %s", c.typed, at, err, c.at)
		}
	}
	var none typedTime
	if at, err := none.comingOn(noon); err != nil || !at.IsZero() {
		t.Errorf("nothing is typed: %s %v", at, err)
	}
}

func TestTypedTime_IsTakenByEachOptionForATime(t *testing.T) {
	t.Parallel()
	const past = "00:00:00" // today's has passed at any time of day but this second
	for _, args := range [][]string{{"run", "echo", "--at", past}, {"pause", "task:http", "--until", past},
		{"redrive", "x", "--at", past}, {"schedule", "pause", "x", "--until", past}} {
		bad(t, exitUsage, args[len(args)-2]+" "+past+" is today at 20", args...)
	}
	bad(t, exitRefused, "not_found", "schedule", "why", "nobody", "--at", past) // a past time may be explained
	bad(t, exitUsage, `"2027-03-28" is neither a time of today, such as 11:26, nor a date with a zone`, "run", "echo",
		"--at", "2027-03-28")
	at := time.Now().Add(time.Hour)
	if at.Day() == time.Now().Day() { // not in the last hour of a day
		due := object(t, "run", "echo", "--at", at.Format("15:04"))["due_at"]
		if want := at.UTC().Format("2006-01-02T15:04:00Z"); due != want {
			t.Errorf("due at %v, want %s", due, want)
		}
	}
}

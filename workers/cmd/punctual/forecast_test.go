package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"punctual/shared/client/rest"
)

func TestForecast_ShowsStartsAndCalmMinutes(t *testing.T) {
	t.Parallel()
	name := fresh("cli-forecast")
	putHourly(t, name)
	var f rest.ForecastView
	if err := json.Unmarshal([]byte(good(t, "forecast", "-o", "json")), &f); err != nil || f.Step != "1h" ||
		len(f.Starts) < 24 || f.Starts[1] < 1 || f.Peak.Starts < 1 {
		t.Errorf("by the hour: %+v, %v", f, err)
	}
	to := time.Now().Add(2 * time.Hour).UTC().Format(time.RFC3339)
	out := good(t, "forecast", "show", "--to", to, "--step", "12h")
	if !strings.Contains(out, "STARTS") || !strings.Contains(out, "most") {
		t.Errorf("as a table: %s", out)
	}
	if out := good(t, "forecast", "calm", "--between", "01:10-01:30", "--timezone", "Asia/Tokyo", "-n",
		"2"); strings.Count(out, "+09:00") != 2 || !strings.Contains(out, "T01:") {
		t.Errorf("calm: %s", out)
	}
	if out := good(t, "forecast", "calm", "-n", "3", "-o", "name"); strings.Count(out, "\n") != 3 {
		t.Errorf("names: %s", out)
	}
	if out := good(t, "schedule", "preview", name, "-n", "1"); !strings.Contains(out, "LOAD") {
		t.Errorf("preview: %s", out)
	}
	bad(t, exitUsage, "out_of_range", "forecast", "--step", "1s")
	bad(t, exitUsage, "invalid_value", "forecast", "calm", "--timezone", "Europe/Atlantis")
	bad(t, exitUsage, "invalid_value", "forecast", "calm", "--between", "night")
}

package zonefile

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"punctual/shared/calendar"
)

func TestTake_KeepsTheRulesBuiltInWhateverTheFile(t *testing.T) {
	t.Parallel()
	builtIn, err := os.ReadFile("../calendar/zoneinfo.zip")
	if err != nil {
		t.Fatal(err)
	}
	dir, before := t.TempDir(), calendar.Zones()
	for name, tt := range map[string]struct {
		data []byte
		logs string
	}{
		"absent": {nil, ""}, "empty": {[]byte{}, "were not taken"}, "the same": {builtIn, "not newer than"},
		"damaged": {builtIn[:1000], "were not taken"}, "large": {make([]byte, maxFile+1), "it has over"},
	} {
		file := filepath.Join(dir, name)
		if tt.data != nil {
			if err := os.WriteFile(file, tt.data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var log bytes.Buffer
		Take(file, slog.New(slog.NewJSONHandler(&log, nil)))
		if tt.logs == "" && log.Len() > 0 || !strings.Contains(log.String(), tt.logs) {
			t.Errorf("%s: logs %q, want %q", name, log.String(), tt.logs)
		}
		if calendar.Zones() != before {
			t.Errorf("%s: the rules are now %+v", name, calendar.Zones())
		}
	}
	Take("", slog.New(slog.DiscardHandler))
}

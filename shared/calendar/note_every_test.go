package calendar

import (
	"strings"
	"testing"
)

func TestSpec_NotesThatWholeDaysMoveWithTheClock(t *testing.T) {
	t.Parallel()
	for every, want := range map[string]int{"24h": 1, "7d": 1, "12h": 0, "25h": 0} {
		for zone, changes := range map[string]bool{"Europe/Berlin": true, "UTC": false, "Asia/Tokyo": false,
			"": false} {
			s := Spec{Every: &every}
			if zone != "" {
				s.Timezone = &zone
			}
			notes := 0
			for _, n := range mustParse(t, s, nil).Notes() {
				if strings.Contains(n, "every counts real time") {
					notes++
				}
			}
			if !changes && notes != 0 || changes && notes != want {
				t.Errorf("every %s in %q has %d notes", every, zone, notes)
			}
		}
	}
}

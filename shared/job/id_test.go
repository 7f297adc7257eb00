package job

import (
	"testing"
	"time"
)

func TestID_IsAULIDOfItsTime(t *testing.T) {
	t.Parallel()
	//proof:of 31
	t.Run("sort as their instants do, and give them back", func(t *testing.T) {
		t.Parallel()
		full := [10]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255}
		a, b := NewID(noon, full), NewID(noon.Add(time.Millisecond), [10]byte{})
		if a >= b || !a.At().Equal(noon) || !b.At().Equal(noon.Add(time.Millisecond)) {
			t.Errorf("%s (%s) and %s (%s)", a, a.At(), b, b.At())
		}
		// the vector of the ULID specification
		if got := NewID(time.UnixMilli(1469918176385), [10]byte{}); got[:10] != "01ARYZ6S41" {
			t.Errorf("got %s", got)
		}
	})
	//proof:of 79 S42
	t.Run("derived ones keep their parts apart (S42)", func(t *testing.T) {
		t.Parallel()
		seen := map[ID]bool{}
		for _, parts := range [][]string{{"a", "bc"}, {"ab", "c"}, {"abc"}, {"a", "b", "c"}, {"job-1", "2026"},
			{"job-12", "026"}, {"1:a", "b"}, {"1", ":ab"}} {
			id := DeterministicID(noon, parts...)
			if seen[id] || id != DeterministicID(noon, parts...) {
				t.Errorf("%v collides or differs from itself", parts)
			}
			seen[id] = true
		}
	})
	t.Run("are refused when they are not spelled as one", func(t *testing.T) {
		t.Parallel()
		for _, s := range []string{"", "01ARZ3NDEKTSV4RRFFQ69G5FA", "01ARZ3NDEKTSV4RRFFQ69G5FAVX",
			"81ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAU",
			"01arz3ndektsv4rrffq69g5fav", "01ARZ3NDEKTSV4RRFFQ69G5F#V"} {
			if _, err := ParseID(s); err == nil {
				t.Errorf("%q was read", s)
			}
		}
		if _, err := ParseID("01ARZ3NDEKTSV4RRFFQ69G5FAV"); err != nil {
			t.Error(err)
		}
	})
}

func TestCut_EndsOnARuneAndMarksTheCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{{"short", 10, "short"}, {"abcdefghij", 8, "abcde…"}, {"éééééé", 8, "éé…"}, {"日本語日本語", 10, "日本…"},
		{"abc", 2, ""}} {
		if got := Cut(c.in, c.n); got != c.want || len(got) > c.n {
			t.Errorf("Cut(%q, %d) = %q", c.in, c.n, got)
		}
	}
}

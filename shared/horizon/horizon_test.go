package horizon

import (
	"testing"
	"time"

	"punctual/shared/contract"
)

var noon = time.Date(2027, 3, 28, 12, 0, 0, 0, time.UTC)

func TestLaneOf_GoesByDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ahead time.Duration
		want  Lane
	}{
		{-time.Hour, Now}, {0, Now}, {2 * time.Second, Now}, {2*time.Second + 1, Direct}, {14 * time.Minute, Direct},
		{14*time.Minute + 1, Timer}, {30 * time.Minute, Timer}, {30*time.Minute + 1, Store},
		{365 * 24 * time.Hour, Store},
	} {
		if got := LaneOf(noon, noon.Add(c.ahead)); got != c.want {
			t.Errorf("%s ahead: %s, want %s", c.ahead, got, c.want)
		}
	}
}

// The worker never holds a message longer than about 3 s, and a delayed one never comes late.
func TestDelay_NeverComesLate(t *testing.T) {
	t.Parallel()
	for ahead := -time.Minute; ahead < contract.DirectLane; ahead += 137 * time.Millisecond {
		d := Delay(noon, noon.Add(ahead))
		if d < 0 || d > contract.MaxDelay || d%time.Second != 0 {
			t.Fatalf("%s ahead: delay %s is not what a queue takes", ahead, d)
		}
		if left := ahead - d; ahead > 0 && (left < min(ahead, 2*time.Second) || left >= 3*time.Second) {
			t.Fatalf("%s ahead: %s are left for the worker", ahead, left)
		}
	}
	if got := Delay(noon, noon.Add(time.Hour)); got != contract.MaxDelay {
		t.Errorf("an hour ahead: %s, want the queue's limit", got)
	}
}

// The stream consumer's reach and the promoter's must overlap.
func TestNear_ReachesBeyondTheHorizon(t *testing.T) {
	t.Parallel()
	if !Near(noon, noon.Add(contract.Horizon+time.Minute)) ||
		Near(noon, noon.Add(contract.Horizon+contract.NearMargin+1)) {
		t.Error("near does not end at the horizon and its margin")
	}
}

func TestSlices_CoverEachMinuteOnce(t *testing.T) {
	t.Parallel()
	s := SliceOf(noon.Add(59*time.Second+999*time.Millisecond), 17)
	if s.String() != "2027-03-28T12:00#17" {
		t.Errorf("got %s", s)
	}
	if back, err := ParseSlice(s.String()); err != nil || back != s {
		t.Errorf("came back as %v, %v", back, err)
	}
	for _, bad := range []string{"", "x", "2027-03-28T12:00", "2027-03-28T12:00#", "2027-03-28T12:00#-1", "12:00#1",
		Parking("acme", 3)} {
		if _, err := ParseSlice(bad); err == nil {
			t.Errorf("%q was read as a slice", bad)
		}
	}
	if got := Slices(noon, noon.Add(3*time.Minute), 1); len(got) != 4 || !got[3].Minute.Equal(noon.Add(3*time.Minute)) {
		t.Errorf("got %v", got)
	}
	if got := Slices(noon, noon.Add(-time.Minute), 1); got != nil {
		t.Errorf("got %v", got)
	}
}

//proof:of 197
func TestShardOf_DistributesEvenly(t *testing.T) {
	t.Parallel()
	var counts [64]int
	for n := range 64_000 {
		counts[ShardOf(time.Duration(n).String(), 64)]++
	}
	for shard, n := range counts {
		if n < 700 || n > 1300 {
			t.Errorf("shard %d has %d of 64,000", shard, n)
		}
	}
}

func TestParkings_CoverEveryShard(t *testing.T) {
	t.Parallel()
	parkings := map[string]bool{}
	for _, p := range Parkings("acme") {
		parkings[p] = true
	}
	for shard := range 200 {
		if !parkings[Parking("acme", shard)] {
			t.Errorf("the parking place of shard %d is not listed", shard)
		}
	}
}

package schedule

import (
	"slices"
	"testing"
	"time"

	"punctual/shared/job"
)

// Under buffer_all, jobs that waited when the calendar was edited go before those of the calendar of now, and among
// themselves in the order of their times, whichever of them held the slot last.
func TestAhead_NamesTheTimesBeforeAnEdit(t *testing.T) {
	t.Parallel()
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	s := made(t, "@every 10m", noon, func(s *Schedule) {
		s.Overlap = OverlapBufferAll
		s.EditedAt, s.Before = at(5), []time.Time{at(1), at(2), at(4)}
	})
	for name, c := range map[string]struct {
		holder int // minute of the job that held the slot last
		of     int
		want   []int
	}{
		"a waiting one, and those before it":                       {0, 4, []int{1, 2}},
		"a waiting one, although a later one held the slot":        {20, 4, []int{1, 2}},
		"one of the calendar of now":                               {0, 20, []int{1, 2, 4, 10}},
		"one of the calendar of now, after one of the others":      {2, 20, []int{1, 2, 4, 10}},
		"one of the calendar of now, after another one of its own": {10, 30, []int{20}},
	} {
		var want []time.Time
		for _, m := range c.want {
			want = append(want, at(m))
		}
		slot := Slot{Holder: s.JobID(at(c.holder))}
		if got := s.Ahead(slot, at(c.of)); !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Errorf("ahead of %s are %v, want %v", name, got, want)
		}
	}
	if read, err := Parse(s.Item()); err != nil || !slices.Equal(read.Before, s.Before) {
		t.Errorf("read back they are %v, %v", read.Before, err)
	}
	if s.Overlap = OverlapSkip; len(s.Ahead(Slot{Holder: job.ID("")}, at(30))) > 0 {
		t.Error("another policy has times ahead")
	}
}

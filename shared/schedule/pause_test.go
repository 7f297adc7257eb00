package schedule

import (
	"fmt"
	"testing"
	"time"

	"punctual/shared/job"
)

// What an edit left behind it has accounted for; the calendar that it brought had no times then.
func TestAPauseGoesNotBackBehindTheLastEdit(t *testing.T) {
	t.Parallel()
	edit := noon.Add(10*time.Minute + 35*time.Second)
	for _, after := range []time.Duration{0, 5 * time.Second, 40 * time.Second} {
		for _, lasts := range []time.Duration{10 * time.Second, time.Hour} {
			for _, then := range []string{"resumed", "resumed again", "edited", "deleted"} {
				again := then == "resumed again"
				t.Run(fmt.Sprintf("%s later, %s %s", after, then, lasts), func(t *testing.T) {
					t.Parallel()
					s := made(t, "@every 30s", noon, func(s *Schedule) { s.CatchUp.Policy = CatchUpAll })
					s, _, _ = walk(t, s, edit.Add(-time.Second))
					edited := made(t, "@every 10s", noon, func(s *Schedule) { s.CatchUp.Policy = CatchUpAll })
					s, _, err := Edit(s, edited, nil, edit)
					if err != nil {
						t.Fatal(err)
					}
					s, ran, entries := walk(t, s, edit)
					paused, over := edit.Add(after), edit.Add(after+lasts)
					s, _ = PauseSchedule(s, Pause{Missed: MissedAll}, paused)
					if again { // and once more, before promotion has come to it
						s, _ = Resume(s, "", over)
						over = over.Add(2 * time.Minute)
						s, _ = PauseSchedule(s, Pause{Missed: MissedAll}, over)
						over = over.Add(lasts)
					}
					switch then {
					case "resumed", "resumed again":
						s, _ = Resume(s, "", over)
						var more []time.Time
						_, more, entries = walk(t, s, over)
						for _, at := range more {
							if at.After(s.Fresh) { // one that is not made anew
								ran = append(ran, at)
							}
						}
					case "edited":
						cal, _ := s.Calendar()
						entries = leave(s, cal, nil, over, then)
					case "deleted":
						cal, _ := s.Calendar()
						entries = leave(s, cal, nil, over, then)
					}
					for _, at := range ran {
						if !at.After(edit) {
							t.Errorf("%s runs, which was before the edit", at)
						}
					}
					for _, e := range entries {
						if !e.From.After(edit) {
							t.Errorf("%s is recorded again as %s", e.From, e.Outcome)
						}
					}
				})
			}
		}
	}
}

func TestAPauseOfAScheduleThatHasRunAsOftenAsItMayGivesItNoTimes(t *testing.T) {
	t.Parallel()
	s := made(t, "@every 10s", noon)
	s, _, _ = walk(t, s, noon.Add(time.Minute))
	s, _ = End(s, job.CodeMaxRuns, noon.Add(time.Minute))
	s, _ = PauseSchedule(s, Pause{}, noon.Add(70*time.Second))
	if !s.Next.IsZero() {
		t.Errorf("paused, it goes on at %s", s.Next)
	}
	if _, writes := Delete(s, nil, noon.Add(2*time.Minute)); len(writes) != 1 {
		t.Errorf("deleted, it leaves %v behind", writes[1:])
	}
	if s, _ = Resume(s, "", noon.Add(2*time.Minute)); !s.Next.IsZero() || s.EndedBy == "" {
		t.Errorf("resumed, it goes on at %s", s.Next)
	}
}

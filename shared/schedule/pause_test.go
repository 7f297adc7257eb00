package schedule

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"punctual/shared/job"
)

// The edit has accounted for the times before it; the new calendar had none then.
func TestPause_StaysBehindTheLastEdit(t *testing.T) {
	t.Parallel()
	edit := noon.Add(10*time.Minute + 35*time.Second)
	for _, after := range []time.Duration{0, 5 * time.Second, 40 * time.Second} {
		for _, lasts := range []time.Duration{10 * time.Second, time.Hour} {
			for _, then := range []string{"resumed", "resumed twice", "edited", "deleted"} {
				twice := then == "resumed twice"
				t.Run(fmt.Sprintf("%s after the edit, %s %s", after, then, lasts), func(t *testing.T) {
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
					if twice { // a second pause before promotion has reached it
						s, _ = Resume(s, "", over)
						over = over.Add(2 * time.Minute)
						s, _ = PauseSchedule(s, Pause{Missed: MissedAll}, over)
						over = over.Add(lasts)
					}
					switch then {
					case "resumed", "resumed twice":
						s, _ = Resume(s, "", over)
						var more []time.Time
						_, more, entries = walk(t, s, over)
						for _, at := range more {
							if at.After(s.AdoptThrough) { // not a time that keeps its job
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
							t.Errorf("%s is recorded twice as %s", e.From, e.Outcome)
						}
					}
				})
			}
		}
	}
}

func TestPause_AddsNoTimesAfterMaxRuns(t *testing.T) {
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

//proof:of F19
func TestPause_DecidesAboutEachTimeUnderIt(t *testing.T) {
	t.Parallel()
	for missed, want := range map[string][]int{
		MissedDrop: nil, MissedLast: {17}, MissedAll: {15, 16, 17}, "": {17}, // by the catch-up policy: its last
	} {
		t.Run("a pause of seconds with missed "+missed, func(t *testing.T) {
			t.Parallel()
			s := made(t, "@every 1s", noon, func(s *Schedule) { s.CatchUp.Cap = 3 })
			s, _, _ = walk(t, s, noon)
			paused, over := noon.Add(10*time.Second+500*time.Millisecond), noon.Add(17*time.Second+500*time.Millisecond)
			s, _ = PauseSchedule(s, Pause{Missed: missed}, paused)
			s, _ = Resume(s, "", over)
			s, ran, entries := walk(t, s, over)
			var under []int
			for _, at := range ran {
				if at.After(paused) && !at.After(over) {
					under = append(under, int(at.Sub(noon)/time.Second))
				}
			}
			if !slices.Equal(under, want) {
				t.Errorf("%v run, want %v", under, want)
			}
			recorded := 0
			for _, e := range entries {
				for at := e.From; !at.After(e.To); at = at.Add(time.Second) {
					if at.After(paused) {
						recorded++
					}
				}
				if e.Outcome != Skipped || e.Reason == "" {
					t.Errorf("recorded %+v", e)
				}
			}
			if recorded+len(under) != 7 {
				t.Errorf("%d run and %d are recorded of 7", len(under), recorded)
			}
			// A second pause right after decides nothing twice.
			s, _ = PauseSchedule(s, Pause{Missed: MissedAll}, over.Add(time.Second))
			s, _ = Resume(s, "", over.Add(3*time.Second))
			s, repeated, entries := walk(t, s, over.Add(3*time.Second))
			for _, at := range repeated {
				if at.Before(over) && at.After(s.AdoptThrough) {
					t.Errorf("%s runs although the first pause decided about it", at)
				}
			}
			for _, e := range entries {
				if !e.From.After(over) {
					t.Errorf("%+v is recorded twice", e)
				}
			}
		})
	}
}

//proof:of F19
func TestPause_UsesTheDueTimeOfASpreadSchedule(t *testing.T) {
	t.Parallel()
	spread := "10m"
	s := made(t, "*/15 * * * *", noon, func(s *Schedule) { s.Spec.Spread = &spread })
	s, _, _ = walk(t, s, noon)
	cal, _ := s.Calendar()
	o, _ := cal.Next(noon)
	paused, over := o.DueAt.Add(-time.Second), o.DueAt.Add(time.Second)
	s, _ = PauseSchedule(s, Pause{Missed: MissedDrop}, paused)
	s, _ = Resume(s, "", over)
	_, ran, entries := walk(t, s, over)
	if slices.ContainsFunc(ran, o.NominalAt.Equal) || len(entries) != 1 || entries[0].Reason != job.CodePaused {
		t.Errorf("due at %s: ran %v, recorded %+v", o.DueAt, ran, entries)
	}
}

//proof:of F19
func TestSchedule_DropsByThePolicyOfALiftedPause(t *testing.T) {
	t.Parallel()
	s := made(t, "@every 1s", noon, func(s *Schedule) { s.CatchUp.Cap = 3 })
	lifted := noon.Add(17*time.Second + 100*time.Millisecond)
	for missed, runs := range map[string][]int{MissedDrop: nil, MissedLast: {17}, MissedAll: {15, 16, 17}} {
		var kept []int
		for sec := 11; sec <= 17; sec++ {
			at := noon.Add(time.Duration(sec) * time.Second)
			if !s.Drops(missed, lifted, job.Row{NominalAt: at, DueAt: at}) {
				kept = append(kept, sec)
			}
		}
		if !slices.Equal(kept, runs) {
			t.Errorf("%s keeps %v, want %v", missed, kept, runs)
		}
	}
}

//proof:of F19
func TestPause_UsesTheStricterOfTwoPolicies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		task, own string
		want      []int // of the seconds 11 to 17 that both hold
	}{
		{MissedLast, MissedDrop, nil}, {MissedDrop, MissedLast, nil}, {MissedAll, MissedLast, []int{17}},
		{MissedAll, MissedAll, []int{15, 16, 17}},
	} {
		t.Run("task pause "+c.task+", own pause "+c.own, func(t *testing.T) {
			t.Parallel()
			s := made(t, "@every 1s", noon, func(s *Schedule) { s.CatchUp.Cap = 3 })
			paused := noon.Add(10*time.Second + 500*time.Millisecond)
			s, _ = Hold(s, job.Pause{Scope: job.PauseAll, Since: paused, Missed: c.task}, paused)
			s, _ = PauseSchedule(s, Pause{Missed: c.own}, paused.Add(100*time.Millisecond))
			over := noon.Add(17*time.Second + 500*time.Millisecond)
			s, _ = Resume(s, "", over)
			s, _ = Hold(s, job.Pause{Scope: job.PauseAll, Since: paused, Missed: c.task}, over)
			s, _ = Release(s, nil, over.Add(time.Millisecond))
			_, ran, _ := walk(t, s, over.Add(time.Millisecond))
			var under []int
			for _, at := range ran {
				if at.After(paused) && !at.After(over) {
					under = append(under, int(at.Sub(noon)/time.Second))
				}
			}
			if !slices.Equal(under, c.want) {
				t.Errorf("%v run, want %v", under, c.want)
			}
		})
	}
}

// The resume of the schedule may come minutes late.
//
//proof:of F40
func TestPause_HoldsNothingThatIsDueAtItsUntilOrLater(t *testing.T) {
	t.Parallel()
	paused, until := noon.Add(10*time.Second+500*time.Millisecond), noon.Add(17*time.Second)
	for _, of := range []string{"the schedule", "its task"} {
		for _, late := range []time.Duration{0, 2500 * time.Millisecond} {
			t.Run(fmt.Sprintf("a pause of %s, seen to be over %s later", of, late), func(t *testing.T) {
				t.Parallel()
				s := made(t, "@every 1s", noon)
				s, _, _ = walk(t, s, noon)
				if of == "its task" {
					p := job.Pause{Since: paused, Until: until, Missed: MissedDrop}
					s, _ = Hold(s, p, paused)
					s.Next = noon.Add(11 * time.Second)
					s, _ = Release(s, job.Pauses{{Since: noon, LiftedAt: noon.Add(time.Second)}, p}, until.Add(late))
				} else {
					s, _ = PauseSchedule(s, Pause{Until: until, Missed: MissedDrop}, paused)
					s, _ = Resume(s, "", until.Add(late))
				}
				_, ran, _ := walk(t, s, until.Add(late))
				for sec := 11; sec <= 19; sec++ {
					at := noon.Add(time.Duration(sec) * time.Second)
					if runs := slices.ContainsFunc(ran, at.Equal); runs != (sec >= 17) {
						t.Errorf("of second %d: runs is %v", sec, runs)
					}
				}
			})
		}
	}
}

// An edit that pauses or resumes leaves the schedule as an edit and the pause or resumption at the same time do.
func TestEdit_PausesAndResumesInOneWrite(t *testing.T) {
	t.Parallel()
	now := noon.Add(10*time.Minute + 35*time.Second)
	spread := func(s *Schedule) { s.Spec.Spread = new("9s") }
	for name, change := range map[string]func(*Schedule){"plain": func(*Schedule) {}, "with a spread": spread} {
		for _, resumes := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", resumes ", resumes), func(t *testing.T) {
				t.Parallel()
				s, _, _ := walk(t, made(t, "@every 30s", noon, change), now.Add(-time.Minute))
				if resumes {
					s, _ = PauseSchedule(s, Pause{Reason: "r", Missed: MissedLast}, now.Add(-45*time.Second))
				}
				edited := s
				edited.Spec.Cron = new("*/10 * * * * *")
				two, _, err := Edit(s, edited, nil, now)
				if err != nil {
					t.Fatal(err)
				}
				if resumes {
					two, _ = Resume(two, "", now)
					edited.Paused = nil
				} else {
					two, _ = PauseSchedule(two, Pause{Reason: "r"}, now)
					edited.Paused = &Pause{Reason: "r"}
				}
				one, writes, err := Edit(s, edited, nil, now)
				if err != nil || writes[0].Name != WriteEdit || (one.Paused == nil) != resumes {
					t.Fatalf("%s, paused %v, %v", writes[0].Name, one.Paused, err)
				}
				two.Epoch, two.Raised = two.Epoch-1, two.Raised[1:]
				if a, b := fmt.Sprint(one.Item()), fmt.Sprint(two.Item()); a != b {
					t.Errorf("in one write\n%s\nin two\n%s", a, b)
				}
			})
		}
	}
}

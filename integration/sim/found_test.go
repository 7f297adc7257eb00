package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// Cases that seeds have found.

func TestJob_MovedDuringItsParkingRunsAfterThePause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// The move reads the row before the job is parked and writes it afterwards.
		slow := Point{Stage: "api", Op: memory.TableCommit, What: job.WriteReschedule, N: 1}
		w := New(t, Options{Plan: At(slow, Slow, 5*time.Second), Late: 5 * time.Second}).As(tenant.Local)
		w.Define()
		n := w.Pause(object{})
		id := w.Post("k", object{"delay": "3s"})
		time.Sleep(2 * time.Second)
		at := time.Now().Add(time.Minute).UTC().Format(time.RFC3339)
		w.Want([]int{200}, "PATCH", "/jobs/"+string(id), object{"run_at": at})
		time.Sleep(20 * time.Minute)
		lifted := time.Now()
		w.Lift(n)
		w.Settle(5 * time.Second)
		w.Is(id, 1, job.Succeeded)
		for _, r := range w.of(id) {
			if held := r.from.Sub(lifted); held < 0 || held > 5*time.Second {
				t.Errorf("it started %s after the pause was lifted", held)
			}
		}
		w.Check()
		w.Close()
		w.Report("moved while parked")
	})
}

// The client repeats its request until it is answered. Wherever the API has crashed meanwhile, the job starts soon
// after the answer, not when the sweeper finds it.
//
//proof:of F81
func TestJob_StartsSoonAfterTheAnswerWhereverTheAPICrashed(t *testing.T) {
	t.Parallel()
	var story Story
	for _, s := range Stories {
		if s.Name == "due now" {
			story = s
		}
	}
	points, _ := cleanly(t, story)
	tried := 0
	for _, p := range points {
		for _, f := range []Fault{CrashBefore, CrashAfter} {
			if p.Stage != "api" || p.Op == memory.TableWrite && p.What == store.WriteTaskPut {
				continue
			}
			tried++
			synctest.Test(t, func(t *testing.T) {
				w := New(t, Options{Seed: 1, Plan: At(p, f, 0), Disturbed: true}).As(tenant.Local)
				w.Define()
				time.Sleep(7300 * time.Millisecond)
				id := w.Post("k", object{})
				answered := time.Now()
				w.Settle(time.Hour)
				w.Is(id, 1, job.Succeeded)
				for _, r := range w.of(id) {
					if late := r.from.Sub(answered); late > 5*time.Second {
						t.Errorf("%s at %s: it started %s after the answer", f, p, late)
					}
				}
				w.Check()
				w.Close()
				w.Report("due now")
			})
		}
	}
	if tried < 6 {
		t.Errorf("there are only %d crashes of the API", tried)
	}
}

// Seed 910698 had a crowd in batches of a hundred, whose API crashed during each: they were accepted at no try, and at
// last their time had passed.
func TestCrowd_IsAcceptedByBatchesInAnyWeather(t *testing.T) {
	t.Parallel()
	if fewer > 1 {
		t.Skip("a crowd is too much for the race detector")
	}
	t.Run("seed 910698", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { playSeed(t, 910698, "chaos", Chaos) })
	})
	var crowds []Story
	for _, s := range Stories {
		if s.Crowded {
			crowds = append(crowds, s)
		}
	}
	inAnyWeather(t, crowds, time.Hour)
}

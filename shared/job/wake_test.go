package job

import (
	"testing"
	"time"

	"punctual/shared/contract"
)

func TestWake_AsksInTheOrderOfTheProtocol(t *testing.T) {
	t.Parallel()
	now := noon.Add(5 * time.Minute)
	live := Claim{Attempt: 1, LeaseUntil: now.Add(time.Second)}
	ended := Claim{Attempt: 1, Outcome: &Outcome{Kind: OutcomeSucceeded}}
	stop := func(r *Row) { r.Stop = StopCancel }
	window := func(r *Row) { r.StartWithin = time.Minute }
	cases := []struct {
		name   string
		row    Row
		claim  Claim
		paused bool
		want   Step
	}{
		{"a later wake-up makes the index entry stale", scheduled(func(r *Row) { r.WakeAt = now.Add(time.Second) }),
			Claim{}, false, StepNothing},
		{"no wake-up, nothing to do", scheduled(func(r *Row) { r.WakeAt = time.Time{} }), Claim{}, false, StepNothing},
		{"a node with items has no wake-up of its own",
			scheduled(func(r *Row) { r.Status, r.WakeAt, r.Items = Blocked, time.Time{}, 2 }), Claim{}, false,
			StepNothing},
		{"the parents of a blocked job are judged, even when paused", scheduled(func(r *Row) { r.Status = Blocked }),
			Claim{}, true, StepJudge},
		{"what is owed comes first",
			scheduled(func(r *Row) { r.Status, r.PendingEffects, r.Stop = Dead, PendingDeadLetter, StopCancel }), ended,
			true, StepEffects},
		{"an unsettled outcome is reported again, even when cancelled or paused", scheduled(stop), ended, true,
			StepRepeatReport},
		{"an outcome of an older attempt says nothing", scheduled(func(r *Row) { r.Attempt = 2 }), ended, false,
			StepFire},
		{"a live claim is waited for, even when cancelled", scheduled(stop), live, true, StepWaitForLease},
		{"a stop that nobody holds up is finished", scheduled(stop), Claim{}, true, StepFinishStop},
		{"a pause parks", scheduled(window), Claim{}, true, StepPark},
		{"a window that passed expires", scheduled(window), Claim{}, false, StepExpire},
		{"start_within says nothing once an attempt has started",
			scheduled(func(r *Row) { window(r); r.StartedAt = noon }), Claim{}, false, StepFire},
		{"expire_after holds for later attempts too", scheduled(func(r *Row) { r.Attempt, r.ExpiryAt = 2, noon }),
			Claim{}, false, StepExpire},
		{"else it fires again", scheduled(), Claim{Attempt: 1, LeaseUntil: noon}, false, StepFire},
	}
	for _, c := range cases {
		if got, _ := Wake(c.row, c.claim, c.paused, now); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestMayStart_RefusesWhatMustNotStart(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		row    Row
		paused bool
		want   Verdict
	}{
		{"open, same version and attempt", scheduled(), false, Start},
		{"running is open: a take-over", scheduled(func(r *Row) { r.Status = Running }), false, Start},
		{"another version", scheduled(func(r *Row) { r.Version = 2 }), false, Stale},
		{"another attempt", scheduled(func(r *Row) { r.Attempt = 2 }), false, Stale},
		{"final", scheduled(func(r *Row) { r.Status = Cancelled }), false, Stale},
		{"a stop", scheduled(func(r *Row) { r.Stop = StopCancel }), false, Defer},
		{"paused", scheduled(), true, Defer},
		{"start_within passed", scheduled(func(r *Row) { r.StartWithin = time.Second }), false, Defer},
		{"expire_after passed", scheduled(func(r *Row) { r.ExpiryAt = noon }), false, Defer},
	}
	for _, c := range cases {
		if got, why := MayStart(c.row, 1, 1, c.paused, noon.Add(2*time.Second)); got != c.want {
			t.Errorf("%s: got %s (%s), want %s", c.name, got, why, c.want)
		}
	}
}

func TestMayBeUnfired_FindsAJobWhoseFiringMayNotHaveBeenSent(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		row   Row
		claim Claim
		want  bool
	}{
		{"due and unclaimed", scheduled(fresh), Claim{}, true},
		{"due when it was accepted", scheduled(fresh, func(r *Row) { r.CreatedAt = noon.Add(time.Second) }), Claim{}, true},
		{"a worker has it", scheduled(fresh), Claim{Attempt: 1}, false},
		{"it was due later when it came: others send it",
			scheduled(fresh, func(r *Row) { r.CreatedAt = noon.Add(-time.Hour) }), Claim{}, false},
		{"it was changed", scheduled(fresh, func(r *Row) { r.Version = 2 }), Claim{}, false},
		{"it is at another attempt", scheduled(fresh, func(r *Row) { r.Attempt = 2 }), Claim{}, false},
		{"it is to stop", scheduled(fresh, func(r *Row) { r.Stop = StopCancel }), Claim{}, false},
		{"the stream sends it", scheduled(fresh, func(r *Row) { r.Near = true }), Claim{}, false},
		{"a pause holds it", scheduled(fresh, func(r *Row) { r.Parked = true }), Claim{}, false},
		{"it has ended", scheduled(fresh, func(r *Row) { r.Status = Succeeded }), Claim{}, false},
	}
	for _, c := range cases {
		if got := MayBeUnfired(c.row, c.claim); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// fresh makes a row one that was accepted at noon, due at once.
func fresh(r *Row) {
	r.Version, r.Attempt, r.DueAt, r.CreatedAt, r.Near = 1, 1, noon, noon, false
}

func TestReadStatus_ReadsQueuedAndRunningFromTheClaim(t *testing.T) {
	t.Parallel()
	live := Claim{Attempt: 1, LeaseUntil: noon.Add(time.Minute)}
	cases := []struct {
		name    string
		row     Row
		claim   Claim
		at      time.Time
		paused  bool
		status  Status
		waiting string
	}{
		{"before due", scheduled(), Claim{}, noon.Add(-time.Minute), false, Scheduled, "due"},
		{"due, not claimed", scheduled(), Claim{}, noon, false, Queued, "worker"},
		{"due, held by a pause", scheduled(), Claim{}, noon, true, Queued, "pause"},
		{"parked", scheduled(func(r *Row) { r.Parked = true }), Claim{}, noon, true, Scheduled, "pause"},
		{"in a line", scheduled(func(r *Row) { r.Parked, r.QueuedBehind = true, true }), Claim{}, noon, false,
			Scheduled, "worker"},
		{"in a line, and held by a pause", scheduled(func(r *Row) { r.Parked, r.QueuedBehind = true, true }), Claim{},
			noon, true, Scheduled, "pause"},
		{"claimed", scheduled(), live, noon, false, Running, ""},
		{"running by the row", scheduled(func(r *Row) { r.Status = Running }), Claim{}, noon, false, Running, ""},
		{"waiting for a retry", scheduled(func(r *Row) { r.Attempt, r.Waiting = 2, "retry" }), live,
			noon.Add(-time.Second), false, Scheduled, "retry"},
		{"over", scheduled(func(r *Row) { r.Status = Succeeded }), live, noon, false, Succeeded, ""},
		{"blocked", scheduled(func(r *Row) { r.Status = Blocked }), Claim{}, noon, false, Blocked, "parents"},
	}
	for _, c := range cases {
		if got := ReadStatus(c.row, c.claim, c.at); got != c.status {
			t.Errorf("%s: got %s, want %s", c.name, got, c.status)
		}
		if got := WaitingFor(c.row, c.claim, c.paused, c.at); got != c.waiting {
			t.Errorf("%s: waiting for %q, want %q", c.name, got, c.waiting)
		}
	}
}

func TestPostpone_DoublesUpToItsBound(t *testing.T) {
	t.Parallel()
	for n, want := range []time.Duration{3 * time.Minute, 6 * time.Minute, 12 * time.Minute, 24 * time.Minute,
		contract.MaxPostpone, contract.MaxPostpone} {
		if got := Postpone(int64(n)); got != want {
			t.Errorf("after %d: %s, want %s", n, got, want)
		}
	}
	if Postpone(1<<40) != contract.MaxPostpone {
		t.Error("a large count overflows")
	}
}

func TestPauses_HoldByTenantAndTask(t *testing.T) {
	t.Parallel()
	ps := Pauses{{Scope: "task:email"}, {Scope: PauseAll, Until: noon}}
	for _, c := range []struct {
		task string
		at   time.Time
		want bool
	}{{"email", noon, true}, {"sms", noon.Add(-time.Second), true}, {"sms", noon, false}, {"task:email", noon, false}} {
		if _, got := ps.Hold(c.task, c.at); got != c.want {
			t.Errorf("%s at %s: held %v", c.task, c.at, got)
		}
	}
}

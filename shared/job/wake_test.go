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
			Claim{}, true, StepEvaluate},
		{"what is owed comes first",
			scheduled(func(r *Row) { r.Status, r.PendingEffects, r.Stop = Dead, PendingDeadLetter, StopCancel }), ended,
			true, StepEffects},
		{"an unsettled outcome is reported again, even when cancelled or paused", scheduled(stop), ended, true,
			StepRepeatReport},
		{"an outcome of an older attempt says nothing", scheduled(func(r *Row) { r.Attempt = 2 }), ended, false,
			StepFire},
		{"a live claim is waited for, even when cancelled", scheduled(stop), live, true, StepWaitForLease},
		{"a stop that nobody holds up is finished", scheduled(stop), Claim{}, true, StepFinishStop},
		{"a pause parks", scheduled(), Claim{}, true, StepPark},
		{"a window that passed expires", scheduled(window), Claim{}, false, StepExpire},
		{"no pause holds that up", scheduled(window), Claim{}, true, StepExpire},
		{"start_within says nothing once an attempt has started",
			scheduled(func(r *Row) { window(r); r.StartedAt = noon }), Claim{}, false, StepFire},
		{"start_within says nothing once a start was lost", scheduled(window), lostOf(1), false, StepFire},
		{"start_within holds where the worker let go", scheduled(window), Claim{Attempt: 1}, false, StepExpire},
		{"a lost start that fails the attempt is recorded, even when paused",
			scheduled(window, func(r *Row) { r.Retry.FailOnLost = true }), lostOf(1), true, StepRecordLost},
		{"a stop comes before a lost start", scheduled(stop, func(r *Row) { r.Retry.FailOnLost = true }), lostOf(1),
			false, StepFinishStop},
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

// lostOf is a claim of an attempt whose worker ended in it.
func lostOf(attempt int64) Claim {
	return Claim{Attempt: attempt, Token: 1, ClaimedAt: noon, LeaseUntil: noon.Add(contract.Lease), Worker: "w1"}
}

// The wake-up of a job that waits is never later than its deadline, unless the sweeper finds before that it waits.
func TestRow_WakesAtItsDeadline(t *testing.T) {
	t.Parallel()
	within := func(d time.Duration) func(*Row) { return func(r *Row) { r.StartWithin = d } }
	expires := func(d time.Duration) func(*Row) { return func(r *Row) { r.ExpiryAt = r.DueAt.Add(d) } }
	ms := time.Millisecond
	for name, c := range map[string]struct {
		ahead  time.Duration // of the due time, when the row is placed
		change []func(*Row)
		wake   time.Duration // after due
	}{
		"without a deadline at due":       {0, nil, 0},
		"without one, sent by the stream": {time.Minute, nil, ms},
		"due now":                         {0, []func(*Row){within(5 * time.Second)}, 5*time.Second + ms},
		"sent by the stream": {time.Minute, []func(*Row){within(5 * time.Second)},
			5*time.Second + ms},
		"fired by its slice, just before due": {time.Hour, []func(*Row){within(5 * time.Second)}, -ms},
		"by whichever comes first": {0, []func(*Row){within(time.Minute), expires(time.Second)},
			time.Second + ms},
		"soon after due, once a grace has passed":  {0, []func(*Row){within(4 * time.Minute)}, contract.Grace},
		"a late one is in what the sweeper writes": {0, []func(*Row){within(time.Hour)}, 0},
		"start_within is void once it has started": {0, []func(*Row){within(time.Second),
			func(r *Row) { r.Attempt = 2 }}, 0},
		"expire_after holds for each attempt": {0, []func(*Row){expires(time.Second),
			func(r *Row) { r.Attempt = 2 }}, time.Second + ms},
	} {
		r := scheduled(c.change...)
		r.Attempt = max(r.Attempt, 1)
		now := r.DueAt.Add(-c.ahead)
		Route(&r, now)
		if got := r.WakeAt.Sub(r.DueAt); got != c.wake {
			t.Errorf("%s: it wakes %s after due", name, got)
		}
		if c.ahead == time.Hour && !FiredBySlice(r.DueAt, r.WakeAt) {
			t.Errorf("%s: its slice does not fire it", name)
		}
		if marked := MayHaveDeadline(r.DueAt, r.WakeAt); marked != (c.wake != 0 && c.wake != ms) {
			t.Errorf("%s: the entry looks like one of a deadline: %v", name, marked)
		}
	}
	r := scheduled(within(10 * time.Minute))
	if after, _ := Rewake(r, r.DueAt.Add(12*time.Minute), r.DueAt.Add(6*time.Minute), 2); !after.WakeAt.Equal(
		r.DueAt.Add(10*time.Minute + ms)) {
		t.Errorf("put off beyond its deadline, to %s", after.WakeAt)
	}
	if after, _ := Park(r, r.DueAt.Add(time.Minute)); !after.WakeAt.Equal(r.DueAt.Add(10*time.Minute + ms)) {
		t.Errorf("parked until %s", after.WakeAt)
	}
	if after, _ := ParkQueuedBehind(scheduled(), r.DueAt); after.WakeAt.Sub(r.DueAt) < 10*365*24*time.Hour {
		t.Errorf("parked without a deadline until %s", after.WakeAt)
	}
}

//proof:of F71
func TestHasStarted_AsksRowAndClaim(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		row   Row
		claim Claim
		want  bool
	}{
		"nobody has claimed it": {scheduled(), Claim{}, false},
		"a fence is no start":   {scheduled(), Claim{Attempt: 1, Token: 3}, false},
		"its worker let go": {scheduled(), Claim{Attempt: 1, Token: 1, ClaimedAt: noon},
			false},
		"its worker was lost": {scheduled(), lostOf(1), true},
		"its start was lost, and then fenced": {scheduled(), Claim{Attempt: 1, Lost: []Attempt{{Attempt: 1}}},
			true},
		"a heartbeat has reached the row": {scheduled(func(r *Row) { r.StartedAt = noon }), Claim{}, true},
		"it waits for a retry":            {scheduled(func(r *Row) { r.Attempt = 2 }), Claim{}, true},
		"its outcome waits to be settled": {scheduled(), Claim{Attempt: 1,
			Outcome: &Outcome{StartedAt: noon}}, true},
		"an outcome without a start is none": {scheduled(), Claim{Attempt: 1, Outcome: &Outcome{}}, false},
		"an outcome may remember earlier starts": {scheduled(), Claim{Attempt: 1,
			Outcome: &Outcome{Lost: []Attempt{{}}}}, true},
		"the claim is of an attempt that was fenced": {scheduled(), Claim{Attempt: 0}, false},
	} {
		if got := HasStarted(c.row, c.claim); got != c.want {
			t.Errorf("%s: %v", name, got)
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
		if got, why := MayStart(c.row, Claim{Attempt: 1}, 1, 1, c.paused, noon.Add(2*time.Second)); got != c.want {
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
		{
			"due when it was accepted",
			scheduled(fresh, func(r *Row) { r.CreatedAt = noon.Add(time.Second) }),
			Claim{},
			true,
		},
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

//proof:of 18 55
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

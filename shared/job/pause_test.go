package job

import (
	"testing"
	"time"

	"punctual/shared/contract"
)

// paused is the row once it was paused at noon.
func paused(r Row) Row {
	after, _ := PauseRow(r, Claim{}, OwnPause{Reason: "why", By: "ada", Since: noon}, noon)
	return after
}

func TestPauseRow_LeavesOnlyTheDeadlineAsWakeUp(t *testing.T) {
	t.Parallel()
	never := func(r Row) time.Time { return r.DueAt.Add(parkedFor) }
	after := func(d time.Duration) func(Row) time.Time {
		return func(Row) time.Time { return noon.Add(d) }
	}
	lost := Claim{Attempt: 1, Token: 1, Worker: "w", ClaimedAt: noon.Add(-time.Minute),
		LeaseUntil: noon.Add(-30 * time.Second)}
	for name, c := range map[string]struct {
		change func(*Row)
		claim  Claim
		want   func(Row) time.Time
	}{
		"no deadline":            {func(*Row) {}, Claim{}, never},
		"due ahead":              {func(r *Row) { r.DueAt = noon.Add(time.Hour) }, Claim{}, never},
		"parked before":          {func(r *Row) { r.Parked = true }, Claim{}, never},
		"among those of a limit": {func(r *Row) { r.Parked, r.WaitsLimit, r.Limits = true, 1, "a" }, Claim{}, never},
		"start_within": {func(r *Row) { r.StartWithin = time.Hour }, Claim{},
			after(time.Hour + contract.AfterDue)},
		"start_within of a retry": {func(r *Row) { r.StartWithin, r.Attempt = time.Hour, 2 }, Claim{}, never},
		"expire_after": {func(r *Row) { r.ExpiryAt = noon.Add(time.Minute) }, Claim{},
			after(time.Minute + contract.AfterDue)},
		"a deadline that is passed": {func(r *Row) { r.ExpiryAt = noon.Add(-time.Minute) }, Claim{}, after(0)},
		"the earlier of both": {func(r *Row) { r.StartWithin, r.ExpiryAt = time.Hour, noon.Add(time.Minute) }, Claim{},
			after(time.Minute + contract.AfterDue)},
		"a schedule's": {func(r *Row) { r.ScheduleID = "s" }, Claim{}, after(contract.Grace)},
		"a schedule's, due ahead": {func(r *Row) { r.ScheduleID, r.DueAt = "s", noon.Add(time.Hour) }, Claim{},
			after(time.Hour + contract.Grace)},
		"a lost start":                     {func(*Row) {}, lost, never},
		"a lost start that is its failure": {func(r *Row) { r.Retry.FailOnLost = true }, lost, after(0)},
	} {
		r := scheduled(func(r *Row) { r.DueAt, r.WakeAt, r.Near = noon, noon, true }, c.change)
		got, _ := PauseRow(r, c.claim, OwnPause{Since: noon}, noon)
		if want := c.want(r); !got.WakeAt.Equal(want) {
			t.Errorf("%s: it wakes up at %s, want %s", name, got.WakeAt, want)
		}
		if got.Near || got.Parked || got.WaitsLimit != 0 || got.Version != r.Version+1 || !got.IsPaused() {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestKeepPaused_PassesADeadlineThatAStartMadeVoid(t *testing.T) {
	t.Parallel()
	r := paused(scheduled(func(r *Row) {
		r.DueAt, r.StartWithin, r.ExpiryAt = noon.Add(-time.Minute), 2*time.Minute, noon.Add(time.Hour)
	}))
	now := r.WakeAt
	if got, _ := KeepPaused(r, now); !got.WakeAt.Equal(r.ExpiryAt.Add(contract.AfterDue)) || !got.IsPaused() {
		t.Errorf("it wakes up at %s", got.WakeAt)
	}
	r.ScheduleID, r.ExpiryAt = "s", time.Time{}
	first, _ := KeepPaused(r, now)
	second, _ := KeepPaused(first, first.WakeAt)
	if a, b := first.WakeAt.Sub(now), second.WakeAt.Sub(first.WakeAt); a != contract.Grace || b != 2*a {
		t.Errorf("a schedule's wakes up after %s, then after %s", a, b)
	}
}

func TestResumeRow_HasTheJobGoOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		due   time.Time
		send  bool
		near  bool
		ready bool
	}{
		"due before":        {noon.Add(-time.Hour), true, false, true},
		"due now":           {noon, true, false, true},
		"due in a minute":   {noon.Add(time.Minute), false, true, false},
		"due in a few days": {noon.Add(72 * time.Hour), false, false, false},
	} {
		r := paused(scheduled(func(r *Row) { r.DueAt = c.due }))
		got, w, send := ResumeRow(r, noon)
		if send != c.send || got.Near != c.near || got.ReadyAt.Equal(noon) != c.ready || got.IsPaused() {
			t.Errorf("%s: send %v, %+v", name, send, got.WakeUp)
		}
		if got.WakeAt.Before(noon) || got.WakeAt.After(c.due.Add(contract.AfterDue)) && !c.ready {
			t.Errorf("%s: it wakes up at %s", name, got.WakeAt)
		}
		if stored, ok := apply(t, r, w); !ok || stored.IsPaused() || stored.Version != r.Version+1 {
			t.Errorf("%s: stored is %+v", name, stored)
		}
	}
}

// Whatever makes the wake-up of a paused job anew leaves it paused, and fires nothing.
func TestRoute_SendsNothingOfAPausedJob(t *testing.T) {
	t.Parallel()
	r := paused(scheduled())
	settled, err := Settle(&r, 1, failed(false), noon)
	if err != nil {
		t.Fatal(err)
	}
	blocked := scheduled(func(r *Row) { r.Status, r.Parents = Blocked, "{}" })
	released, _, sendReleased := Release(paused(blocked), noon, "{}", noon)
	edited, _, sendEdited := Reschedule(r, Edit{DueAt: new(noon)}, noon)
	made := scheduled(func(r *Row) { r.Epoch = 2 })
	adopted, _, sendAdopted := Adopt(r, made, noon)
	for name, c := range map[string]struct {
		row  Row
		send bool
	}{
		"a retry": {settled.After, settled.Send}, "a release": {released, sendReleased},
		"an edit": {edited, sendEdited}, "an adoption": {adopted, sendAdopted},
	} {
		if c.send || c.row.Near || !c.row.IsPaused() || c.row.Status != Scheduled ||
			!c.row.WakeAt.Equal(c.row.DueAt.Add(parkedFor)) {
			t.Errorf("%s: sent %v, %+v", name, c.send, c.row.WakeUp)
		}
	}
}

func TestPausedJob_IsSeenAsThat(t *testing.T) {
	t.Parallel()
	live := Claim{Attempt: 1, Token: 1, LeaseUntil: noon.Add(time.Minute)}
	over := paused(scheduled())
	over.Status = Cancelled
	for name, c := range map[string]struct {
		row   Row
		claim Claim
		is    Status
		waits string
	}{
		"due":                    {paused(scheduled(func(r *Row) { r.DueAt = noon })), Claim{}, Scheduled, "pause"},
		"due ahead":              {paused(scheduled()), Claim{}, Scheduled, "pause"},
		"with an old firing":     {paused(scheduled(func(r *Row) { r.DueAt = noon })), live, Scheduled, "pause"},
		"waiting for its parent": {paused(scheduled(func(r *Row) { r.Status = Blocked })), Claim{}, Blocked, "pause"},
		"ended":                  {over, Claim{}, Cancelled, ""},
	} {
		is, waits := ReadStatus(c.row, c.claim, noon), WaitingFor(c.row, c.claim, false, noon)
		if is != c.is || waits != c.waits {
			t.Errorf("%s: %s, waiting for %q", name, is, waits)
		}
	}
	due := paused(scheduled(func(r *Row) { r.DueAt = noon }))
	if v, why := MayStart(due, Claim{}, due.Version, 1, false, noon); v != Defer {
		t.Errorf("it may start: %s, %s", v, why)
	}
}

func TestRequestStop_BringsAPausedJobToItsEndAfterACrash(t *testing.T) {
	t.Parallel()
	for _, s := range []Stop{StopCancel, StopExpire} {
		r, w := RequestStop(paused(scheduled()), s, Reason{}, noon)
		if step, _ := Wake(r, Claim{}, false, noon); step != StepFinishStop || !r.WakeAt.Equal(noon) {
			t.Errorf("%s: %s at %s", s, step, r.WakeAt)
		}
		if _, ok := apply(t, scheduled(), w); ok {
			t.Errorf("%s of a job that was resumed meanwhile is not refused", s)
		}
	}
}

package job

import (
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
)

// meanwhile is what others may write between a read of r and the write that follows from it.
func meanwhile(r Row) map[string]item.Write {
	_, stop := RequestStop(r, StopCancel, Reason{Code: CodeDeleted, Message: "gone"}, noon)
	_, rewake := Rewake(r, noon.Add(7*time.Minute), noon, 3)
	_, park := Park(r, noon)
	_, behind := ParkQueuedBehind(r, noon)
	_, unpark := Unpark(r, noon)
	_, pause := PauseRow(r, Claim{}, OwnPause{Since: noon}, noon)
	_, resume, _ := ResumeRow(r, noon)
	return map[string]item.Write{
		"nothing": {}, "the running report": MarkRunning(r.Key, r.Version, r.Attempt, noon.Add(-time.Hour), 99),
		"a stop": stop, "a later wake-up": rewake, "a pause": park, "a line": behind, "the end of a pause": unpark,
		"a pause of the job": pause, "its resume": resume,
	}
}

// reads are rows as a decision may have read them.
func reads() map[string]Row {
	retried := func(r *Row) {
		r.Attempt, r.Failures, r.Waiting, r.Reason = 2, 1, "retry", Reason{CodeHandler, "boom"}
	}
	return map[string]Row{
		"waiting":       scheduled(),
		"waiting again": scheduled(retried),
		"running":       scheduled(func(r *Row) { r.Status = Running }),
		"parked":        scheduled(func(r *Row) { r.Parked, r.WakeAt = true, noon }),
		"paused":        paused(scheduled()),
		"paused in between": paused(scheduled(retried, func(r *Row) {
			r.DueAt, r.StartWithin, r.ExpiryAt = noon.Add(-time.Minute), time.Hour, noon.Add(2*time.Hour)
		})),
		// where a snooze of a minute wakes it, too
		"woken next when": scheduled(retried, func(r *Row) { r.WakeAt, r.Near = noon.Add(time.Minute), true }),
	}
}

//proof:of F07
func TestSettle_WritesAllThatItDecidesWhateverWasWrittenSinceItsRead(t *testing.T) {
	t.Parallel()
	outcomes := map[string]Outcome{
		"a success": succeeded(`1`), "a retry": failed(false), "a death": failed(true),
		"a snooze": {Kind: OutcomeSnoozed, RetryAfterMS: 60_000, StartedAt: noon, FinishedAt: noon},
	}
	for read, r := range reads() {
		for what, o := range outcomes {
			d, err := Settle(&r, r.Attempt, o, noon)
			if err != nil {
				t.Fatal(err)
			}
			for who, w := range meanwhile(r) {
				between := r
				if w.Name != "" {
					var ok bool
					if between, ok = apply(t, r, w); !ok {
						continue
					}
				}
				got, ok := apply(t, between, d.Write)
				if !ok {
					continue // it decides again, from what is there
				}
				want := d.After
				if got.Status != want.Status || got.Waiting != want.Waiting || got.Attempt != want.Attempt ||
					got.PendingEffects != want.PendingEffects {
					t.Errorf("%s of a row read %s, after %s: it is %s, waiting for %q at attempt %d", what, read, who,
						got.Status, got.Waiting, got.Attempt)
				}
				if got.WakeAt != want.WakeAt || got.Slice() != want.Slice() || got.Near != want.Near ||
					got.Postponed != want.Postponed || got.Parked || got.QueuedBehind {
					t.Errorf("%s of a row read %s, after %s: its wake-up is at %s in %q", what, read, who, got.WakeAt,
						got.Slice())
				}
				if got.Reason != want.Reason && what != "a snooze" {
					t.Errorf("%s of a row read %s, after %s: its reason is %+v", what, read, who, got.Reason)
				}
				if !o.StartedAt.IsZero() && (!got.StartedAt.Equal(o.StartedAt) || got.LatenessMS != o.LatenessMS) {
					t.Errorf("%s of a row read %s, after %s: it started at %s, %d ms late", what, read, who,
						got.StartedAt, got.LatenessMS)
				}
			}
		}
	}
}

//proof:of F07
func TestEveryTransition_EndsWhereTheTableSaysWhateverWasWrittenSinceItsRead(t *testing.T) {
	t.Parallel()
	for read, r := range reads() {
		r.ScheduleID, r.Epoch, r.NominalAt = "s", 3, noon
		for _, w := range every(r, noon) {
			if w.Put != nil {
				continue
			}
			var to []Status
			for _, tr := range Transitions {
				if tr.Name == w.Name {
					to = tr.To
				}
			}
			for who, m := range meanwhile(r) {
				if r.IsPaused() && (m.Name == WritePark || m.Name == WriteUnpark) {
					continue // what decides about a paused job parks none
				}
				between := r
				if m.Name != "" {
					var ok bool
					if between, ok = apply(t, r, m); !ok {
						continue
					}
				}
				got, ok := apply(t, between, w)
				if !ok {
					continue
				}
				in := false
				for _, s := range to {
					in = in || got.Status == s
				}
				if !in {
					t.Errorf("%s of a row read %s, after %s: it is %s, want one of %v", w.Name, read, who,
						got.Status, to)
				}
				if got.Status == Running && got.Waiting != "" {
					t.Errorf("%s of a row read %s, after %s: it runs and waits for %q", w.Name, read, who, got.Waiting)
				}
				if got.Status == Scheduled && got.Stop == NoStop && !got.IsPaused() && !got.Parked &&
					got.WakeAt.After(noon.AddDate(1, 0, 0)) {
					t.Errorf("%s of a row read %s, after %s: no process wakes it before %s", w.Name, read, who,
						got.WakeAt)
				}
				if got.Status == Scheduled && got.IsPaused() && FiredBySlice(got.DueAt, got.WakeAt) &&
					got.Stop == NoStop && w.Name != WriteUnpark && w.Name != WriteRewake && m.Name != WriteRewake {
					t.Errorf("%s of a row read %s, after %s: it is paused, and its slice fires it", w.Name, read, who)
				}
				stored := w.Applied(between.Item(), contract.AttrPK, contract.AttrJobID)
				if got.Slice() != stored.Str(contract.AttrWakeSlice) {
					t.Errorf("%s of a row read %s, after %s: it lies in %q and says %q", w.Name, read, who,
						stored.Str(contract.AttrWakeSlice), got.Slice())
				}
			}
		}
	}
}

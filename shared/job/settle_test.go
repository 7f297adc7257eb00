package job

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/item"
)

var noon = time.Date(2027, 3, 28, 12, 0, 0, 0, time.UTC)

// scheduled is a job due at noon, at its first attempt.
func scheduled(change ...func(*Row)) Row {
	r := Row{
		Key: Key{Tenant: "acme", ID: NewID(noon.Add(-time.Hour), [10]byte{7})}, Status: Scheduled, Version: 1,
		Attempt: 1, DueAt: noon, CreatedAt: noon.Add(-time.Hour),
		Settings: Settings{Task: "echo", Executor: "echo", Pool: "short", Priority: Normal, Timeout: 30 * time.Second,
			Retry: DefaultRetry},
		WakeUp: WakeUp{Shard: 17, WakeAt: noon, Near: true},
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func failed(permanent bool) Outcome {
	return Outcome{Kind: OutcomeFailed, Permanent: permanent, Error: &Reason{Code: CodeHandler, Message: "no"},
		Worker: "w1", StartedAt: noon, FinishedAt: noon.Add(time.Second)}
}

func succeeded(result string) Outcome {
	return Outcome{Kind: OutcomeSucceeded, Result: []byte(result), Worker: "w1", StartedAt: noon,
		FinishedAt: noon.Add(time.Second), LatenessMS: 3}
}

// apply carries a write out as a table would.
func apply(t *testing.T, r Row, w item.Write) (Row, bool) {
	t.Helper()
	old := r.Item()
	if !item.Any(w.When, old) {
		return r, false
	}
	next, err := ParseRow(w.Applied(old, contract.AttrPK, contract.AttrJobID))
	if err != nil {
		t.Fatal(err)
	}
	return next, true
}

func TestSettle_DecidesByOutcomeAndPolicy(t *testing.T) {
	t.Parallel()
	now := noon.Add(time.Second)
	cases := []struct {
		name     string
		row      Row
		outcome  Outcome
		status   Status
		attempt  int64
		failures int64
		pending  PendingEffects
		wake     bool
		reason   string
	}{
		{"a success leaves the index", scheduled(), succeeded(`{}`), Succeeded, 1, 0, NoPendingEffects, false, ""},
		{"a success wins over a cancel: what is done is done", scheduled(func(r *Row) { r.Stop = StopCancel }),
			succeeded(`{}`), Succeeded, 1, 0, NoPendingEffects, false, ""},
		{"a success of a node owes its children", scheduled(func(r *Row) { r.RunID = "R" }), succeeded(`{}`),
			Succeeded, 1, 0, PendingChildren, true, ""},
		{"a failure with tries left is due again", scheduled(), failed(false), Scheduled, 2, 1, NoPendingEffects, true,
			CodeHandler},
		{"a failure of a running job is due again", scheduled(func(r *Row) { r.Status = Running }), failed(false),
			Scheduled, 2, 1, NoPendingEffects, true, CodeHandler},
		//proof:of 100
		{"the last failure is death, and a letter is owed", scheduled(func(r *Row) { r.Failures = 5; r.Attempt = 6 }),
			failed(false), Dead, 6, 6, PendingDeadLetter, true, CodeHandler},
		//proof:of 103
		{"a permanent failure is death at the first attempt", scheduled(), failed(true), Dead, 1, 1, PendingDeadLetter,
			true, CodeHandler},
		{"a dead node owes both", scheduled(func(r *Row) { r.RunID = "R" }), failed(true), Dead, 1, 1, PendingBoth,
			true, CodeHandler},
		//proof:of 101
		{"a snooze grows the attempt and costs no failure", scheduled(),
			Outcome{Kind: OutcomeSnoozed, RetryAfterMS: 60_000}, Scheduled, 2, 0, NoPendingEffects, true, ""},
		{"a failure of a job that is to be cancelled cancels it", scheduled(func(r *Row) { r.Stop = StopCancel }),
			failed(false), Cancelled, 1, 0, NoPendingEffects, false, CodeCancelled},
		{"a snooze of a job that is to expire expires it", scheduled(func(r *Row) { r.Stop = StopExpire }),
			Outcome{Kind: OutcomeSnoozed, RetryAfterMS: 1}, Expired, 1, 0, NoPendingEffects, false, ""},
		{"a retry beyond expire_after is death",
			scheduled(func(r *Row) { r.ExpiryAt = now.Add(500 * time.Millisecond) }), failed(false), Dead, 1, 1,
			PendingDeadLetter, true, CodeExpiredRetrying},
		{"a snooze beyond expire_after is death", scheduled(func(r *Row) { r.ExpiryAt = now.Add(time.Second) }),
			Outcome{Kind: OutcomeSnoozed, RetryAfterMS: 60_000}, Dead, 1, 0, PendingDeadLetter, true,
			CodeExpiredRetrying},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, err := Settle(&c.row, c.row.Attempt, c.outcome, now)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := apply(t, c.row, d.Write)
			if !ok {
				t.Fatal("the write's own condition refused the row it was decided on")
			}
			if got.Status != c.status || got.Attempt != c.attempt || got.Failures != c.failures ||
				got.PendingEffects != c.pending ||
				got.Reason.Code != c.reason {
				t.Errorf("got %s attempt %d failures %d owes %q reason %q", got.Status, got.Attempt, got.Failures,
					got.PendingEffects, got.Reason.Code)
			}
			if has := !got.WakeAt.IsZero(); has != c.wake {
				t.Errorf("has a wake-up: %v, want %v", has, c.wake)
			}
			if got.Status.Final() && got.Near {
				t.Error("a settled row is still near")
			}
			if !got.WakeAt.IsZero() && got.WakeAt.Before(now) {
				t.Errorf("wake-up at %s is before now", got.WakeAt)
			}
			if _, ok := apply(t, got, d.Write); ok && got.Status.Final() {
				t.Error("the same write applies twice to a final row")
			}
		})
	}
}

func TestSettle_RefusesARowThatHasMovedOn(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Row{
		"final":         scheduled(func(r *Row) { r.Status = Cancelled }),
		"newer attempt": scheduled(func(r *Row) { r.Attempt = 2 }),
		"blocked":       scheduled(func(r *Row) { r.Status = Blocked }),
	} {
		if _, err := Settle(&r, 1, succeeded(`{}`), noon); !errors.Is(err, ErrTransition) {
			t.Errorf("%s: got %v, want ErrTransition", name, err)
		}
	}
}

// A stop that arrives between reading and writing must not be overwritten by a retry: the
// write's condition has to notice it.
func TestSettle_RefusesARetryWhenAStopArrived(t *testing.T) {
	t.Parallel()
	r := scheduled()
	for name, o := range map[string]Outcome{"retry": failed(false), "death": failed(true),
		"snooze": {Kind: OutcomeSnoozed}} {
		d, err := Settle(&r, 1, o, noon)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := apply(t, scheduled(func(r *Row) { r.Stop = StopCancel }), d.Write); ok {
			t.Errorf("%s overwrote a stop", name)
		}
	}
	d, _ := Settle(&r, 1, succeeded(`{}`), noon)
	if _, ok := apply(t, scheduled(func(r *Row) { r.Stop = StopCancel; r.Version = 9 }), d.Write); !ok {
		t.Error("a success must win over a stop and never ask for the version")
	}
}

func TestSettle_IsDeterministic(t *testing.T) {
	t.Parallel()
	a, _ := Settle(new(scheduled()), 1, failed(false), noon)
	b, _ := Settle(new(scheduled()), 1, failed(false), noon)
	if !a.After.DueAt.Equal(b.After.DueAt) {
		t.Errorf("the same facts gave %s and %s", a.After.DueAt, b.After.DueAt)
	}
}

// Exactly one process sends a firing: the writer in the now lane, the stream
// consumer when the row is near, the slice beyond.
//
//proof:of 102
func TestSettle_GivesARetryExactlyOneSender(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 13 * time.Minute,
		20 * time.Minute, 31 * time.Minute, 33 * time.Minute, 24 * time.Hour} {
		d, err := Settle(new(scheduled()), 1, Outcome{Kind: OutcomeSnoozed, RetryAfterMS: wait.Milliseconds()}, noon)
		if err != nil {
			t.Fatal(err)
		}
		now := horizon.LaneOf(noon, d.After.DueAt) == horizon.Now
		if d.Send != now {
			t.Errorf("%s: writer sends %v", wait, d.Send)
		}
		if d.After.Near && d.Send {
			t.Errorf("%s: both the writer and the stream consumer would send", wait)
		}
		if !d.After.Near && !d.Send && wait <= contract.Horizon {
			t.Errorf("%s: nobody would send", wait)
		}
	}
}

func TestSettle_HonoursRetryAfterUpToTheCap(t *testing.T) {
	t.Parallel()
	o := failed(false)
	o.RetryAfterMS = (10 * time.Hour).Milliseconds()
	d, _ := Settle(new(scheduled()), 1, o, noon)
	if got := d.After.DueAt.Sub(noon); got != contract.MaxRetryAfter {
		t.Errorf("a Retry-After of 10 h waits %s, want %s", got, contract.MaxRetryAfter)
	}
	o.RetryAfterMS = 30_000
	d, _ = Settle(new(scheduled()), 1, o, noon)
	if got := d.After.DueAt.Sub(noon); got != 30*time.Second {
		t.Errorf("a Retry-After of 30 s waits %s", got)
	}
}

//proof:of 64 199 S35
func TestSettle_KeepsTheRowWithinOneWriteUnit(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64)
	r := scheduled(func(r *Row) {
		r.Tenant, r.Task = "t234567890123456789012345678901234567890123456789012345678901234", long
		r.Retry = RetryPolicy{MaxAttempts: 50, InitialDelay: 3_599_999 * time.Millisecond, Factor: 9.87654321,
			MaxDelay: 86_399_999 * time.Millisecond, Jitter: 0.123456789, FailOnLost: true}
		r.StartWithin, r.ExpireAfter, r.ExpiryAt = 30*24*time.Hour, 30*24*time.Hour, noon.Add(30*24*time.Hour)
		r.RootID, r.RedriveOf, r.Tagged, r.Near = r.ID, r.ID, true, true
		r.CancelRequestedAt = noon
	})
	payload := []byte(`"` + strings.Repeat("p", contract.MaxInlinePayload-2) + `"`)
	r.SetPayload(PayloadStorage(&r, payload))
	if n := r.Item().Size(); n > contract.MaxRow {
		t.Fatalf("accepted at %d bytes", n)
	}
	for n := range 30 {
		o := failed(false)
		o.Worker = long
		o.Error = &Reason{Code: "target_answered_503_or_so", Message: strings.Repeat("é", 5000)}
		if n == 29 {
			o = succeeded(`"` + strings.Repeat("r", contract.MaxInlineResult-2) + `"`)
			o.Worker = long
		}
		d, err := Settle(&r, r.Attempt, o, noon.Add(time.Duration(n)*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		next, ok := apply(t, r, d.Write)
		if !ok {
			t.Fatal("refused")
		}
		if size := next.Item().Size(); size > contract.MaxRow {
			t.Fatalf("after attempt %d the row has %d bytes", n+1, size)
		}
		r = next
	}
	if r.Status != Succeeded {
		t.Fatalf("ended %s", r.Status)
	}
}

//proof:of F12
func TestSettle_SnoozesForAWhileEvenWhenAskedForNone(t *testing.T) {
	t.Parallel()
	d, err := Settle(new(scheduled()), 1, Outcome{Kind: OutcomeSnoozed}, noon)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.After.DueAt.Sub(noon); got != contract.MinSnooze {
		t.Errorf("a snooze of nothing waits %s", got)
	}
}

//proof:of F16
func TestSettle_KeepsEachLostStartInAnItemOfItsOwn(t *testing.T) {
	t.Parallel()
	r := scheduled()
	o := succeeded(`1`)
	for n := range int64(3) {
		o.Lost = append(o.Lost, Attempt{Attempt: 1, Start: n + 1, Worker: "gone", StartedAt: noon, FinishedAt: noon,
			Outcome: OutcomeLost})
	}
	d, err := Settle(&r, 1, o, noon)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range d.Contents {
		names = append(names, strings.TrimPrefix(w.SK, string(r.ID)+"#"))
	}
	if want := []string{"attempt#000001#1", "attempt#000001#2", "attempt#000001#3"}; !slices.Equal(names,
		want) || len(d.After.Attempts) != 1 {
		t.Errorf("put %v beside the row, want %v; on it are %+v", names, want, d.After.Attempts)
	}
}

func TestSettle_GivesAnAttemptThatNeverStartedNoTimes(t *testing.T) {
	t.Parallel()
	d, err := Settle(new(scheduled()), 1,
		Outcome{Kind: OutcomeFailed, Permanent: true, FinishedAt: noon, Error: &Reason{Code: CodeUnknownTask}}, noon)
	if err != nil {
		t.Fatal(err)
	}
	if a := d.After.Attempts[0]; !a.StartedAt.IsZero() || !a.FinishedAt.IsZero() || !d.After.StartedAt.IsZero() {
		t.Errorf("its entry is %+v", a)
	}
}

// No attempt and no result may be lost when the row is full: what leaves the row must be put
// into an attached item.
//
//proof:of 65 S35
func TestSettle_MovesNothingOutOfTheRowWithoutASibling(t *testing.T) {
	t.Parallel()
	r := scheduled()
	kept := map[string]bool{}
	for range 5 {
		o := failed(false)
		d, err := Settle(&r, r.Attempt, o, noon)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range d.Contents {
			kept[w.SK] = true
		}
		r, _ = apply(t, r, d.Write)
	}
	for a := int64(1); a <= 5; a++ {
		inRow := false
		for _, x := range r.Attempts {
			inRow = inRow || x.Attempt == a
		}
		if !inRow && !kept[string(r.ID)+"#"+AttemptContent(a)] {
			t.Errorf("attempt %d is neither on the row nor beside it", a)
		}
	}
	d, _ := Settle(new(scheduled()), 1, succeeded(`"`+strings.Repeat("r", 5000)+`"`), noon)
	if d.After.ResultIn != InItem || len(d.Contents) != 1 || d.Contents[0].SK != string(r.ID)+"#"+ResultContent {
		t.Errorf("a large result was placed in %q with %d siblings", d.After.ResultIn, len(d.Contents))
	}
}

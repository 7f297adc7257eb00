package job

import (
	"reflect"
	"regexp"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/message"
)

func firingDue(in time.Duration) Firing {
	return scheduled(func(r *Row) { r.DueAt, r.Pool, r.Priority = noon.Add(in), "short", Normal }).Firing()
}

func TestFiring_IsDelayedUntilJustBeforeItIsDue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ due, delay time.Duration }{
		{-time.Hour, 0}, // overdue: at once, never a negative delay
		{0, 0},
		{contract.NowLane, 0},
		{10*time.Second + 700*time.Millisecond, 8 * time.Second},
		{contract.DirectLane, contract.DirectLane - contract.DelayLead},
		{contract.Horizon, contract.MaxDelay},
	} {
		f := firingDue(c.due)
		out := f.Outgoing(noon)
		if out.Delay != c.delay || f.Queue() != "firing-short-normal" || out.Group != "acme" {
			t.Errorf("due in %s: delay %s to %s for %s", c.due, out.Delay, f.Queue(), out.Group)
		}
	}
}

// What Scheduler may do to a timer is late by a minute, and what the call takes; both fit.
func TestSliceTimer_IsNeverSoNearThatItCouldBePast(t *testing.T) {
	t.Parallel()
	if contract.DirectLane-time.Minute-contract.TimerLead <= contract.TimerGuard {
		t.Errorf("the timer of a slice that begins at the direct lane's end could stand %s ahead",
			contract.DirectLane-time.Minute-contract.TimerLead)
	}
}

//proof:of 183
func TestSliceTimer_IsOneForEachSlice(t *testing.T) {
	t.Parallel()
	allowed := regexp.MustCompile(`^[0-9a-zA-Z-_.]{1,64}$`)
	names := map[string]bool{}
	for _, s := range []horizon.Slice{
		{Minute: noon, Shard: 3}, {Minute: noon, Shard: 13}, {Minute: noon.Add(time.Minute), Shard: 3},
		{Minute: noon.Add(24 * time.Hour), Shard: 3}, {Minute: noon, Shard: 1023},
	} {
		m := SliceTimer(s)
		names[m.Name] = true
		if repeated := SliceTimer(horizon.SliceOf(s.Minute.Add(59*time.Second), s.Shard)); repeated != m {
			t.Errorf("another wake-up of slice %s has another timer", s)
		}
		if !allowed.MatchString(m.Name) {
			t.Errorf("Scheduler would refuse the name %q", m.Name)
		}
		if !m.At.Equal(s.Minute.Add(-contract.TimerLead)) || m.At.Second() != 0 {
			t.Errorf("the timer of %s stands at %s", s, m.At)
		}
		d, err := message.Decode[message.Dispatch](m.Body)
		if err != nil || d.Slice != s.String() || !d.At.Equal(m.At) || m.Body != AskSlice(s).Body {
			t.Errorf("the timer of %s carries %s, %v", s, m.Body, err)
		}
	}
	if len(names) != 5 {
		t.Errorf("%d names for 5 slices", len(names))
	}
}

// Each row is sent by the process that wrote it, by the stream consumer, or by the process that reads its slice, and
// only a row whose clocks disagree by two.
func TestRow_SaysWhoFiresIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		ahead   time.Duration // of due when it is written
		seen    time.Duration // of due when the stream shows it
		bySlice bool          // the process that reads the slice sends it
		waits   bool          // the stream consumer does not
	}{
		{"within the direct lane", contract.DirectLane, contract.DirectLane - time.Second, false, false},
		{"within the direct lane, seen by a clock that is behind", contract.DirectLane,
			contract.DirectLane + 2*time.Second, false, false},
		{"just beyond the direct lane", contract.DirectLane + time.Millisecond, contract.DirectLane + time.Millisecond,
			true, true},
		{"just beyond the direct lane, seen within", contract.DirectLane + time.Millisecond, contract.DirectLane, true,
			false},
		{"seen when its slice has been read", 20 * time.Minute, time.Minute, true, false},
		{"at the end of the horizon and its margin", contract.Horizon + contract.NearMargin, contract.Horizon, true,
			true},
		{"far ahead", 24 * time.Hour, 24 * time.Hour, true, true},
		{"due now", 0, 0, true, false}, // no slice is read so late
	} {
		r := scheduled(func(r *Row) { r.DueAt = noon.Add(c.ahead) })
		Route(&r, noon)
		if got := FiredBySlice(r.DueAt, r.WakeAt); got != c.bySlice {
			t.Errorf("%s: fired by its slice: %v", c.name, got)
		}
		if got := WaitsForSlice(r, r.DueAt.Add(-c.seen)); got != c.waits {
			t.Errorf("%s: left to its slice: %v", c.name, got)
		}
	}
}

func TestRow_IsRearmedOnlyWhenItsFiringChanged(t *testing.T) {
	t.Parallel()
	near := func(change ...func(*Row)) Row {
		r := scheduled(func(r *Row) { r.Near, r.DueAt = true, noon.Add(20*time.Minute) })
		for _, f := range change {
			f(&r)
		}
		return r
	}
	attempt := func(r *Row) { r.Attempt++ }
	version := func(r *Row) { r.Version++ }
	later := func(r *Row) { r.DueAt = r.DueAt.Add(time.Minute) }
	unseen := func(r *Row) { r.Near = false }
	stop := func(r *Row) { r.Stop = StopCancel }
	row := func(r Row) *Row { return &r }
	for _, c := range []struct {
		name string
		old  *Row
		new  Row
		arm  bool
	}{
		{"a new row", nil, near(), true},
		{"a row that comes into sight", row(near(unseen)), near(), true},
		{"a row that its writer fires itself", nil, near(unseen), false},
		{"any other change", row(near()), near(func(r *Row) { r.Failures = 3 }), false},
		{"running", row(near()), near(func(r *Row) { r.Status = Running }), false},
		{"a retry", row(near()), near(attempt), true},
		{"an edit", row(near()), near(version), true},
		{"another due time", row(near()), near(later), true},
		{"a stop", row(near()), near(stop), false},
		{"a final row", row(near()), near(func(r *Row) { r.Status = Succeeded }), false},
	} {
		if arm := Rearm(c.old, c.new); arm != c.arm {
			t.Errorf("%s: arm %v, want %v", c.name, arm, c.arm)
		}
	}
}

func TestDeadLetter_CountsAsRedrivenOnlyWhenARedriveMovedIt(t *testing.T) {
	t.Parallel()
	labels := Labels{Tags: `{"a":"b"}`, Metadata: `{"n":1.50}`}
	l := DeadLetterOf(scheduled(func(r *Row) { r.Status, r.DeadAt = Dead, noon }), labels, noon)
	d, err := message.Decode[message.DeadLetter](message.Encode(l))
	if err != nil || !reflect.DeepEqual(d, l) || string(d.Metadata) != labels.Metadata {
		t.Fatalf("the letter reads back as %+v, %v", d, err)
	}
	for _, c := range []struct {
		name string
		d    message.Delivery
		want bool
	}{
		{"fresh", message.Delivery{SentAt: noon.Add(40 * time.Millisecond)}, false},
		{"fresh, and received for the third time", message.Delivery{SentAt: noon.Add(time.Second), Receives: 3}, false},
		{"a send that took long", message.Delivery{SentAt: noon.Add(contract.DeadLetterCameBackAfter)}, false},
		{"enqueued anew", message.Delivery{SentAt: noon.Add(contract.DeadLetterCameBackAfter + time.Millisecond)},
			true},
		{"with a source", message.Delivery{SentAt: noon, Source: "arn:aws:sqs:eu-central-1:1:dead-letters"}, true},
	} {
		if got := CameBack(l, c.d); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestFiring_OfARunGoesToDispatchALittleBeforeItsTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ due, delay, atDue time.Duration }{
		{-time.Hour, 0, 0},
		{700 * time.Millisecond, 0, time.Second},
		{10*time.Second + 700*time.Millisecond, 9 * time.Second, 11 * time.Second},
		{time.Hour, contract.MaxDelay, contract.MaxDelay},
	} {
		f := firingDue(c.due)
		f.Pool = contract.RunPool
		out, at := f.Outgoing(noon), f.AtDue(noon)
		d, err := message.Decode[message.Dispatch](out.Body)
		if err != nil || *d.Firing != f.Message() || d.Pool != contract.RunPool || out.Body != at.Body {
			t.Errorf("due in %s: %s, %v", c.due, out.Body, err)
		}
		if f.Queue() != contract.DispatchQueue || out.Delay != c.delay || at.Delay != c.atDue {
			t.Errorf("due in %s: to %s in %s, or in %s", c.due, f.Queue(), out.Delay, at.Delay)
		}
	}
}

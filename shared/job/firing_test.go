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

func TestPlans_SendWhatIsDueWithinTheDirectLaneWithItsDelay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ due, delay time.Duration }{
		{-time.Hour, 0}, // overdue: at once, never a negative delay
		{0, 0},
		{contract.NowLane, 0},
		{10*time.Second + 700*time.Millisecond, 8 * time.Second},
		{contract.DirectLane, contract.DirectLane - contract.DelayLead},
	} {
		p := Arm(firingDue(c.due), noon)
		if p.Send == nil || p.Arm != nil {
			t.Fatalf("due in %s: %+v, want a send", c.due, p)
		}
		if p.Send.Delay != c.delay || p.Queue != "firing-short-normal" || p.Send.Group != "acme" {
			t.Errorf("due in %s: delay %s to %s for %s", c.due, p.Send.Delay, p.Queue, p.Send.Group)
		}
	}
}

func TestPlans_ArmATimerALeadBeforeWhatIsDueLater(t *testing.T) {
	t.Parallel()
	for _, due := range []time.Duration{contract.DirectLane + time.Millisecond, contract.Horizon,
		contract.Horizon + contract.NearMargin} {
		f := firingDue(due)
		p := Arm(f, noon)
		if p.Arm == nil || p.Send != nil {
			t.Fatalf("due in %s: %+v, want a timer", due, p)
		}
		lead := f.DueAt.Sub(p.Arm.At)
		if lead < contract.TimerLead || lead >= contract.TimerLead+time.Second || p.Arm.At.Nanosecond() != 0 {
			t.Errorf("due in %s: the timer stands at %s", due, p.Arm.At)
		}
		d, err := message.Decode[message.Dispatch](p.Arm.Body)
		if err != nil || *d.Firing != f.Message() || d.Pool != "short" || d.Priority != "normal" {
			t.Errorf("due in %s: the timer carries %s, %v", due, p.Arm.Body, err)
		}
	}
}

// What Scheduler may do to a timer is late by a minute, and what the call takes; both fit.
func TestTimer_IsNeverSoNearThatItCouldBePast(t *testing.T) {
	t.Parallel()
	if contract.DirectLane-contract.TimerLead <= contract.TimerGuard {
		t.Errorf("a timer of the direct lane's end would stand %s ahead", contract.DirectLane-contract.TimerLead)
	}
}

func TestTimer_NameTellsVersionsAndAttemptsApartAndNothingElse(t *testing.T) {
	t.Parallel()
	f := firingDue(20 * time.Minute)
	names := map[string]bool{f.TimerName(): true}
	moved := f
	moved.DueAt = moved.DueAt.Add(time.Minute)
	names[moved.TimerName()] = true
	if len(names) != 1 {
		t.Error("the same attempt of the same version has two names")
	}
	for _, change := range []func(*Firing){
		func(f *Firing) { f.Version++ }, func(f *Firing) { f.Attempt++ },
		func(f *Firing) { f.Tenant = "other" }, func(f *Firing) { f.ID = NewID(noon, [10]byte{9}) },
	} {
		g := f
		change(&g)
		names[g.TimerName()] = true
	}
	if len(names) != 5 {
		t.Errorf("%d names for 5 firings", len(names))
	}
	allowed := regexp.MustCompile(`^[0-9a-zA-Z-_.]{1,64}$`)
	for n := range names {
		if !allowed.MatchString(n) {
			t.Errorf("Scheduler would refuse the name %q", n)
		}
	}
}

func TestPlans_SendACrowdedSliceByOneTimerOrMessage(t *testing.T) {
	t.Parallel()
	far := horizon.Slice{Minute: noon.Add(30 * time.Minute), Shard: 3}
	p := ArmSlice(far, noon)
	if p.Arm == nil || !p.Arm.At.Equal(far.Minute.Add(-contract.TimerLead)) {
		t.Fatalf("far: %+v", p)
	}
	if d, err := message.Decode[message.Dispatch](p.Arm.Body); err != nil || d.Slice != far.String() {
		t.Errorf("the timer carries %s, %v", p.Arm.Body, err)
	}
	if again := ArmSlice(far, noon.Add(time.Minute)); *again.Arm != *p.Arm {
		t.Error("arming the slice a minute later is another timer")
	}
	if p := ArmSlice(horizon.Slice{Minute: noon.Add(10 * time.Minute), Shard: 3},
		noon); p.Send == nil || p.Queue != contract.DispatchQueue {
		t.Errorf("near: %+v", p)
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
	later := func(r *Row) { version(r); r.DueAt = r.DueAt.Add(time.Minute) }
	unseen := func(r *Row) { r.Near = false }
	stop := func(r *Row) { r.Stop = StopCancel }
	soon := func(r *Row) { r.DueAt = noon.Add(30 * time.Second) }
	row := func(r Row) *Row { return &r }
	for _, c := range []struct {
		name  string
		old   *Row
		new   Row
		arm   bool
		stale int64 // version of the timer taken back, 0 for none
	}{
		{"a new row", nil, near(), true, 0},
		{"a row that comes into sight", row(near(unseen)), near(), true, 0},
		{"a row that its writer fires itself", nil, near(unseen), false, 0},
		{"any other change", row(near()), near(func(r *Row) { r.Failures = 3 }), false, 0},
		{"running", row(near()), near(func(r *Row) { r.Status = Running }), false, 0},
		{"a retry", row(near()), near(attempt), true, 1},
		{"an edit takes the old timer back", row(near()), near(later), true, 1},
		{"an edit of what was due at once has no timer to take back", row(near(soon)), near(later), true, 0},
		{"a stop takes the timer back", row(near()), near(stop), false, 1},
		{"a final row", row(near()), near(func(r *Row) { r.Status = Succeeded }), false, 0},
	} {
		arm, stale := Rearm(c.old, c.new, noon)
		got := int64(0)
		if stale != nil {
			got = stale.Version
		}
		if arm != c.arm || got != c.stale {
			t.Errorf("%s: arm %v, stale version %d; want %v, %d", c.name, arm, got, c.arm, c.stale)
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

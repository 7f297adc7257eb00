package conformance

import (
	"context"
	"strings"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/message"
)

// TimerBench holds timers, the queues that they send to, and a way to read what is armed.
type TimerBench struct {
	message.Timers
	Queues message.Queues
	// Armed returns a timer by name; false if there is none.
	Armed func(ctx context.Context, name string) (message.Timer, bool, error)
}

// Timer exercises timers. Each call of open must return a separate dispatch queue.
func Timer(t *testing.T, open func(*testing.T) TimerBench, k Knobs) {
	t.Helper()
	run(t, k, open, timers())
}

// ahead returns an instant that far in the future, in whole seconds as timers need.
func ahead(d time.Duration) time.Time { return time.Now().Add(d).Truncate(time.Second).UTC() }

func wantArmed(t T, b TimerBench, want message.Timer) {
	t.Helper()
	got, ok, err := b.Armed(t.Context(), want.Name)
	must(t, err)
	if !ok || got.Name != want.Name || !got.At.Equal(want.At) || got.Body != want.Body || got.MaxAge != want.MaxAge {
		t.Errorf("armed is %+v (%v), want %+v", got, ok, want)
	}
}

func wantUnarmed(t T, b TimerBench, name string) {
	t.Helper()
	got, ok, err := b.Armed(t.Context(), name)
	must(t, err)
	if ok {
		t.Errorf("armed is %+v, want nothing", got)
	}
}

func timers() []exercise[TimerBench] {
	return []exercise[TimerBench]{
		{name: "arming the same timer twice is no error and changes nothing", run: func(t T, b TimerBench) {
			timer := message.Timer{Name: unique() + "_.", At: ahead(time.Hour), Body: `{"v":1,"text":"ü\"<&>"}`,
				MaxAge: 10 * time.Minute}
			for range 3 {
				must(t, b.Arm(t.Context(), timer))
				wantArmed(t, b, timer)
			}
		}},
		{name: "arming a timer with other content replaces all of it", run: func(t T, b TimerBench) {
			name := unique()
			for _, timer := range []message.Timer{
				{Name: name, At: ahead(time.Hour), Body: "a", MaxAge: time.Hour},
				{Name: name, At: ahead(2 * time.Hour), Body: "a", MaxAge: time.Hour},
				{Name: name, At: ahead(2 * time.Hour), Body: "b", MaxAge: time.Hour},
				{Name: name, At: ahead(2 * time.Hour), Body: "b", MaxAge: 2 * time.Hour},
			} {
				must(t, b.Arm(t.Context(), timer))
				wantArmed(t, b, timer)
			}
		}},
		{name: "a past time is invalid and arms nothing", run: func(t T, b TimerBench) {
			timer := message.Timer{Name: unique(), At: ahead(-10 * time.Second), Body: "a", MaxAge: time.Hour}
			wantKind(t, b.Arm(t.Context(), timer), fault.Invalid)
			wantUnarmed(t, b, timer.Name)
		}},
		{name: "a name that the scheduler refuses is invalid", run: func(t T, b TimerBench) {
			for _, name := range []string{"", "a/b", "a b", strings.Repeat("x", 65)} {
				wantKind(t, b.Arm(t.Context(), message.Timer{Name: name, At: ahead(time.Hour), Body: "a",
					MaxAge: time.Hour}), fault.Invalid)
			}
			longest := message.Timer{Name: (unique() + strings.Repeat("x", 64))[:64], At: ahead(time.Hour), Body: "a",
				MaxAge: time.Hour}
			must(t, b.Arm(t.Context(), longest))
			wantArmed(t, b, longest)
		}},
		{name: "a timer fires once within its minute, with its last body",
			waits: 3 * time.Minute, run: func(t T, b TimerBench) {
				timer := message.Timer{Name: unique(), At: ahead(20 * time.Second), Body: "first", MaxAge: time.Hour}
				must(t, b.Arm(t.Context(), timer))
				timer.Body = "second"
				must(t, b.Arm(t.Context(), timer))

				end := timer.At.Add(2 * time.Minute)
				var got []message.Delivery
				for time.Now().Before(end) {
					more, err := b.Queues.Receive(t.Context(), contract.DispatchQueue, 10, 10*time.Second, 0)
					must(t, err)
					if len(more) > 0 {
						// The seconds of At may count or not, so it fires up to a minute before or
						// after.
						if off := time.Since(timer.At); off < -time.Minute || off > 75*time.Second {
							t.Errorf("it fired %s after its time", off)
						}
					}
					got = append(got, more...)
				}
				if len(got) != 1 || got[0].Body != "second" || got[0].Source != "" {
					t.Fatalf("the dispatch queue received %+v, want one message that says second", got)
				}
				wantUnarmed(t, b, timer.Name)
			}},
	}
}

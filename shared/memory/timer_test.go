package memory_test

import (
	"fmt"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/memory"
	"punctual/shared/message"
)

// noon returns a whole minute in the future.
func noon() time.Time { return time.Now().Truncate(time.Minute).Add(10 * time.Minute) }

// fired waits until the dispatch queue has received n messages, for an hour at most, and returns
// when each came, by body.
func fired(t *testing.T, w *memory.World, n int) map[string]time.Time {
	t.Helper()
	at := map[string]time.Time{}
	for end := time.Now().Add(time.Hour); len(at) < n && time.Now().Before(end); {
		for _, d := range receive(t, w, contract.DispatchQueue, 20*time.Second) {
			at[d.Body] = time.Now()
			must(t, w.Queues().Delete(t.Context(), contract.DispatchQueue, d.Receipt))
		}
	}
	if len(at) != n {
		t.Fatalf("%d timers fired, want %d", len(at), n)
	}
	return at
}

func TestTimers_FireWithinTheirMinute(t *testing.T) {
	t.Parallel()

	t.Run("timers fire anywhere within their minute, each always at the same second", func(t *testing.T) {
		t.Parallel()
		var before map[string]time.Duration
		for range 2 {
			bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
				at := noon()
				for n := range 200 {
					name := fmt.Sprintf("j-%d", n)
					must(t, w.Timers().Arm(t.Context(), message.Timer{Name: name, At: at, Body: name,
						MaxAge: time.Hour}))
				}
				late := map[string]time.Duration{}
				thirds := [3]int{}
				for name, when := range fired(t, w, 200) {
					late[name] = when.Sub(at)
					if late[name] < 0 || late[name] >= time.Minute {
						t.Fatalf("%s fired %s after its minute began", name, late[name])
					}
					thirds[late[name]/(20*time.Second)]++
				}
				for n, many := range thirds {
					if many < 40 {
						t.Errorf("only %d fired in third %d of the minute", many, n)
					}
				}
				for name, d := range before {
					if late[name] != d {
						t.Errorf("%s fired %s into its minute, before %s", name, late[name], d)
					}
				}
				before = late
				if left := w.Timers().Armed(); len(left) != 0 {
					t.Errorf("still armed: %v", left)
				}
				if c := w.Counts(); c.TimersFired != 200 || c.TimerCalls != 200 {
					t.Errorf("counted %+v", c)
				}
			})
		}
	})

	t.Run("a timer may fire before its seconds, since only the minute counts, but never before it was armed",
		func(t *testing.T) {
			t.Parallel()
			o := memory.Options{TimerDelay: func(message.Timer) time.Duration { return 5 * time.Second }}
			bubble(t, o, func(t *testing.T, w *memory.World) {
				at := noon()
				must(t, w.Timers().Arm(t.Context(), message.Timer{Name: "j", At: at.Add(40 * time.Second),
					Body: "early", MaxAge: time.Hour}))
				if got := fired(t, w, 1)["early"]; !got.Equal(at.Add(5 * time.Second)) {
					t.Errorf("it fired at %s, want 5 s into %s", got, at)
				}
				time.Sleep(15 * time.Second)
				now := time.Now()
				must(t, w.Timers().Arm(t.Context(), message.Timer{Name: "j", At: now.Add(20 * time.Second),
					Body: "at once", MaxAge: time.Hour}))
				if got := fired(t, w, 1)["at once"]; !got.Equal(now) {
					t.Errorf("it fired at %s, want at once", got)
				}
			})
		})

	t.Run("a timer whose send fails retries, and sends once", func(t *testing.T) {
		t.Parallel()
		bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
			w.SetFaults(func(c memory.Call) memory.Fault {
				if c.Op == memory.TimerFire && c.N <= 3 {
					return memory.Fault{Fail: fault.Throttled}
				}
				return memory.Fault{}
			})
			at := noon()
			must(t, w.Timers().Arm(t.Context(), message.Timer{Name: "j", At: at, Body: "j", MaxAge: time.Hour}))
			if late := fired(t, w, 1)["j"].Sub(at); late < 14*time.Second || late > 59*time.Second+14*time.Second {
				t.Errorf("it fired %s late, after tries 2, 4 and 8 s apart", late)
			}
			if got := receive(t, w, contract.DispatchQueue, 20*time.Second); len(got) != 0 {
				t.Errorf("it sent twice: %v", got)
			}
		})
	})

	t.Run("a timer that cannot send until its maximum age goes to the dead firings", func(t *testing.T) {
		t.Parallel()
		bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
			w.SetFaults(func(c memory.Call) memory.Fault {
				if c.Op == memory.QueueSend {
					return memory.Fault{Fail: fault.Unavailable}
				}
				return memory.Fault{}
			})
			must(t, w.Timers().Arm(t.Context(), message.Timer{Name: "j", At: noon(), Body: "j",
				MaxAge: 5 * time.Minute}))
			time.Sleep(20 * time.Minute)
			if got := one(t, w, contract.FiringDead); got.Body != "j" || got.Source != "" {
				t.Errorf("received %+v", got)
			}
			if left := w.Timers().Armed(); len(left) != 0 {
				t.Errorf("still armed: %v", left)
			}
		})
	})

	t.Run("a timer fires twice when planned, or when the answer to its send is lost", func(t *testing.T) {
		t.Parallel()
		for _, f := range []memory.Fault{{Twice: true}, {Lost: true}} {
			bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
				w.SetFaults(func(c memory.Call) memory.Fault {
					if c.Op == memory.TimerFire && c.N == 1 {
						return f
					}
					return memory.Fault{}
				})
				must(t, w.Timers().Arm(t.Context(), message.Timer{Name: "j", At: noon(), Body: "j", MaxAge: time.Hour}))
				time.Sleep(20 * time.Minute)
				if got := receive(t, w, contract.DispatchQueue, 0); len(got) != 2 {
					t.Errorf("%+v: received %v", f, got)
				}
			})
		}
	})

	t.Run("a timer outside the scheduler's limits is invalid", func(t *testing.T) {
		t.Parallel()
		bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
			fine := message.Timer{Name: "j", At: noon(), Body: "j", MaxAge: time.Hour}
			for what, spoil := range map[string]func(*message.Timer){
				"no body":            func(t *message.Timer) { t.Body = "" },
				"a large body":       func(t *message.Timer) { t.Body = string(make([]byte, 256<<10+1)) },
				"too short an age":   func(t *message.Timer) { t.MaxAge = 59 * time.Second },
				"too long an age":    func(t *message.Timer) { t.MaxAge = 25 * time.Hour },
				"this very second":   func(t *message.Timer) { t.At = time.Now() },
				"no time":            func(t *message.Timer) { t.At = time.Time{} },
				"a name with spaces": func(t *message.Timer) { t.Name = "j j" },
			} {
				timer := fine
				spoil(&timer)
				if err := w.Timers().Arm(t.Context(), timer); fault.KindOf(err) != fault.Invalid {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	})

	t.Run("a closed World fires no timer and arms none", func(t *testing.T) {
		t.Parallel()
		bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
			timer := message.Timer{Name: "j", At: noon(), Body: "j", MaxAge: time.Hour}
			must(t, w.Timers().Arm(t.Context(), timer))
			w.Close()
			time.Sleep(time.Hour)
			if got := depth(t, w, contract.DispatchQueue); got != (message.Depth{}) {
				t.Errorf("it fired: %+v", got)
			}
			timer.At = noon()
			if err := w.Timers().Arm(t.Context(), timer); fault.KindOf(err) != fault.Unavailable {
				t.Errorf("arming says %v", err)
			}
		})
	})
}

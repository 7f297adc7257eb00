package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/message"
)

// Queue exercises queues. Each call of open must return empty queues that nothing else uses, made
// as contract.Queues says.
func Queue(t *testing.T, open func(*testing.T) message.Queues, k Knobs) {
	t.Helper()
	run(t, k, open, queues())
}

// work is the queue that most exercises use.
var work = contract.FiringQueue("short", "normal")

func send(t T, qs message.Queues, queue string, out ...message.Outgoing) {
	t.Helper()
	must(t, qs.Send(t.Context(), queue, out...))
}

// busy bounds what takes no time on an idle machine, but may take some on a busy one.
const busy = time.Minute

// take receives until it has n messages, for a minute at most.
func take(t T, qs message.Queues, queue string, n int, visibility time.Duration) []message.Delivery {
	t.Helper()
	var got []message.Delivery
	end := time.Now().Add(busy)
	for len(got) < n && time.Now().Before(end) {
		more, err := qs.Receive(t.Context(), queue, min(10, n-len(got)), time.Second, visibility)
		must(t, err)
		got = append(got, more...)
	}
	if len(got) != n {
		t.Fatalf("received %d messages in %s, want %d", len(got), busy, n)
	}
	return got
}

// wantNone fails if a message can be received within a second.
func wantNone(t T, qs message.Queues, queue string) {
	t.Helper()
	got, err := qs.Receive(t.Context(), queue, 10, time.Second, 0)
	must(t, err)
	if len(got) != 0 {
		t.Errorf("received %d messages (the first says %q), want none", len(got), got[0].Body)
	}
}

func bodies(got []message.Delivery) []string {
	var b []string
	for _, d := range got {
		b = append(b, d.Body)
	}
	slices.Sort(b)
	return b
}

// unsent returns the indexes of the messages that err says failed.
func unsent(t T, err error) []int {
	t.Helper()
	var u *message.Unsent
	if !errors.As(err, &u) {
		t.Fatalf("got error %v, want one that names what was not sent", err)
	}
	var at []int
	for i, why := range u.Failed {
		if why == nil || fault.Retryable(why) {
			t.Errorf("message %d was not sent because of %v, want what can never work", i, why)
		}
		at = append(at, i)
	}
	slices.Sort(at)
	return at
}

func queues() []exercise[message.Queues] {
	return append(append(sending(), receiving()...), deadLettering()...)
}

func sending() []exercise[message.Queues] {
	return []exercise[message.Queues]{
		{name: "a message is received with its body, group and send time",
			run: func(t T, qs message.Queues) {
				body := `{"text":"ü€😀 <&> \n\t"}`
				before := time.Now()
				send(t, qs, work, message.Outgoing{Body: body, Group: "acme"})
				got := take(t, qs, work, 1, 0)[0]
				if got.Body != body || got.Group != "acme" || got.Receives != 1 || got.ID == "" || got.Receipt == "" ||
					got.Source != "" {
					t.Errorf("received %+v", got)
				}
				if off := got.SentAt.Sub(before); off < -2*time.Second || off > busy {
					t.Errorf("it says that it was sent %s after it was", off)
				}
			}},
		{name: "many messages sent at once all arrive, each once", run: func(t T, qs message.Queues) {
			var out []message.Outgoing
			var want []string
			for n := range 25 {
				want = append(want, fmt.Sprintf("message %02d", n))
				out = append(out, message.Outgoing{Body: want[n]})
			}
			send(t, qs, work, out...)
			if got := bodies(take(t, qs, work, 25, 0)); !slices.Equal(got, want) {
				t.Errorf("received %v", got)
			}
			wantNone(t, qs, work)
		}},
		{name: "sending nothing is no error", run: func(t T, qs message.Queues) {
			send(t, qs, work)
		}},
		{name: "large messages are sent in several requests", run: func(t T, qs message.Queues) {
			big := strings.Repeat("x", 600<<10)
			send(t, qs, work, message.Outgoing{Body: "1" + big}, message.Outgoing{Body: "2" + big},
				message.Outgoing{Body: "3"})
			got := bodies(take(t, qs, work, 3, 0))
			if got[0] != "1"+big || got[1] != "2"+big || got[2] != "3" {
				t.Errorf("received bodies of %d, %d and %d bytes", len(got[0]), len(got[1]), len(got[2]))
			}
		}},
		{name: "messages that can never be sent are returned by index, and the others are sent",
			run: func(t T, qs message.Queues) {
				err := qs.Send(t.Context(), work,
					message.Outgoing{Body: "a"},
					message.Outgoing{Body: "b", Delay: contract.MaxDelay + time.Second},
					message.Outgoing{Body: "c"},
					message.Outgoing{Body: strings.Repeat("x", 1<<20+1)},
					message.Outgoing{Body: "d", Delay: -time.Second},
					message.Outgoing{Body: "e"},
				)
				if at := unsent(t, err); !slices.Equal(at, []int{1, 3, 4}) {
					t.Errorf("not sent: %v, want 1, 3 and 4", at)
				}
				if got := bodies(take(t, qs, work, 3, 0)); !slices.Equal(got, []string{"a", "c", "e"}) {
					t.Errorf("received %v", got)
				}
				wantNone(t, qs, work)
			}},
		{name: "characters that SQS refuses can never be sent, and all others can", run: func(t T, qs message.Queues) {
			refused := []string{"\x00", "\x08", "\x0b", "\x0c", "\x1f", "\ufffe", "\uffff", "\xff", "\xed\xa0\x80",
				"{\"a\":\"x\uffffy\"}"}
			taken := []string{"\t\n\r.", "\x7f", "\u0085", "\ud7ff", "\ue000", "\ufffd", "\U00010000", "\U0001ffff",
				"\U0010ffff", `{"a":"x\uffffy\ud800"}`}
			var out []message.Outgoing
			var want []int
			for n, body := range refused {
				out, want = append(out, message.Outgoing{Body: "x" + body}), append(want, n)
			}
			for _, body := range taken {
				out = append(out, message.Outgoing{Body: "x" + body})
			}
			if at := unsent(t, qs.Send(t.Context(), work, out...)); !slices.Equal(at, want) {
				t.Errorf("not sent: %v, want %v", at, want)
			}
			for _, got := range bodies(take(t, qs, work, len(taken), 0)) {
				if !slices.Contains(taken, strings.TrimPrefix(got, "x")) {
					t.Errorf("a message came out as %q", got)
				}
			}
			wantNone(t, qs, work)
		}},
		{
			name: "a group with other than letters, digits and punctuation can never be sent",
			run: func(t T, qs message.Queues) {
				err := qs.Send(t.Context(), work,
					message.Outgoing{Body: "a", Group: "two words"}, message.Outgoing{Body: "b", Group: "gr\u00fcn"},
					message.Outgoing{Body: "c", Group: "x\uffff"},
					message.Outgoing{Body: "d", Group: strings.Repeat("g", 129)},
					message.Outgoing{Body: "fine", Group: "a-z_A.Z!#~"},
				)
				if at := unsent(t, err); !slices.Equal(at, []int{0, 1, 2, 3}) {
					t.Errorf("not sent: %v, want the first four", at)
				}
				take(t, qs, work, 1, 0)
			},
		},
		{name: "an empty body can never be sent", run: func(t T, qs message.Queues) {
			err := qs.Send(t.Context(), work, message.Outgoing{Body: ""}, message.Outgoing{Body: "fine"})
			if at := unsent(t, err); !slices.Equal(at, []int{0}) {
				t.Errorf("not sent: %v, want 0", at)
			}
			take(t, qs, work, 1, 0)
		}},
		{name: "a missing queue is not found", run: func(t T, qs message.Queues) {
			_, err := qs.Receive(t.Context(), "nowhere", 1, 0, 0)
			wantKind(t, err, fault.NotFound)
			wantKind(t, qs.Send(t.Context(), "nowhere", message.Outgoing{Body: "x"}), fault.NotFound)
		}},
		{name: "a delayed message becomes visible after its delay, and wakes a waiting receive",
			run: func(t T, qs message.Queues) {
				before := time.Now()
				send(t, qs, work, message.Outgoing{Body: "later", Delay: 3 * time.Second})
				got, err := qs.Receive(t.Context(), work, 1, 15*time.Second,
					0) // without a wake-up the wait ends without the message
				must(t, err)
				if took := time.Since(before); len(got) != 1 || took < 2500*time.Millisecond {
					t.Errorf("received %d messages after %s, want one after 3 s", len(got), took)
				}
			}},
	}
}

func receiving() []exercise[message.Queues] {
	return []exercise[message.Queues]{
		{
			name: "a receive without messages waits as long as it asks, and is no error",
			run: func(t T, qs message.Queues) {
				before := time.Now()
				got, err := qs.Receive(t.Context(), work, 10, 2*time.Second, 0)
				must(t, err)
				if took := time.Since(before); len(got) != 0 || took < 1500*time.Millisecond || took > busy {
					t.Errorf("received %d messages after %s, want none after 2 s", len(got), took)
				}
			},
		},
		{name: "a message sent during a receive ends its wait", run: func(t T, qs message.Queues) {
			before := time.Now()
			sent := make(chan error, 1)
			go func() {
				pause(t, 2*time.Second)
				sent <- qs.Send(t.Context(), work, message.Outgoing{Body: "now"})
			}()
			got, err := qs.Receive(t.Context(), work, 10, 15*time.Second, 0)
			must(t, err)
			must(t, <-sent)
			if took := time.Since(before); len(got) != 1 || took > busy {
				t.Errorf("received %d messages after %s, want one after 2 s", len(got), took)
			}
		}},
		{name: "a receive takes at most max messages and leaves the others", run: func(t T, qs message.Queues) {
			send(t, qs, work, message.Outgoing{Body: "a"}, message.Outgoing{Body: "b"}, message.Outgoing{Body: "c"})
			first, err := qs.Receive(t.Context(), work, 2, time.Second, 0)
			must(t, err)
			if len(first) == 0 || len(first) > 2 {
				t.Fatalf("received %d, want one or two", len(first))
			}
			if got := bodies(append(first, take(t, qs, work, 3-len(first), 0)...)); !slices.Equal(got,
				[]string{"a", "b", "c"}) {
				t.Errorf("received %v", got)
			}
		}},
		{name: "a received message becomes visible after its visibility timeout, and its receives are counted",
			run: func(t T, qs message.Queues) {
				send(t, qs, work, message.Outgoing{Body: "again", Group: "acme"})
				before := time.Now()
				first := take(t, qs, work, 1, 3*time.Second)[0]
				second := take(t, qs, work, 1, 30*time.Second)[0]
				if second.ID != first.ID || second.Receives != 2 || second.Body != first.Body ||
					second.Group != first.Group || !second.SentAt.Equal(first.SentAt) {
					t.Errorf("received %+v after %+v", second, first)
				}
				if took := time.Since(before); took < 2500*time.Millisecond {
					t.Errorf("it became visible after %s, want 3 s", took)
				}
			}},
		{name: "a receive without a visibility timeout uses the queue's default", waits: 45 * time.Second,
			run: func(t T, qs message.Queues) {
				send(t, qs, work, message.Outgoing{Body: "x"})
				take(t, qs, work, 1, 0)
				pause(t, contract.Lease-5*time.Second)
				wantNone(t, qs, work)
				if got := take(t, qs, work, 1, 0)[0]; got.Receives != 2 {
					t.Errorf("received %+v", got)
				}
			}},
		{name: "a visibility timeout can be extended", run: func(t T, qs message.Queues) {
			send(t, qs, work, message.Outgoing{Body: "x"})
			d := take(t, qs, work, 1, 7*time.Second)[0]
			must(t, qs.SetVisibility(t.Context(), work, d.Receipt, 10*time.Minute))
			pause(t, 8*time.Second)
			wantNone(t, qs, work)
		}},
		{name: "a message with visibility 0 becomes visible at once", run: func(t T, qs message.Queues) {
			send(t, qs, work, message.Outgoing{Body: "x"})
			first := take(t, qs, work, 1, time.Minute)[0]
			must(t, qs.SetVisibility(t.Context(), work, first.Receipt, 0))
			if second := take(t, qs, work, 1, time.Minute)[0]; second.ID != first.ID || second.Receives != 2 {
				t.Errorf("received %+v after %+v", second, first)
			}
		}},
		{
			name: "a deleted message is never received, and deleting it twice is no error",
			run: func(t T, qs message.Queues) {
				var receipts []string
				gone := map[string]bool{} // by id; a send that was repeated has left another
				for n := range 12 {
					send(t, qs, work, message.Outgoing{Body: fmt.Sprint(n)})
				}
				for _, d := range take(t, qs, work, 12, 8*time.Second) {
					receipts, gone[d.ID] = append(receipts, d.Receipt), true
				}
				must(t, qs.Delete(t.Context(), work, receipts[0]))
				must(t, qs.Delete(t.Context(), work, receipts...))
				must(t, qs.Delete(t.Context(), work, receipts...))
				must(t, qs.Delete(t.Context(), work))
				pause(t, 9*time.Second)
				got, err := qs.Receive(t.Context(), work, 10, time.Second, 0)
				must(t, err)
				for _, d := range got {
					if gone[d.ID] {
						t.Errorf("%q is received after it was deleted", d.Body)
					}
				}
			},
		},
		{name: "the visibility of a deleted message cannot be set", run: func(t T, qs message.Queues) {
			send(t, qs, work, message.Outgoing{Body: "x"})
			d := take(t, qs, work, 1, time.Minute)[0]
			must(t, qs.Delete(t.Context(), work, d.Receipt))
			if err := qs.SetVisibility(t.Context(), work, d.Receipt, 0); fault.Retryable(err) {
				t.Errorf("the error is retryable: %v", err)
			}
			wantNone(t, qs, work)
		}},
		{name: "each message goes to one of many receivers", run: func(t T, qs message.Queues) {
			var out []message.Outgoing
			for n := range 40 {
				out = append(out, message.Outgoing{Body: fmt.Sprintf("%02d", n)})
			}
			send(t, qs, work, out...)
			var wg sync.WaitGroup
			var mu sync.Mutex
			seen, arrived := map[string]int{}, map[string]bool{} // by id (a repeated send has another); by body
			for range 4 {
				wg.Go(func() {
					for {
						got, err := qs.Receive(t.Context(), work, 10, time.Second, time.Minute)
						if err != nil {
							t.Errorf("%v", err)
						}
						if len(got) == 0 {
							return
						}
						mu.Lock()
						for _, d := range got {
							seen[d.ID]++
							arrived[d.Body] = true
						}
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			for id, n := range seen {
				if n != 1 {
					t.Errorf("message %s was received %d times", id, n)
				}
			}
			if len(arrived) != len(out) {
				t.Errorf("%d of %d messages arrived", len(arrived), len(out))
			}
		}},
		{name: "a depth counts visible, in-flight and delayed messages", run: func(t T, qs message.Queues) {
			send(t, qs, work, message.Outgoing{Body: "1"}, message.Outgoing{Body: "2"}, message.Outgoing{Body: "3"},
				message.Outgoing{Body: "4", Delay: 10 * time.Minute})
			d := take(t, qs, work, 1, time.Minute)[0]
			wantDepth := func(want message.Depth) {
				t.Helper()
				eventually(t, func() string {
					got, err := qs.Depth(t.Context(), work)
					must(t, err)
					got.OldestAt = time.Time{} // not every queue says it
					if got != want {
						return fmt.Sprintf("the depth is %+v, want %+v", got, want)
					}
					return ""
				})
			}
			wantDepth(message.Depth{Visible: 2, InFlight: 1, Delayed: 1})
			must(t, qs.Delete(t.Context(), work, d.Receipt))
			wantDepth(message.Depth{Visible: 2, Delayed: 1})
		}},
		{name: "a receive whose context ends returns a retryable error", run: func(t T, qs message.Queues) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			before := time.Now()
			_, err := qs.Receive(ctx, work, 1, 15*time.Second, 0)
			wantKind(t, err, fault.Unavailable)
			if took := time.Since(before); took > 14*time.Second {
				t.Errorf("it ended after %s, the context after 1 s", took)
			}
		}},
	}
}

func deadLettering() []exercise[message.Queues] {
	return []exercise[message.Queues]{
		{name: "a message at the redrive policy's limit moves to the dead-letter queue, with its source",
			run: func(t T, qs message.Queues) {
				send(t, qs, contract.RedriveQueue, message.Outgoing{Body: "poison"})
				pause(t, 2*time.Second)
				var first message.Delivery
				for n := range contract.DeadLetterMaxReceives {
					got := take(t, qs, contract.RedriveQueue, 1, time.Minute)[0]
					if n == 0 {
						first = got
					}
					if got.Receives != n+1 || got.Source != "" {
						t.Errorf("received %+v", got)
					}
					must(t, qs.SetVisibility(t.Context(), contract.RedriveQueue, got.Receipt, 0))
				}
				wantNone(t, qs, contract.RedriveQueue)
				dead := take(t, qs, contract.DeadLetters, 1, time.Minute)[0]
				if dead.Body != "poison" || dead.Source == "" ||
					dead.SentAt.Sub(first.SentAt).Abs() > time.Millisecond {
					t.Errorf("the dead letter is %+v, sent as %+v", dead, first)
				}
				must(t, qs.Delete(t.Context(), contract.DeadLetters, dead.Receipt))
			}},
		{name: "a message sent straight to a dead-letter queue has no source", run: func(t T, qs message.Queues) {
			send(t, qs, contract.DeadLetters, message.Outgoing{Body: "x"})
			if got := take(t, qs, contract.DeadLetters, 1, time.Minute)[0]; got.Source != "" {
				t.Errorf("received %+v", got)
			}
		}},
	}
}

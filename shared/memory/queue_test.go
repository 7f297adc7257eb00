package memory_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/memory"
	"punctual/shared/message"
)

var work = contract.FiringQueue("short", "normal")

func send(t *testing.T, w *memory.World, queue string, bodies ...string) {
	t.Helper()
	for _, b := range bodies {
		must(t, w.Queues().Send(t.Context(), queue, message.Outgoing{Body: b}))
	}
}

func receive(t *testing.T, w *memory.World, queue string, wait time.Duration) []message.Delivery {
	t.Helper()
	got, err := w.Queues().Receive(t.Context(), queue, 10, wait, 0)
	must(t, err)
	return got
}

// one receives exactly one message, without waiting.
func one(t *testing.T, w *memory.World, queue string) message.Delivery {
	t.Helper()
	got := receive(t, w, queue, 0)
	if len(got) != 1 {
		t.Fatalf("received %d messages from %s, want one", len(got), queue)
	}
	return got[0]
}

func giveBack(t *testing.T, w *memory.World, queue string, d message.Delivery) {
	t.Helper()
	must(t, w.Queues().SetVisibility(t.Context(), queue, d.Receipt, 0))
}

func depth(t *testing.T, w *memory.World, queue string) message.Depth {
	t.Helper()
	d, err := w.Queues().Depth(t.Context(), queue)
	must(t, err)
	return d
}

func TestQueues_BehaveAsSQS(t *testing.T) {
	t.Parallel()

	t.Run("a receipt is valid until the message is received once more, then it does nothing", func(t *testing.T) {
		t.Parallel()
		bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
			send(t, w, work, "x")
			first := one(t, w, work)
			time.Sleep(contract.Lease)
			second := one(t, w, work)
			if first.Receipt == second.Receipt {
				t.Fatal("both receipts are the same")
			}
			must(t, w.Queues().Delete(t.Context(), work, first.Receipt))
			if err := w.Queues().SetVisibility(t.Context(), work, first.Receipt,
				0); fault.KindOf(err) != fault.Invalid {
				t.Errorf("giving back by the older receipt: %v", err)
			}
			if d := depth(t, w, work); d != (message.Depth{InFlight: 1}) {
				t.Fatalf("the depth is %+v", d)
			}
			must(t, w.Queues().Delete(t.Context(), work, second.Receipt))
			if d := depth(t, w, work); d != (message.Depth{}) {
				t.Fatalf("the depth is %+v", d)
			}
		})
	})

	t.Run("a depth says since when the oldest visible message waits", func(t *testing.T) {
		t.Parallel()
		bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
			sent := time.Now()
			send(t, w, work, "a", "b")
			must(t, w.Queues().Send(t.Context(), work, message.Outgoing{Body: "c", Delay: time.Minute}))
			time.Sleep(10 * time.Second)
			if d := depth(t, w, work); !d.OldestAt.Equal(sent) {
				t.Errorf("two wait: %+v", d)
			}
			for _, d := range receive(t, w, work, 0) {
				must(t, w.Queues().Delete(t.Context(), work, d.Receipt))
			}
			if d := depth(t, w, work); !d.OldestAt.IsZero() || d.Delayed != 1 {
				t.Errorf("one is delayed: %+v", d)
			}
			time.Sleep(time.Hour)
			if d := depth(t, w, work); !d.OldestAt.Equal(sent.Add(time.Minute)) {
				t.Errorf("the delay is over: %+v", d)
			}
		})
	})

	t.Run("the newest receipt deletes a message whose visibility timeout is over", func(t *testing.T) {
		t.Parallel()
		bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
			send(t, w, work, "a", "b")
			got := receive(t, w, work, 0)
			time.Sleep(contract.Lease)
			if d := depth(t, w, work); d.Visible != 2 || d.InFlight != 0 || !d.OldestAt.Equal(time.Now()) {
				t.Fatalf("the depth is %+v", d)
			}
			must(t, w.Queues().Delete(t.Context(), work, got[0].Receipt))
			if left := one(t, w, work); left.Body != "b" {
				t.Fatalf("received %+v", left)
			}
		})
	})

	t.Run("a waiting receive wakes when a delay or a visibility timeout ends", func(t *testing.T) {
		t.Parallel()
		bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
			must(t, w.Queues().Send(t.Context(), work, message.Outgoing{Body: "x", Delay: 7 * time.Second}))
			began := time.Now()
			if got := receive(t, w, work, 20*time.Second); len(got) != 1 || time.Since(began) != 7*time.Second {
				t.Fatalf("received %v after %s, want it after 7 s", got, time.Since(began))
			}
			for time.Since(began) < 27*time.Second {
				if got := receive(t, w, work, 20*time.Second); len(got) != 0 {
					t.Fatalf("received %v", got)
				}
			}
			if got := receive(t, w, work, 20*time.Second); len(got) != 1 || time.Since(began) != 37*time.Second {
				t.Fatalf("received %v after %s, want it after 37 s", got, time.Since(began))
			}
		})
	})

	t.Run("a shorter delay sent later, or a visibility cut short, wakes a waiting receive in time", func(t *testing.T) {
		t.Parallel()
		bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
			must(t, w.Queues().Send(t.Context(), work, message.Outgoing{Body: "slow", Delay: 15 * time.Second}))
			send(t, w, work, "held")
			held := one(t, w, work)
			go func() {
				time.Sleep(2 * time.Second)
				must(t, w.Queues().SetVisibility(t.Context(), work, held.Receipt, 3*time.Second))
			}()
			began := time.Now()
			if got := receive(t, w, work, 20*time.Second); len(got) != 1 || got[0].Body != "held" ||
				time.Since(began) != 5*time.Second {
				t.Fatalf("received %v after %s, want held after 5 s", got, time.Since(began))
			}
			go func() {
				time.Sleep(time.Second)
				must(t, w.Queues().Send(t.Context(), work, message.Outgoing{Body: "quick", Delay: time.Second}))
			}()
			if got := receive(t, w, work, 20*time.Second); len(got) != 1 || got[0].Body != "quick" ||
				time.Since(began) != 7*time.Second {
				t.Fatalf("received %v after %s, want quick after 7 s", got, time.Since(began))
			}
		})
	})

	t.Run("messages that become visible together wake as many receivers", func(t *testing.T) {
		t.Parallel()
		bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
			for range 3 {
				must(t, w.Queues().Send(t.Context(), work, message.Outgoing{Body: "x", Delay: 5 * time.Second}))
			}
			var wg sync.WaitGroup
			var mu sync.Mutex
			after := map[time.Duration]int{}
			began := time.Now()
			for range 5 {
				wg.Go(func() {
					got, err := w.Queues().Receive(t.Context(), work, 1, 20*time.Second, 0)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Error(err)
					}
					if len(got) == 1 {
						after[time.Since(began)]++
					} else {
						after[-time.Since(began)]++
					}
				})
			}
			wg.Wait()
			if after[5*time.Second] != 3 || after[-20*time.Second] != 2 {
				t.Fatalf("they received after %v", after)
			}
		})
	})

	t.Run("receivers that are woken at once look in the order of BeforeReceive", func(t *testing.T) {
		t.Parallel()
		type number struct{}
		ordered := memory.Options{BeforeReceive: func(ctx context.Context, _ string) {
			time.Sleep(time.Duration(5-ctx.Value(number{}).(int)) * time.Millisecond)
		}}
		bubble(t, ordered, func(t *testing.T, w *memory.World) {
			var wg sync.WaitGroup
			got := make([]string, 5)
			for n := range got {
				wg.Go(func() {
					ctx := context.WithValue(t.Context(), number{}, n)
					if ds, err := w.Queues().Receive(ctx, work, 1, 20*time.Second, 0); err == nil && len(ds) == 1 {
						got[n] = ds[0].Body
					}
				})
			}
			synctest.Wait()
			send(t, w, work, "a", "b", "c", "d", "e")
			wg.Wait()
			if all := strings.Join(got, ""); all != "edcba" {
				t.Errorf("they received %q", all)
			}
		})
	})

	t.Run("a receiver that gives up when it is woken leaves the message to another", func(t *testing.T) {
		t.Parallel()
		for range 50 {
			bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
				quits, cancel := context.WithCancel(t.Context())
				got := make(chan int, 2)
				for _, ctx := range []context.Context{quits, t.Context()} {
					go func() {
						ds, _ := w.Queues().Receive(ctx, work, 1, 20*time.Second, time.Hour)
						got <- len(ds)
					}()
					synctest.Wait()
				}
				began := time.Now()
				go cancel()
				go func() { must(t, w.Queues().Send(t.Context(), work, message.Outgoing{Body: "x"})) }()
				if n := <-got + <-got; n != 1 {
					t.Fatalf("together they received %d", n)
				}
				if took := time.Since(began); took != 0 &&
					took != 20*time.Second { // the receiver without a message may use up its wait
					t.Fatalf("it took %s", took)
				}
				if d := depth(t, w, work); d.InFlight != 1 {
					t.Fatalf("the depth is %+v", d)
				}
			})
		}
	})

	t.Run("with 120,000 messages in flight a receive returns none, until one is deleted", func(t *testing.T) {
		t.Parallel()
		bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
			const most = 120_000
			out := make([]message.Outgoing, most+1)
			for n := range out {
				out[n].Body = "x"
			}
			must(t, w.Queues().Send(t.Context(), work, out...))
			var some message.Delivery
			for n := 0; n < most; {
				got, err := w.Queues().Receive(t.Context(), work, 10, 0, time.Hour)
				if err != nil || len(got) == 0 {
					t.Fatalf("after %d: received %d, %v", n, len(got), err)
				}
				n += len(got)
				some = got[0]
			}
			if got := receive(t, w, work, 20*time.Second); len(got) != 0 {
				t.Fatalf("received %d more", len(got))
			}
			go func() {
				time.Sleep(3 * time.Second)
				must(t, w.Queues().Delete(t.Context(), work, some.Receipt))
			}()
			began := time.Now()
			if got := receive(t, w, work, 20*time.Second); len(got) != 1 || time.Since(began) != 3*time.Second {
				t.Fatalf("received %d after %s", len(got), time.Since(began))
			}
		})
	})

	t.Run("a message is deleted when its retention is over", func(t *testing.T) {
		t.Parallel()
		bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
			send(t, w, work, "old")
			time.Sleep(4*24*time.Hour + time.Second)
			send(t, w, work, "new")
			if got := one(t, w, work); got.Body != "new" {
				t.Fatalf("received %+v", got)
			}
		})
	})

	t.Run("a request that SQS refuses is invalid", func(t *testing.T) {
		t.Parallel()
		w := open(t, memory.Options{})
		for _, r := range []struct {
			max              int
			wait, visibility time.Duration
		}{{0, 0, 0}, {11, 0, 0}, {1, 21 * time.Second, 0}, {1, 0, 13 * time.Hour}, {1, -1, 0}} {
			if _, err := w.Queues().Receive(t.Context(), work, r.max, r.wait,
				r.visibility); fault.KindOf(err) != fault.Invalid {
				t.Errorf("receive %+v: %v", r, err)
			}
		}
		if err := w.Queues().Delete(t.Context(), work, "nonsense"); fault.KindOf(err) != fault.Invalid {
			t.Errorf("deleting by a nonsensical receipt: %v", err)
		}
		for _, o := range []message.Outgoing{{Body: "bell \a"}, {Body: "\xff"},
			{Body: "x", Group: strings.Repeat("g", 129)}} {
			if err := w.Queues().Send(t.Context(), work, o); fault.KindOf(err) != fault.Invalid {
				t.Errorf("sending %q: %v", o.Body, err)
			}
		}
	})

	t.Run("a request is billed for each 64 KB begun, and a batch of ten is one request", func(t *testing.T) {
		t.Parallel()
		w := open(t, memory.Options{})
		cost := func(calls, units int64, do func()) {
			t.Helper()
			before := w.Counts()
			do()
			after := w.Counts()
			if c, u := after.QueueCalls-before.QueueCalls, after.QueueUnits-before.QueueUnits; c != calls ||
				u != units {
				t.Errorf("it cost %d calls and %d units, want %d and %d", c, u, calls, units)
			}
		}
		many := make([]message.Outgoing, 11)
		for n := range many {
			many[n].Body = "x"
		}
		var got []message.Delivery
		cost(2, 2, func() { must(t, w.Queues().Send(t.Context(), work, many...)) })
		cost(1, 1, func() { got = receive(t, w, work, 0) })
		cost(1, 1, func() {
			var receipts []string
			for _, d := range got {
				receipts = append(receipts, d.Receipt)
			}
			must(t, w.Queues().Delete(t.Context(), work, receipts...))
		})
		cost(1, 1, func() { receive(t, w, work, 0) })
		cost(1, 1, func() { receive(t, w, work, 0) }) // an empty one costs as well
		cost(1, 3, func() { send(t, w, work, strings.Repeat("x", 130<<10)) })
		cost(1, 3, func() { receive(t, w, work, 0) })
		big := strings.Repeat("x", 600<<10)
		cost(2, 20, func() { // too large to travel together
			must(t, w.Queues().Send(t.Context(), work, message.Outgoing{Body: big}, message.Outgoing{Body: big}))
		})
	})

	t.Run("closing the World ends a wait", func(t *testing.T) {
		t.Parallel()
		bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
			go func() {
				time.Sleep(time.Second)
				w.Close()
			}()
			began := time.Now()
			if _, err := w.Queues().Receive(t.Context(), work, 1, 20*time.Second,
				0); fault.KindOf(err) != fault.Unavailable || time.Since(began) != time.Second {
				t.Fatalf("it ended with %v after %s", err, time.Since(began))
			}
		})
	})
}

func TestQueues_MoveExhaustedMessages(t *testing.T) {
	t.Parallel()

	// exhaust receives a message of the redrive queue as often as the policy allows.
	exhaust := func(t *testing.T, w *memory.World) (last message.Delivery) {
		t.Helper()
		for range contract.DeadLetterMaxReceives {
			last = one(t, w, contract.RedriveQueue)
			giveBack(t, w, contract.RedriveQueue, last)
		}
		if got := receive(t, w, contract.RedriveQueue, 0); len(got) != 0 {
			t.Fatalf("received %v once more", got)
		}
		return last
	}

	t.Run("an exhausted message keeps its id and the time it was sent, and names its source", func(t *testing.T) {
		t.Parallel()
		bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
			send(t, w, contract.RedriveQueue, "letter")
			time.Sleep(time.Hour)
			last := exhaust(t, w)
			dead := one(t, w, contract.DeadLetters)
			if dead.ID != last.ID || dead.Body != "letter" || !dead.SentAt.Equal(last.SentAt) ||
				dead.Source != contract.RedriveQueue {
				t.Fatalf("the dead letter is %+v, was %+v", dead, last)
			}
			if d := depth(t, w, contract.RedriveQueue); d != (message.Depth{}) {
				t.Fatalf("the depth of where it was is %+v", d)
			}
		})
	})

	t.Run("a receive that finds only exhausted messages keeps waiting", func(t *testing.T) {
		t.Parallel()
		bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
			send(t, w, contract.RedriveQueue, "letter")
			for range contract.DeadLetterMaxReceives {
				giveBack(t, w, contract.RedriveQueue, one(t, w, contract.RedriveQueue))
			}
			go func() {
				time.Sleep(4 * time.Second)
				send(t, w, contract.RedriveQueue, "other")
			}()
			began := time.Now()
			if got := receive(t, w, contract.RedriveQueue, 20*time.Second); len(got) != 1 || got[0].Body != "other" ||
				time.Since(began) != 4*time.Second {
				t.Fatalf("received %v after %s", got, time.Since(began))
			}
		})
	})

	t.Run("a move task returns a dead letter to its source as a new message", func(t *testing.T) {
		t.Parallel()
		bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
			send(t, w, contract.RedriveQueue, "letter")
			last := exhaust(t, w)
			time.Sleep(time.Hour)
			if n, err := w.Queues().StartMoveTask(t.Context(), contract.DeadLetters, ""); n != 1 || err != nil {
				t.Fatalf("moved %d, %v", n, err)
			}
			back := one(t, w, contract.RedriveQueue)
			if back.ID == last.ID || back.Body != "letter" || back.Receives != 1 || back.Source != "" ||
				back.SentAt.Sub(last.SentAt) != time.Hour {
				t.Fatalf("it came back as %+v, was %+v", back, last)
			}
			if d := depth(t, w, contract.DeadLetters); d != (message.Depth{}) {
				t.Fatalf("the depth of where it was is %+v", d)
			}
		})
	})

	t.Run("a move task fails at a message sent straight to the dead-letter queue, which keeps it", func(t *testing.T) {
		t.Parallel()
		bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
			send(t, w, contract.RedriveQueue, "letter")
			exhaust(t, w)
			send(t, w, contract.DeadLetters, "sent straight")
			n, err := w.Queues().StartMoveTask(t.Context(), contract.DeadLetters, "")
			if n != 1 || !errors.Is(err, memory.ErrNoSource) || fault.KindOf(err) != fault.Invalid {
				t.Fatalf("moved %d, %v", n, err)
			}
			if d := one(t, w, contract.DeadLetters); d.Body != "sent straight" {
				t.Fatalf("what stays is %+v", d)
			}
			if d := one(t, w, contract.RedriveQueue); d.Body != "letter" {
				t.Fatalf("what came back is %+v", d)
			}
		})
	})

	t.Run("a move task with a destination moves every visible message there", func(t *testing.T) {
		t.Parallel()
		bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
			send(t, w, contract.DeadLetters, "held", "a", "b")
			if _, err := w.Queues().Receive(t.Context(), contract.DeadLetters, 1, 0, time.Hour); err != nil {
				t.Fatal(err)
			}
			if n, err := w.Queues().StartMoveTask(t.Context(), contract.DeadLetters, contract.RedriveQueue); n != 2 ||
				err != nil {
				t.Fatalf("moved %d, %v", n, err)
			}
			if d := depth(t, w, contract.RedriveQueue); d.Visible != 2 {
				t.Fatalf("the destination's depth is %+v", d)
			}
			if d := depth(t, w, contract.DeadLetters); d != (message.Depth{InFlight: 1}) {
				t.Fatalf("the dead-letter queue's depth is %+v", d)
			}
		})
	})

	t.Run("a move task of a queue that is no dead-letter queue is invalid", func(t *testing.T) {
		t.Parallel()
		w := open(t, memory.Options{})
		if _, err := w.Queues().StartMoveTask(t.Context(), work, ""); fault.KindOf(err) != fault.Invalid {
			t.Fatalf("got %v", err)
		}
		if _, err := w.Queues().StartMoveTask(t.Context(), "nowhere", ""); fault.KindOf(err) != fault.NotFound {
			t.Fatalf("got %v", err)
		}
	})
}

func TestQueues_LoseNothingUnderLoad(t *testing.T) {
	t.Parallel()
	t.Run("many receivers receive what many senders send, although each returns some messages", func(t *testing.T) {
		t.Parallel()
		w := open(t, memory.Options{})
		const senders, each = 4, 1000
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for n := range senders {
			go func() {
				for m := range each {
					must(t, w.Queues().Send(ctx, work, message.Outgoing{Body: fmt.Sprintf("%d-%d", n, m)}))
				}
			}()
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		seen := map[string]bool{}
		for range 4 {
			wg.Go(func() {
				for n := 0; ; n++ {
					got, err := w.Queues().Receive(ctx, work, 10, 20*time.Second, time.Hour)
					if err != nil {
						return // the last message ended it
					}
					for i, d := range got {
						if (n+i)%7 == 0 && d.Receives == 1 {
							must(t, w.Queues().SetVisibility(ctx, work, d.Receipt, 0))
							continue
						}
						must(t, w.Queues().Delete(t.Context(), work, d.Receipt))
						mu.Lock()
						if seen[d.Body] {
							t.Errorf("%s came after it was deleted", d.Body)
						}
						seen[d.Body] = true
						if len(seen) == senders*each {
							cancel()
						}
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		if len(seen) != senders*each {
			t.Fatalf("received %d of %d", len(seen), senders*each)
		}
		if d := depth(t, w, work); d != (message.Depth{}) {
			t.Fatalf("left over: %+v", d)
		}
	})
}

package memory_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/tenant"
)

// only returns a hook that gives the fault to call number n of one operation.
func only(op string, n int64, f memory.Fault) func(memory.Call) memory.Fault {
	return func(c memory.Call) memory.Fault {
		if c.Op == op && c.N == n {
			return f
		}
		return memory.Fault{}
	}
}

// calls returns one call of every operation. It makes what they act on.
func calls(t *testing.T, w *memory.World) map[string]func(ctx context.Context) error {
	t.Helper()
	write(t, w, put(row("a"), item.Item{"n": int64(1)}))
	send(t, w, work, "x", "y")
	held := func() message.Delivery {
		got, err := w.Queues().Receive(t.Context(), work, 1, 0, 0)
		must(t, err)
		return got[0]
	}
	deleting, extending := held(), held()
	must(t, w.Blobs().Put(t.Context(), "k", []byte("v")))
	w.Secrets().Put("arn", "v")
	w.TenantQueues().Put("q", contract.AnyTenant)
	w.Functions().Put("f", contract.AnyTenant, func(context.Context, []byte) ([]byte, error) { return nil, nil })
	timer := message.Timer{Name: "j", At: time.Now().Add(time.Hour), Body: "j", MaxAge: time.Hour}
	must(t, w.Timers().Arm(t.Context(), timer))
	timer.Body = "other"
	tb, qs := w.Table(), w.Queues()
	return map[string]func(ctx context.Context) error{
		memory.TableGet: func(ctx context.Context) error { _, err := tb.Get(ctx, row("a")); return err },
		memory.TableGetMany: func(ctx context.Context) error {
			_, err := tb.GetMany(ctx, []item.Ref{row("a")})
			return err
		},
		memory.TableWrite: func(ctx context.Context) error {
			_, err := tb.Write(ctx, put(row("b"), nil))
			return err
		},
		memory.TableCommit: func(ctx context.Context) error {
			return tb.Commit(ctx, put(row("b"), nil), put(row("c"), nil))
		},
		memory.TableQuery: func(ctx context.Context) error {
			_, err := tb.Query(ctx, item.Query{Table: contract.Jobs, PK: "acme#1"})
			return err
		},
		memory.TableScan: func(ctx context.Context) error {
			_, err := tb.Scan(ctx, contract.Jobs, "", 1)
			return err
		},
		memory.TableStream: func(ctx context.Context) error { _, err := tb.Stream(ctx, "", 1, 0); return err },
		memory.QueueSend: func(ctx context.Context) error {
			return qs.Send(ctx, work, message.Outgoing{Body: "z"})
		},
		memory.QueueReceive: func(ctx context.Context) error {
			_, err := qs.Receive(ctx, work, 1, 0, 0)
			return err
		},
		memory.QueueDelete: func(ctx context.Context) error { return qs.Delete(ctx, work, deleting.Receipt) },
		memory.QueueVisibility: func(ctx context.Context) error {
			return qs.SetVisibility(ctx, work, extending.Receipt, 0)
		},
		memory.QueueDepth: func(ctx context.Context) error { _, err := qs.Depth(ctx, work); return err },
		memory.TimerArm:   func(ctx context.Context) error { return w.Timers().Arm(ctx, timer) },
		memory.BlobPut:    func(ctx context.Context) error { return w.Blobs().Put(ctx, "k", []byte("other")) },
		memory.BlobGet:    func(ctx context.Context) error { _, err := w.Blobs().Get(ctx, "k"); return err },
		memory.BlobDelete: func(ctx context.Context) error { return w.Blobs().Delete(ctx, "k") },
		memory.SecretHosts: func(ctx context.Context) error {
			_, _, err := w.Secrets().Hosts(ctx, "arn")
			return err
		},
		memory.SecretResolve: func(ctx context.Context) error {
			_, err := w.Secrets().Resolve(ctx, "arn")
			return err
		},
		memory.FunctionInvoke: func(ctx context.Context) error {
			_, _, err := w.Functions().Invoke(ctx, "f", nil)
			return err
		},
		memory.FunctionAllowed: func(ctx context.Context) error {
			_, err := w.Functions().Allowed(ctx, "f", "acme")
			return err
		},
		memory.TenantQueueSend: func(ctx context.Context) error {
			_, err := w.TenantQueues().Send(ctx, "q", executor.Message{Body: "m"})
			return err
		},
		memory.TenantQueueAllowed: func(ctx context.Context) error {
			_, err := w.TenantQueues().Allowed(ctx, "q", "acme")
			return err
		},
	}
}

// state returns everything that the calls can change.
func state(t *testing.T, w *memory.World) map[string]any {
	t.Helper()
	items, err := w.Table().GetMany(t.Context(), []item.Ref{row("a"), row("b"), row("c")})
	must(t, err)
	body, err := w.Blobs().Get(t.Context(), "k")
	if fault.KindOf(err) != fault.NotFound {
		must(t, err)
	}
	return map[string]any{"items": items, "depth": depth(t, w, work), "armed": w.Timers().Armed(), "blob": body,
		"sent": w.TenantQueues().Sent("q")}
}

func TestFaults_HappenAsPlanned(t *testing.T) {
	t.Parallel()
	changes := map[string]bool{
		memory.TableWrite: true, memory.TableCommit: true, memory.QueueSend: true, memory.QueueReceive: false,
		memory.QueueDelete:     true,
		memory.QueueVisibility: true, memory.TimerArm: true, memory.BlobPut: true,
		memory.BlobDelete: true, memory.TenantQueueSend: true,
	}
	each := func(t *testing.T, try func(t *testing.T, w *memory.World, op string, call func(context.Context) error)) {
		t.Helper()
		for op := range calls(t, open(t, memory.Options{})) {
			t.Run(op, func(t *testing.T) {
				t.Parallel()
				bubble(t, memory.Options{}, func(t *testing.T, w *memory.World) {
					try(t, w, op, calls(t, w)[op])
				})
			})
		}
	}

	t.Run("a call that shall fail returns its kind without effect, and the next one works", func(t *testing.T) {
		t.Parallel()
		each(t, func(t *testing.T, w *memory.World, op string, call func(context.Context) error) {
			before := state(t, w)
			w.SetFaults(only(op, 1, memory.Fault{Fail: fault.Throttled}))
			if err := call(t.Context()); fault.KindOf(err) != fault.Throttled {
				t.Fatalf("got %v", err)
			}
			if after := state(t, w); !reflect.DeepEqual(after, before) {
				t.Errorf("it changed %v to %v", before, after)
			}
			must(t, call(t.Context()))
		})
	})

	t.Run("a call whose answer is lost takes effect", func(t *testing.T) {
		t.Parallel()
		each(t, func(t *testing.T, w *memory.World, op string, call func(context.Context) error) {
			before := state(t, w)
			w.SetFaults(only(op, 1, memory.Fault{Lost: true}))
			if err := call(t.Context()); !fault.Retryable(err) {
				t.Fatalf("got %v", err)
			}
			if after := state(t, w); reflect.DeepEqual(after, before) == changes[op] {
				t.Errorf("%v became %v", before, after)
			}
		})
	})

	t.Run("a call that hangs ends with its context, without effect", func(t *testing.T) {
		t.Parallel()
		each(t, func(t *testing.T, w *memory.World, op string, call func(context.Context) error) {
			before := state(t, w)
			w.SetFaults(only(op, 1, memory.Fault{Hang: true}))
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			began := time.Now()
			if err := call(ctx); fault.KindOf(err) != fault.Unavailable || time.Since(began) != 5*time.Second {
				t.Fatalf("got %v after %s", err, time.Since(began))
			}
			if after := state(t, w); !reflect.DeepEqual(after, before) {
				t.Errorf("it changed %v to %v", before, after)
			}
		})
	})

	t.Run("a call that shall wait takes that long", func(t *testing.T) {
		t.Parallel()
		each(t, func(t *testing.T, w *memory.World, op string, call func(context.Context) error) {
			w.SetFaults(only(op, 1, memory.Fault{Wait: 3 * time.Second}))
			began := time.Now()
			must(t, call(t.Context()))
			if took := time.Since(began); took != 3*time.Second {
				t.Fatalf("it took %s", took)
			}
		})
	})

	t.Run("entries of a send that fail are named by index in the call, and the others are sent", func(t *testing.T) {
		t.Parallel()
		w := open(t, memory.Options{})
		w.SetFaults(only(memory.QueueSend, 2, memory.Fault{Entries: map[int]fault.Kind{11: fault.Throttled}}))
		out := make([]message.Outgoing, 12)
		for n := range out {
			out[n].Body = "x"
		}
		err := w.Queues().Send(t.Context(), work, out...)
		var unsent *message.Unsent
		if !errors.As(err, &unsent) || len(unsent.Failed) != 1 || fault.KindOf(unsent.Failed[11]) != fault.Throttled ||
			!fault.Retryable(err) {
			t.Fatalf("got %v", err)
		}
		if d := depth(t, w, work); d.Visible != 11 {
			t.Fatalf("the depth is %+v", d)
		}
	})

	t.Run("a write that happens twice returns the second answer", func(t *testing.T) {
		t.Parallel()
		w := open(t, memory.Options{})
		w.SetFaults(only(memory.TableWrite, 1, memory.Fault{Twice: true}))
		once := put(row("a"), item.Item{"n": int64(1)})
		once.When = []item.All{{{Attr: "n", Op: item.Missing}}}
		_, err := w.Table().Write(t.Context(), once)
		if refused := new(item.Refused); !errors.As(err, &refused) || refused.Olds[0].Int("n") != 1 {
			t.Fatalf("got %v", err)
		}
	})

	t.Run("a send that happens twice makes two messages", func(t *testing.T) {
		t.Parallel()
		w := open(t, memory.Options{})
		w.SetFaults(only(memory.QueueSend, 1, memory.Fault{Twice: true}))
		send(t, w, work, "x")
		if got := receive(t, w, work, 0); len(got) != 2 || got[0].Body != got[1].Body || got[0].ID == got[1].ID {
			t.Fatalf("received %+v", got)
		}
	})

	t.Run("a receive that happens twice gives the same message to two receivers", func(t *testing.T) {
		t.Parallel()
		w := open(t, memory.Options{})
		w.SetFaults(only(memory.QueueReceive, 1, memory.Fault{Twice: true}))
		send(t, w, work, "x")
		first, second := one(t, w, work), one(t, w, work)
		if first.ID != second.ID || first.Receipt == second.Receipt || second.Receives != 2 {
			t.Fatalf("received %+v and %+v", first, second)
		}
		must(t, w.Queues().Delete(t.Context(), work, second.Receipt))
		if d := depth(t, w, work); d != (message.Depth{}) {
			t.Fatalf("left over: %+v", d)
		}
	})

	t.Run("a stream read that happens twice returns a record twice", func(t *testing.T) {
		t.Parallel()
		w := open(t, memory.Options{})
		write(t, w, put(row("a"), nil))
		w.SetFaults(only(memory.TableStream, 1, memory.Fault{Twice: true}))
		if changes, err := w.Table().Stream(t.Context(), "", 10, 0); err != nil || len(changes) != 2 ||
			changes[0].Seq != changes[1].Seq {
			t.Fatalf("it tells %v, %v", changes, err)
		}
	})

	t.Run("the hook gets the operation, its subject and the number of the call", func(t *testing.T) {
		t.Parallel()
		w := open(t, memory.Options{})
		var seen []memory.Call
		w.SetFaults(func(c memory.Call) memory.Fault { seen = append(seen, c); return memory.Fault{} })
		write(t, w, put(row("a"), nil), put(row("b"), nil))
		send(t, w, work, "x")
		want := []memory.Call{
			{Op: memory.TableWrite, N: 1, Ref: row("a"), Name: "test.put"},
			{Op: memory.TableWrite, N: 2, Ref: row("b"), Name: "test.put"},
			{Op: memory.QueueSend, N: 1, Name: work, Size: 1},
		}
		if !reflect.DeepEqual(seen, want) {
			t.Fatalf("it saw %+v", seen)
		}
	})
}

func TestFunctions_AnswerOrFail(t *testing.T) {
	t.Parallel()
	w := open(t, memory.Options{})
	fs := w.Functions()
	fs.Put("ours", "acme", func(_ context.Context, input []byte) ([]byte, error) {
		return append([]byte("got "), input...), nil
	})
	fs.Put("broken", contract.AnyTenant, func(context.Context, []byte) ([]byte, error) {
		return nil, errors.New("no luck")
	})

	t.Run("a function returns its output, or its failure without an error of the call", func(t *testing.T) {
		t.Parallel()
		if out, failed, err := fs.Invoke(t.Context(), "ours", []byte("x")); string(out) != "got x" || failed != "" ||
			err != nil {
			t.Errorf("answered %q, %q, %v", out, failed, err)
		}
		if out, failed, err := fs.Invoke(t.Context(), "broken", nil); string(out) != "no luck" ||
			failed != "Unhandled" || err != nil {
			t.Errorf("answered %q, %q, %v", out, failed, err)
		}
		if _, _, err := fs.Invoke(t.Context(), "absent", nil); fault.KindOf(err) != fault.NotFound {
			t.Errorf("answered %v", err)
		}
	})

	t.Run("a function can be invoked by its owner, or by anyone", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			name    string
			tenant  tenant.ID
			allowed bool
		}{{"ours", "acme", true}, {"ours", "other", false}, {"broken", "other", true}} {
			if ok, err := fs.Allowed(t.Context(), c.name, c.tenant); ok != c.allowed || err != nil {
				t.Errorf("%s for %s: %v, %v", c.name, c.tenant, ok, err)
			}
		}
		if _, err := fs.Allowed(t.Context(), "absent", "acme"); fault.KindOf(err) != fault.NotFound {
			t.Errorf("answered %v", err)
		}
	})
}

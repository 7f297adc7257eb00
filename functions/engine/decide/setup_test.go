package decide_test

import (
	"testing"
	"time"

	"punctual/functions/engine/decide"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// bundle is a Waker over the memory twins; its time is the synctest bubble's.
type bundle struct {
	*testing.T
	w     *memory.World
	store *store.Store
	waker *decide.Waker
	meter *telemetry.Meter
}

func setup(t *testing.T) *bundle {
	w := memory.New(memory.Options{EmptyPages: true}) // an empty page is not the end, wherever something is listed
	t.Cleanup(w.Close)
	b := &bundle{T: t, w: w, store: store.New(w.Table(), w.Blobs()), meter: new(telemetry.Meter)}
	b.waker = b.another()
	return b
}

// another is a second process: it shares nothing with the first but the world.
func (b *bundle) another() *decide.Waker {
	return decide.New(decide.Deps{Store: b.store, Queue: b.w.Queues(), Clock: clock.System{}, Log: telemetry.Silent(), Meter: b.meter})
}

// put stores a row as it is and returns it.
func (b *bundle) put(r job.Row) job.Row {
	b.Helper()
	if err := b.store.Put(b.Context(), item.Write{Ref: r.Ref(), Name: "test.put", Put: r.Item()}); err != nil {
		b.Fatal(err)
	}
	return r
}

// overdue puts job n, which became due ago, waited for nobody and is found by the sweeper now.
func (b *bundle) overdue(n int, ago time.Duration, change ...func(*job.Row)) job.Row {
	b.Helper()
	due := time.Now().Add(-ago)
	return b.put(jobtest.Row(n, due, due.Add(-time.Second), change...))
}

func (b *bundle) row(k job.Key) job.Row {
	b.Helper()
	r, err := b.store.Row(b.Context(), k)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func (b *bundle) claim(k job.Key) job.Claim {
	b.Helper()
	c, err := b.store.Claim(b.Context(), k)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func (b *bundle) write(w item.Write) {
	b.Helper()
	if err := b.store.Put(b.Context(), w); err != nil {
		b.Fatal(err)
	}
}

// own makes a worker claim the job's attempt for a lease from now.
func (b *bundle) own(r job.Row, lease time.Duration) job.Claim {
	b.Helper()
	b.write(job.ClaimNew(r.Key, r.Attempt, job.Owner{Worker: "w1", Nonce: "n1", LeaseUntil: time.Now().Add(lease), DueAt: r.DueAt}))
	return b.claim(r.Key)
}

func (b *bundle) pause(scope string, until time.Time) {
	b.Helper()
	p := job.Pause{Scope: scope, Since: time.Now(), EffectiveAt: time.Now(), Until: until}
	ref := job.PauseRef(jobtest.Tenant, scope)
	b.write(item.Write{Ref: ref, Name: "test.pause", Put: p.Item(jobtest.Tenant)})
}

func (b *bundle) lift(scope string) {
	b.Helper()
	b.write(item.Write{Ref: job.PauseRef(jobtest.Tenant, scope), Name: "test.lift", Delete: true})
}

// drain takes everything visible off a queue.
func (b *bundle) drain(queue string) []message.Delivery {
	b.Helper()
	var all []message.Delivery
	for {
		got, err := b.w.Queues().Receive(b.Context(), queue, 10, 0, 0)
		if err != nil {
			b.Fatal(err)
		}
		if len(got) == 0 {
			return all
		}
		for _, d := range got {
			if err := b.w.Queues().Delete(b.Context(), queue, d.Receipt); err != nil {
				b.Fatal(err)
			}
		}
		all = append(all, got...)
	}
}

const firingQueue = "firing-short-normal"

// firings drains the firing queue.
func (b *bundle) firings() []message.Firing {
	b.Helper()
	var all []message.Firing
	for _, d := range b.drain(firingQueue) {
		f, err := message.Decode[message.Firing](d.Body)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, f)
	}
	return all
}

// requireFired says that exactly this firing of r was sent.
func (b *bundle) requireFired(r job.Row) {
	b.Helper()
	got := b.firings()
	if len(got) != 1 || got[0] != r.Firing().Message() {
		b.Fatalf("fired %+v, want one firing of attempt %d", got, r.Attempt)
	}
}

func (b *bundle) requireSilence() {
	b.Helper()
	for _, queue := range []string{firingQueue, contract.ReportQueue, contract.RedriveQueue, contract.DispatchQueue} {
		if got := b.drain(queue); len(got) != 0 {
			b.Fatalf("%s holds %s", queue, got[0].Body)
		}
	}
}

// entry is how the due index lists a row.
func entry(r job.Row) store.Entry {
	return store.Entry{Key: r.Key, Version: r.Version, Attempt: r.Attempt, Pool: r.Pool, Priority: string(r.Priority), DueAt: r.DueAt, WakeAt: r.WakeAt}
}

// sweep brings the row on as the sweeper does, and says what it came to.
func (b *bundle) sweep(r job.Row) job.Step {
	b.Helper()
	step, err := b.waker.Entry(b.Context(), entry(r))
	if err != nil {
		b.Fatal(err)
	}
	return step
}

func (b *bundle) requireStep(got, want job.Step) {
	b.Helper()
	if got != want {
		b.Fatalf("the step was %q, want %q", got, want)
	}
}

// once calls do before the first write of that name, while the caller of it knows nothing yet.
func (b *bundle) once(write string, do func()) {
	done := false
	b.w.SetFaults(func(c memory.Call) memory.Fault {
		if !done && c.Name == write {
			done = true
			do()
		}
		return memory.Fault{}
	})
}

// failSends makes the queue refuse for now.
func (b *bundle) failSends(queue string) {
	b.w.SetFaults(func(c memory.Call) memory.Fault {
		if c.Op == memory.QueueSend && c.Name == queue {
			return memory.Fault{Fail: fault.Unavailable}
		}
		return memory.Fault{}
	})
}

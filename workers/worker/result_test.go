package worker

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/workers/executor"
)

// large is a result that a claim does not carry.
var large = `"` + strings.Repeat("x", 3*contract.MaxClaimResult) + `"`

func (b *bench) gives(result string) {
	b.then(func(context.Context, executor.Work) (json.RawMessage, error) { return json.RawMessage(result), nil })
}

func putsResult(c memory.Call) bool { return c.Op == memory.BlobPut }

//proof:of 70
func TestResult_LargerThanTheClaimCarriesIsStoredBeforeTheOutcome(t *testing.T) {
	within(t, func(b *bench) {
		b.gives(large)
		stored := 0
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			if putsResult(c) {
				stored++
			}
			if stagetest.Writes(job.WriteClaimOutcome)(c) && stored == 0 {
				t.Error("the outcome was recorded first")
			}
			return memory.Fault{}
		})
		b.start("a")
		r := b.put(0)
		b.fire(r, 0)
		b.sleep(time.Second)
		o := b.outcomes()
		if len(o) != 1 || o[0].ResultRef != "1.1" || o[0].Result != nil || o[0].Partial != job.Whole {
			t.Fatalf("recorded %+v", o)
		}
		d, err := job.Settle(&r, 1, o[0], time.Now())
		if err != nil || len(d.Contents) != 0 {
			t.Fatalf("settling moves %d contents, %v", len(d.Contents), err)
		}
		if got, err := b.Store.Result(t.Context(), d.After); err != nil || got != large {
			t.Errorf("the row has a result of %d bytes, %v", len(got), err)
		}
		if err := b.Store.ForgetContents(t.Context(), d.After); err != nil {
			t.Fatal(err)
		}
		if keys := b.World.Blobs().Keys(contract.JobBlobs); len(keys) != 0 {
			t.Errorf("left behind: %v", keys)
		}
	})
}

func TestResult_OfAFencedWorkerIsNeverReadAsAnothers(t *testing.T) {
	within(t, func(b *bench) {
		mine, others := `"mine`+large[1:], `"others`+large[1:]
		b.then(func(_ context.Context, w executor.Work) (json.RawMessage, error) {
			if w.Token == 1 {
				time.Sleep(2 * time.Minute) // it ignores the end of its lease
				return json.RawMessage(others), nil
			}
			return json.RawMessage(mine), nil
		})
		_, kill := b.killable("a")
		r := b.put(0, func(r *job.Row) { r.Timeout = time.Hour })
		b.fire(r, 0)
		b.sleep(5 * time.Second)
		kill()
		b.start("b")
		b.sleep(5 * time.Minute)
		o := b.outcomes()
		if len(o) != 1 || o[0].ResultRef != "1.2" {
			t.Fatalf("recorded %+v", o)
		}
		// What the first worker writes, late, has a name of its own.
		if err := b.Store.PutResult(t.Context(), r.Key, job.ResultRef(1, 1), []byte(others)); err != nil {
			t.Fatal(err)
		}
		d, err := job.Settle(&r, 1, o[0], time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := b.Store.Result(t.Context(), d.After); err != nil || got != mine {
			t.Errorf("the row has a result of %d bytes, %v", len(got), err)
		}
	})
}

func TestResult_IsStoredAgainWhenThatFailed(t *testing.T) {
	within(t, func(b *bench) {
		b.gives(large)
		b.FaultFirst(1, putsResult, memory.Fault{Fail: fault.Unavailable})
		b.start("a")
		b.fire(b.put(0), 0)
		b.sleep(time.Second)
		if o := b.outcomes(); len(o) != 1 || o[0].ResultRef == "" || b.started() != 1 {
			t.Errorf("recorded %+v after %d starts", o, b.started())
		}
	})
}

func TestResult_ThatCannotBeStoredIsMarkedAndTheWorkIsNotDoneAgain(t *testing.T) {
	for name, kind := range map[string]fault.Kind{"for a time": fault.Unavailable,
		"for want of a grant": fault.Forbidden} {
		t.Run("a result that cannot be stored "+name, func(t *testing.T) {
			within(t, func(b *bench) {
				b.gives(large)
				b.Fault(putsResult, memory.Fault{Fail: kind})
				b.start("a")
				b.start("b")
				b.fire(b.put(0), 0)
				b.sleep(5 * time.Minute)
				o := b.outcomes()
				if len(o) != 1 || o[0].Kind != job.OutcomeSucceeded || o[0].Partial != job.PartialLost ||
					!strings.HasPrefix(string(o[0].Result), `{"truncated":true`) || b.started() != 1 {
					t.Errorf("recorded %+v after %d starts", o, b.started())
				}
			})
		})
	}
}

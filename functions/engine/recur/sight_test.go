package recur_test

import (
	"testing"
	"time"

	"punctual/functions/engine/scan"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/memory"
	"punctual/shared/store"
)

//proof:of F10
func TestRecurrer_ForgetsNoSchedule(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(b *bench, ref item.Ref){
		"that cannot be read": func(b *bench, ref item.Ref) {
			b.Spoil(ref)
		},
		"that cannot be promoted": func(b *bench, ref item.Ref) {
			b.Fault(stagetest.On(memory.TableGet, ref), memory.Fault{Fail: fault.Forbidden})
		},
	} {
		bubble(t, "a schedule "+name+" has a later wake-up, and is promoted then", func(b *bench) {
			s := b.put()
			trouble(b, s.Ref())
			var came scan.Counter
			slice, at := s.Slice(), time.Now()
			if s.WakeAt.After(at) {
				at = s.WakeAt
			}
			if err := b.engine.Recur.Slice(b.Context(), slice, time.Time{}, &came); err != nil ||
				came.Counts()["promoted"] != 0 {
				b.Fatalf("came to %v, %v", came.Counts(), err)
			}
			b.World.SetFaults(nil)
			b.Write(item.Write{Ref: s.Ref(), Name: "test.mend", Set: map[string]any{"schema_v": int64(1)}})
			after, err := b.Store.Schedule(b.Context(), s.Key)
			if err != nil || !after.WakeAt.Equal(at.Add(contract.RetryEvery)) {
				b.Fatalf("it wakes at %s, %v", after.WakeAt, err)
			}
			due, _, err := b.Store.DueSchedules(b.Context(), store.DueQuery{Slice: after.Slice()})
			if err != nil || len(due) != 1 {
				b.Fatalf("in its new slice: %v, %v", due, err)
			}
			if err := b.engine.Recur.Slice(b.Context(), after.Slice(), time.Time{}, &came); err != nil ||
				came.Counts()["promoted"] != 1 {
				b.Errorf("came to %v, %v", came.Counts(), err)
			}
		})
	}
}

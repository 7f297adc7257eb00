package backfill_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"punctual/functions/engine"
	"punctual/shared/job"
	"punctual/shared/operation"
)

// announcing is a process that announces events.
func (b *bench) announcing() *engine.Engine {
	base := b.ProcessBase()
	base.Announced = true
	return engine.New(engine.Deps{Base: base, Store: b.Store, Queue: b.World.Queues()})
}

// sent are the statuses that the events of an operation say, each delivered by one job.
func (b *bench) sent(k operation.Key) (statuses []operation.Status) {
	b.Helper()
	for _, e := range b.Delivered() {
		if e.Type == "punctual.operation.ended" && e.Subject == "operation/"+string(k.ID) {
			var data struct{ Status operation.Status }
			b.Must(json.Unmarshal(e.Data, &data))
			statuses = append(statuses, data.Status)
		}
	}
	return statuses
}

// A process crashes at every call between the end of the last job of a backfill and the delivery.
func TestBackfiller_LosesNoEventByACrash(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		bubble(t, fmt.Sprintf("lost answers: %v", lost), func(b *bench) {
			b.Subscribe("operation.*")
			var k operation.Key
			var r job.Row
			e := b.announcing()
			prepare := func(int) {
				k = b.begin(1, func(o *operation.Operation) { o.Repeat = true })
				r = b.end(b.open(k)[0], job.Succeeded)
				e = b.announcing()
			}
			b.Crashes(lost, prepare, func() error { return e.Ended(b.Context(), r) }, func(n int) {
				for range 2 {
					_, _, err := b.announcing().Operation(b.Context(), k, func() bool { return true })
					b.Must(err)
				}
				if got := b.sent(k); len(got) != 1 || got[0] != operation.Succeeded || len(b.read(k).Ends) != 0 {
					b.Errorf("crashed at call %d: sent %v, pending %v", n, got, b.read(k).Ends)
				}
			})
		})
	}
}

package worker

import (
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/memory"
)

//proof:of 124
func TestReports_TravelInBatchesWithoutNeedlessWait(t *testing.T) {
	within(t, func(b *bench) {
		sends, first := 0, time.Time{}
		b.Each(stagetest.To(memory.QueueSend, contract.ReportQueue), func(memory.Call) {
			b.mu.Lock()
			if sends++; first.IsZero() {
				first = time.Now()
			}
			b.mu.Unlock()
		})
		b.start("a", options(func(o *Options) { o.Slots, o.Hold = 200, 400 }))
		lone := b.put(time.Second)
		b.fire(lone, 0)
		for range 200 {
			b.fire(b.put(4*time.Second), time.Second)
		}
		b.sleep(3 * time.Second)
		if wait := first.Sub(lone.DueAt); wait < 0 || wait > contract.ReportFlushEvery+10*time.Millisecond {
			t.Errorf("the report of a lone job was sent after %s", wait)
		}
		b.sleep(10 * time.Second)
		if got := len(b.outcomes()); got != 201 {
			t.Fatalf("%d of 201 jobs were reported", got)
		}
		if sends > 1+200/10+5 {
			t.Errorf("201 reports took %d sends, ten fit into one", sends)
		}
	})
}

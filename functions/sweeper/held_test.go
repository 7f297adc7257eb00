package sweeper_test

import (
	"slices"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/telemetry"
)

func TestSweeper_DoesNothingWithARestoredTable(t *testing.T) {
	t.Parallel()
	bubble(t, "fires no overdue job of a restored table until it is released", func(b *bench) {
		b.sweep()
		b.lost(1, lost)
		b.World.Table().Restored(contract.Jobs)
		for range 3 {
			if sum := b.sweep(); !slices.Equal(sum.Held, []string{"jobs"}) || sum.Slices > 0 {
				b.Errorf("the pass came to %+v", sum)
			}
			time.Sleep(time.Minute)
		}
		if n := len(b.Fired()); n > 0 {
			b.Errorf("fired %d", n)
		}
		if n := b.Meter.Total(telemetry.TablesHeld); n != 1 {
			b.Errorf("the metric says %v", n)
		}
		is, err := b.World.Table().Identity(b.Context(), contract.Jobs)
		b.Must(err)
		b.Write(item.Write{
			Ref:  item.Ref{Table: contract.Tasks, PK: "system#setting", SK: "tables"},
			Name: "test.lift", Set: map[string]any{contract.Jobs: is.ID},
		})
		b.sweepFor(3 * time.Minute)
		if n := len(b.Fired()); n != 1 {
			b.Errorf("fired %d once it may", n)
		}
		if n := b.Meter.Total(telemetry.TablesHeld); n != 0 {
			b.Errorf("the metric says %v once it may", n)
		}
	})
	bubble(t, "an outage of days is not taken for a restored table", func(b *bench) {
		b.sweep()
		b.lost(1, lost)
		time.Sleep(4 * 24 * time.Hour)
		if sum := b.sweep(); len(sum.Held) > 0 {
			b.Errorf("held %v", sum.Held)
		}
	})
}

package promoter_test

import (
	"slices"
	"testing"
	"time"

	"punctual/shared/contract"
)

func TestPromoter_DoesNothingWithARestoredTable(t *testing.T) {
	t.Parallel()
	bubble(t, "asks for no slice of a restored table", func(b *bench) {
		b.promote()
		b.Due(1, 20*time.Minute)
		b.World.Table().Restored(contract.Jobs)
		if sum := b.promote(); !slices.Equal(sum.Held, []string{"jobs"}) || sum.Slices > 0 {
			b.Errorf("the pass came to %+v", sum)
		}
		b.RequireAsked()
	})
}

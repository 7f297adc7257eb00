package memory

import (
	"sync/atomic"

	"punctual/shared/item"
)

// counts adds up what AWS would bill.
type counts struct {
	tableCalls, queueCalls, queueUnits              atomic.Int64
	timerCalls, timersFired, blobCalls, secretCalls atomic.Int64
}

// units counts in half units, the price of an eventually consistent read.
type units struct{ write, indexWrite, read atomic.Int64 }

// Counts returns what AWS would have billed so far.
func (w *World) Counts() item.Counts {
	c := item.Counts{
		Tables:     map[string]item.Units{},
		TableCalls: w.counts.tableCalls.Load(), QueueCalls: w.counts.queueCalls.Load(),
		QueueUnits: w.counts.queueUnits.Load(),
		TimerCalls: w.counts.timerCalls.Load(), TimersFired: w.counts.timersFired.Load(),
		BlobCalls: w.counts.blobCalls.Load(), SecretCalls: w.counts.secretCalls.Load(),
	}
	for name, t := range w.table.spaces {
		c.Tables[name] = item.Units{
			Write:      float64(t.units.write.Load()) / 2,
			IndexWrite: float64(t.units.indexWrite.Load()) / 2,
			Read:       float64(t.units.read.Load()) / 2,
		}
	}
	return c
}

// begun returns how many pieces of that size a number of bytes needs, at least one.
func begun(bytes, piece int) int64 { return int64(max(1, (bytes+piece-1)/piece)) }

// writeCost returns the cost of a write that replaces old bytes by next bytes, in half units.
func writeCost(old, next int) int64 { return 2 * begun(max(old, next), 1<<10) }

// readCost returns the cost of a strongly consistent read, in half units.
func readCost(bytes int) int64 { return 2 * begun(bytes, 4<<10) }

// queueCall counts one request with that many bytes.
func (w *World) queueCall(bytes int) {
	w.counts.queueCalls.Add(1)
	w.counts.queueUnits.Add(begun(bytes, 64<<10))
}

package worker

import (
	"crypto/rand"
	"encoding/hex"
	"time"

	"punctual/shared/contract"
)

// Options is how much a worker does at once. The zero Options serve the pool "short" with 25 slots.
type Options struct {
	// Name is the worker's name in claims and attempts; it must be its own. Default: a random one.
	Name string
	// Pools are the pools served, each with slots of its own: no job waits for those of another
	// pool. Default: short.
	Pools []string
	// Slots is how many attempts of each pool run at once. An attempt takes its slot when it is
	// claimed, at most 500 ms before it is due. Default 25.
	Slots int
	// Reserve is how many of a pool's slots only critical jobs may take. Default: a tenth, at least one
	// from four slots on. Negative: none.
	Reserve int
	// Hold is how many messages of each pool may be held for their due time, or for a slot, beyond
	// those in slots. Firings come two to three seconds early, so a worker needs about three seconds' worth.
	// Up to 10 for each queue may come too many. About 1 KB each. Default: 20 for each slot.
	Hold int
	// Drain is how long running attempts may go on once Run's context has ended. What then still
	// runs is cancelled and given back, which takes up to 5 s more. Default 25 s.
	Drain time.Duration
	// Poll is how long a receive waits for a message, up to 20 s. The last receives before
	// shutting down are waited for, because a broken-off one may take messages out of sight;
	// so this must stay under 5 s for messages to be back that soon. Default 4 s.
	Poll time.Duration
	// Version is what the worker says it is in the list of workers; "" for unknown.
	Version string
	// Seen says whether the worker notes each contract.WorkerSeenEvery that it works, so that it is listed.
	Seen bool
	// CancelCheck is how often a running attempt looks for a cancel between its heartbeats, which bring one too.
	// Default contract.CancelCheckEvery. Each costs half a read unit; in one process it is free, and may be shorter.
	CancelCheck time.Duration
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "worker-" + newNonce()
	}
	if len(o.Pools) == 0 {
		o.Pools = []string{contract.DefaultPool}
	}
	if o.Slots <= 0 {
		o.Slots = 25
	}
	switch {
	case o.Reserve < 0:
		o.Reserve = 0
	case o.Reserve == 0 && o.Slots >= 4:
		o.Reserve = max(1, o.Slots/10)
	}
	o.Reserve = min(o.Reserve, o.Slots-1)
	if o.Hold <= 0 {
		o.Hold = 20 * o.Slots
	}
	if o.Drain <= 0 {
		o.Drain = 25 * time.Second
	}
	if o.Poll <= 0 {
		o.Poll = 4 * time.Second
	}
	if o.CancelCheck <= 0 {
		o.CancelCheck = contract.CancelCheckEvery
	}
	return o
}

// newNonce names one receive of one message. Two never meet.
func newNonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

package message

import (
	"context"
	"time"
)

// Queues are queues as the product uses them, by their logical names.
type Queues interface {
	Sender
	Receiver
	Depths
}

// Sender sends messages.
type Sender interface {
	// Send sends any number of messages. Those that the queue did not take after retries come as an *Unsent, by
	// index.
	Send(ctx context.Context, queue string, out ...Outgoing) error
}

// Receiver receives messages and answers for them.
type Receiver interface {
	Visibility
	// Receive returns at most max (≤ 10) messages and waits up to wait (≤ 20 s) for the first; none is no error.
	// visibility 0 is the queue's default.
	Receive(ctx context.Context, queue string, max int, wait, visibility time.Duration) ([]Delivery, error)
	// Delete deletes received messages for good. Deleting twice is no error.
	Delete(ctx context.Context, queue string, receipts ...string) error
}

// Visibility is the time for which a received message is hidden.
type Visibility interface {
	// SetVisibility makes a received message visible once more after d, from now on.
	SetVisibility(ctx context.Context, queue, receipt string, d time.Duration) error
}

// Depths says how full queues are.
type Depths interface {
	// Depth returns about how many messages a queue holds.
	Depth(ctx context.Context, queue string) (Depth, error)
}

// Timers send messages to the dispatch queue at a time.
type Timers interface {
	// Arm makes a one-shot timer that sends Body to the dispatch queue within the minute of At, and replaces the one
	// of that name. A past At is a fault.Invalid.
	Arm(ctx context.Context, t Timer) error
}

package memory

import (
	"context"
	"errors"

	"punctual/shared/fault"
)

// ErrNoSource is in the error of a move task that meets a message without a source queue: it was
// sent straight to the dead-letter queue, not moved there by a redrive policy.
var ErrNoSource = errors.New("CouldNotDetermineMessageSource")

// StartMoveTask does what the console's redrive does: it moves the visible messages of a
// dead-letter queue to dest, or with dest "" to the queue each of them came from. It returns how
// many it moved. A moved message is a new one: new id, new enqueue time, never received, no source.
// With dest "", a message without a source ends the task with a fault.Invalid and [ErrNoSource];
// what was moved before stays moved.
func (qs *Queues) StartMoveTask(ctx context.Context, dlq, dest string) (int, error) {
	from, err := qs.of(dlq)
	if err != nil {
		return 0, err
	}
	if dest != "" {
		if _, err := qs.of(dest); err != nil {
			return 0, err
		}
	}
	if !from.source {
		return 0, fault.New(fault.Invalid, nil, "moving messages of %s: it is no queue's dead-letter queue", dlq)
	}
	if err := ctx.Err(); err != nil {
		return 0, fault.New(fault.Unavailable, err, "moving messages of %s", dlq)
	}
	now := qs.world.now()
	from.mu.Lock()
	from.ripen(now)
	if qs.world.log != nil {
		qs.world.log.mu.Lock()
	}
	var moving []*stored
	for range from.visible {
		l := from.pop()
		if dest == "" && l.source == "" {
			err = fault.New(fault.Invalid, ErrNoSource, "moving messages of %s back", dlq)
			from.show(l)
			break
		}
		from.forget(l)
		if qs.world.log != nil {
			from.leaving[l.id] = l
		}
		moving = append(moving, l)
	}
	qs.world.done()
	from.mu.Unlock()
	for n, l := range moving {
		to := qs.queues[dest]
		if dest == "" {
			to = qs.queues[l.source]
		}
		moved := arrival{stored: &stored{body: l.body, group: l.group, sentAt: now.UTC()}}
		if err := qs.move(to, now, []arrival{moved}, from, []*stored{l}); err != nil {
			return n, fault.New(fault.Unavailable, err, "moving messages of %s", dlq)
		}
	}
	return len(moving), err
}

package limits

import (
	"context"
	"time"

	"punctual/functions/engine/effect"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/limit"
	"punctual/shared/message"
	"punctual/shared/store"
)

// Waking says which of the jobs that wait for a permit of a key are to be decided about.
type Waking struct {
	Wake  []effect.Wake     // those that may start now
	Later *message.Outgoing // has the others decided about later; nil for nothing
}

const (
	// wokenAtOnce is how many jobs one call wakes, at most.
	wokenAtOnce = 64
	// indexLag is after which time an index that showed no waiting job is read once more: it may be late.
	indexLag = 2 * time.Second
	// unmarkAfter is how old a mark must be to be removed. It is longer than the index is late and than any invocation
	// takes to put a job among those that wait.
	unmarkAfter = time.Minute
)

// Next finds the jobs that may start now of those that wait for a permit of a key, in their order.
func (l *Limits) Next(ctx context.Context, k limit.Key) (waking Waking, err error) {
	now := l.Clock.Now()
	s, found, err := l.read(ctx, k, "")
	if err != nil {
		return waking, err
	}
	free := wokenAtOnce
	if found {
		if s.running() {
			if err := l.freeLost(ctx, &s, now); err != nil {
				return waking, err
			}
		}
		free = s.free(wokenAtOnce, now)
	}
	if free == 0 {
		return l.recheckLater(ctx, &s, now)
	}
	waiting, err := l.Store.LimitWaiters(ctx, k, free+1)
	if err != nil {
		return waking, err
	}
	for _, w := range waiting[:min(len(waiting), free)] {
		waking.Wake = append(waking.Wake, effect.Wake{Jobs: []job.Key{w.Key}})
	}
	switch {
	case len(waiting) > free && free == wokenAtOnce:
		waking.Later = ask(k, now, 0)
	case len(waiting) > free && found && s.limit.Rate.Count > 0:
		more, err := l.recheckLater(ctx, &s, now)
		waking.Later = more.Later
		return waking, err
	case len(waiting) == 0 && (!found || s.marked()):
		return waking, l.unmark(ctx, &s, now, &waking)
	}
	return waking, nil
}

// recheckLater has those that wait decided about when the rate lets the next one start. Where all permits are held, the
// end of a holder does that.
func (l *Limits) recheckLater(ctx context.Context, s *state, now time.Time) (waking Waking, err error) {
	if s.running() || s.limit.Rate.Count == 0 {
		return waking, nil
	}
	at := s.window.Next(s.limit.Rate, now).Add(-limit.Soon)
	if !at.After(now) {
		at = now.Add(limit.Soon)
	}
	err = l.Store.Put(ctx, s.key.RecheckAt(at, now))
	if store.Refused(err) != nil {
		return waking, nil // another process has asked for that by then
	}
	if err == nil {
		waking.Later = ask(s.key, now, at.Sub(now))
	}
	return waking, err
}

// unmark removes the mark of a key for which the index shows no waiting job, or has the index read once more.
func (l *Limits) unmark(ctx context.Context, s *state, now time.Time, waking *Waking) error {
	head, err := l.Store.Waiting(ctx, s.key)
	if err != nil || head.Mark.IsZero() {
		return err
	}
	if age := now.Sub(head.Mark); age < unmarkAfter {
		in := indexLag
		if age > 5*indexLag {
			in = unmarkAfter - age
		}
		err := l.Store.Put(ctx, s.key.RecheckAt(now.Add(in), now))
		if store.Refused(err) != nil {
			return nil
		}
		waking.Later = ask(s.key, now, in)
		return err
	}
	if err := l.Store.Put(ctx, s.key.Unmark(head.Mark)); err != nil && store.Refused(err) == nil {
		return err
	}
	return nil
}

// ask is the message that has those decided about that wait for a permit of a key.
func ask(k limit.Key, now time.Time, in time.Duration) *message.Outgoing {
	d := message.Ask(message.Verb{Limit: &message.LimitKey{Tenant: string(k.Tenant), Limit: k.Name, Key: k.Key}})
	d.At = now.Add(in)
	return &message.Outgoing{
		Body: message.Encode(d), Delay: min(in.Truncate(time.Second), contract.MaxDelay), Group: string(k.Tenant),
	}
}

package events

import (
	"context"
	"sync"

	"punctual/functions/engine/accept"
	"punctual/functions/engine/notify"
	"punctual/shared/event"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/message"
	"punctual/shared/process"
)

// Deps is what the stage needs.
type Deps struct {
	process.Base
	Store notify.Store
	Queue message.Sender
}

// Stage announces events. It is safe for concurrent use.
type Stage struct {
	Deps
	notify *notify.Notifier
}

// New returns the stage.
func New(d Deps) *Stage {
	d.Base = d.WithDefaults()
	return &Stage{
		Deps: d,
		notify: notify.New(notify.Deps{Base: d.Base, Store: d.Store,
			Accept: accept.New(accept.Deps{Base: d.Base, Jobs: d.Store, Queue: d.Queue})}),
	}
}

// atOnce is how many records are handled at the same time.
const atOnce = 16

// Changes announces the events of these changes. It returns one error for each, in their order.
func (s *Stage) Changes(ctx context.Context, changes []item.Change) []error {
	errs := make([]error, len(changes))
	free := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for n, c := range changes {
		if !event.MayMatter(c) {
			continue
		}
		free <- struct{}{}
		all.Go(func() {
			errs[n] = fault.Guard(func() error { return s.change(ctx, c) })
			<-free
		})
	}
	all.Wait()
	return errs
}

func (s *Stage) change(ctx context.Context, of item.Change) error {
	c, err := event.ReadChange(of)
	if err != nil {
		return err
	}
	if c.New.Delivery() {
		return s.notify.Attempted(ctx, c)
	}
	for _, e := range event.Of(c) {
		if err := s.notify.Announce(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

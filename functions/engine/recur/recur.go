package recur

import (
	"context"
	"time"

	"punctual/functions/engine/accept"
	"punctual/functions/engine/arm"
	"punctual/functions/engine/notify"
	"punctual/functions/engine/pause"
	"punctual/shared/cache"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/process"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// Deps is what a Recurrer needs.
type Deps struct {
	process.Base
	Store Store
	Queue message.Sender
	// Notify announces the events of schedules. Nil: a Notifier of its own.
	Notify *notify.Notifier
}

// Recurrer promotes schedules, and says what they want of their jobs. It is safe for concurrent use.
type Recurrer struct {
	Deps
	accept    *accept.Acceptor
	pauses    *pause.Pauses
	schedules *cache.Cache[schedule.Key, schedule.Schedule]
}

// New returns a Recurrer.
func New(d Deps) *Recurrer {
	d.Base = d.WithDefaults()
	acceptor := accept.New(accept.Deps{Base: d.Base, Jobs: d.Store, Queue: d.Queue})
	if d.Notify == nil {
		d.Notify = notify.New(notify.Deps{Base: d.Base, Store: d.Store, Accept: acceptor})
	}
	return &Recurrer{
		Deps: d, accept: acceptor,
		pauses: pause.New(d.Store.PausesOf, d.Clock),
		schedules: cache.New[schedule.Key](cache.Options[schedule.Schedule]{
			Age: pause.FactAge, Most: pause.MaxFacts, Now: d.Clock.Now,
		}),
	}
}

// Promoted says what a promotion did.
type Promoted struct {
	Made     int `json:"made,omitempty"`     // new jobs
	Adopted  int `json:"adopted,omitempty"`  // jobs of an older epoch
	Recorded int `json:"recorded,omitempty"` // nominal times recorded in the ledger
	Held     bool
}

// Reread makes the next promotion read a tenant's pauses from the table; the caller knows that one has just changed.
func (r *Recurrer) Reread(t tenant.ID) { r.pauses.Drop(t) }

// Unpark asks dispatch to decide about the jobs that a pause of the schedule has parked. The caller has resumed the
// schedule.
func (r *Recurrer) Unpark(ctx context.Context, s schedule.Schedule) error {
	var out []message.Outgoing
	for _, ask := range arm.Unpark(s.Tenant) {
		out = append(out, message.Outgoing{Group: string(s.Tenant), Body: message.Encode(ask)})
	}
	return r.Queue.Send(ctx, contract.DispatchQueue, out...)
}

// Ask is the message that asks dispatch to promote a schedule, not before at.
func Ask(k schedule.Key, at time.Time) message.Dispatch {
	ask := message.Ask(message.Verb{Promote: &message.Schedule{Tenant: string(k.Tenant), Schedule: k.Name}})
	ask.At = at
	return ask
}

// keyOf names the schedule that the row belongs to.
func keyOf(r job.Row) schedule.Key { return schedule.KeyOfJob(r) }

// known returns a schedule as it was at most a second ago.
func (r *Recurrer) known(ctx context.Context, k schedule.Key) (schedule.Schedule, error) {
	return r.schedules.Get(ctx, k,
		func(ctx context.Context) (schedule.Schedule, error) { return r.Store.Schedule(ctx, k) })
}

// unlessRefused returns nil for a refusal: another process has done the same, or undone it.
func unlessRefused(err error) error {
	if store.Refused(err) != nil {
		return nil
	}
	return err
}

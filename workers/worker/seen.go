package worker

import (
	"cmp"
	"context"
	"runtime/debug"
	"time"

	"punctual/shared/contract"
	"punctual/shared/store"
)

// seenTime bounds one note that the worker works.
const seenTime = 3 * time.Second

// BuildVersion returns the version of this program, with the commit that it was built from; "" if it is not known.
func BuildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return cmp.Or(info.Main.Version, "(devel)")
}

// noteSeen begins to note that the worker works: at once, regularly, and when it starts to drain. A note that fails is
// left to the next. ended notes that the worker has ended.
func (w *Worker) noteSeen() (ended func()) {
	began := w.clock.Now()
	over, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		every := time.NewTicker(contract.WorkerSeenEvery)
		defer every.Stop()
		draining, drains := w.draining, false
		for {
			w.noteOnce(began, drains)
			select {
			case <-over:
				return
			case <-draining:
				draining, drains = nil, true
			case <-every.C:
			}
		}
	}()
	return func() {
		close(over)
		<-stopped
		w.noteEnd()
	}
}

// noteOnce notes what each pool does now.
func (w *Worker) noteOnce(began time.Time, draining bool) {
	ctx, cancel := context.WithTimeout(w.ctx, seenTime)
	defer cancel()
	for _, in := range w.intake {
		err := w.store.SeeWorker(ctx, store.Worker{
			Name: w.opts.Name, Pool: in.pool(), Version: w.opts.Version, StartedAt: began, SeenAt: w.clock.Now(),
			Slots: w.opts.Slots, Busy: in.taken(), Draining: draining,
		})
		if err != nil {
			w.fault("noting that the worker works", err)
		}
	}
}

// noteEnd notes the end of the worker, for all its pools.
func (w *Worker) noteEnd() {
	ctx, cancel := context.WithTimeout(w.ctx, seenTime)
	defer cancel()
	for _, in := range w.intake {
		if err := w.store.EndWorker(ctx, w.opts.Name, in.pool(), w.clock.Now()); err != nil {
			w.fault("noting that the worker has ended", err)
		}
	}
}

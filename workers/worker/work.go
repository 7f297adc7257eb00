package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"punctual/shared/contract"
)

// drainCalls is how long the calls that let go of attempts may take after drainGrace.
const drainCalls = 3 * time.Second

// Run works until ctx ends, and then drains: it stops polling at once, gives back what it holds,
// lets running attempts finish within Options.Drain, cancels and gives back what does not, sends
// what is left to report, and returns nil. It returns an error at once if a pool is unknown.
func (w *Worker) Run(ctx context.Context) error {
	for _, pool := range w.opts.Pools {
		if !slices.Contains(contract.Pools, pool) {
			return fmt.Errorf("starting worker %s: pool %q is unknown; there are %v", w.opts.Name, pool, contract.Pools)
		}
	}
	var stop context.CancelFunc
	w.ctx, stop = context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	var polling, flushing sync.WaitGroup
	for _, in := range w.intake {
		for _, s := range in.sources {
			polling.Go(func() { w.poll(s) })
		}
		polling.Go(func() { w.admit(in) })
	}
	flushing.Go(w.reports.run)
	w.log.Info("started working", "pools", w.opts.Pools, "slots", w.opts.Slots)

	if w.opts.Seen {
		ended := w.noteSeen()
		defer ended()
	}

	<-ctx.Done()
	w.drain(&polling)

	w.reports.close()
	flushing.Wait()
	w.deletes.flush()
	w.log.Info("stopped working")
	return nil
}

// drain stops taking work, and returns once nothing runs any more.
func (w *Worker) drain(polling *sync.WaitGroup) {
	w.log.Info("started draining", "slots_busy", w.intake.taken())
	close(w.draining)
	w.giveAllBack(w.intake.close())

	ended := make(chan struct{})
	go func() {
		polling.Wait() // or one more attempt could start
		w.attempts.Wait()
		close(ended)
	}()
	budget := time.NewTimer(w.opts.Drain)
	defer budget.Stop()
	select {
	case <-ended:
		return
	case <-budget.C:
	}
	w.log.Warn("gave up on running attempts", "slots_busy", w.intake.taken())
	close(w.over)
	last := time.NewTimer(drainGrace + drainCalls)
	defer last.Stop()
	select {
	case <-ended:
	case <-last.C:
	}
}

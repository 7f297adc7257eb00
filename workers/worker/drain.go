package worker

import (
	"sync"
	"time"
)

const (
	// drainGrace is how long a cancelled handler may take to return before it is given up.
	drainGrace = 2 * time.Second
	// drainCalls is how long the calls that let go of attempts may take after that.
	drainCalls = 3 * time.Second
	// backAtOnce is how many messages are given back at the same time.
	backAtOnce = 64
)

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

// giveAllBack makes messages visible at once.
func (w *Worker) giveAllBack(all []*firing) {
	var calls sync.WaitGroup
	next := make(chan *firing)
	for range min(len(all), backAtOnce) {
		calls.Go(func() {
			for f := range next {
				w.giveBack(f, 0)
			}
		})
	}
	for _, f := range all {
		next <- f
	}
	close(next)
	calls.Wait()
}

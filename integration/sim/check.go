package sim

import (
	"context"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/tenant"
)

// Settle waits at most that long until nothing is left to do, and returns how long it took.
func (w *World) Settle(most time.Duration) time.Duration {
	from := time.Now()
	for {
		open := w.unsettled()
		took := time.Since(from)
		if open == "" {
			return took
		}
		if took > most {
			w.violation("after %s it has not come to rest: %s", most, open)
			return took
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// unsettled names something that is not finished, "" if everything is.
func (w *World) unsettled() string {
	dead := 0
	for _, r := range w.ledger.all() {
		switch {
		case !r.Status.Final():
			return "job " + short(r.ID) + " is " + string(r.Status)
		case r.PendingEffects != job.NoPendingEffects:
			return "job " + short(r.ID) + " has pending effects " + string(r.PendingEffects)
		case r.Status == job.Dead && r.RedrivenBy == "" && r.Kind().IsJob():
			dead++
		}
	}
	if goes := w.ledger.unfinished(); goes != "" {
		return goes
	}
	if goes := w.goesOn(); goes != "" {
		return goes
	}
	switch {
	case w.holds(contract.RedriveQueue) > 0:
		return "dead letters are still in the redrive queue"
	case w.holds(contract.DeadLetters) < dead:
		return "dead letters have not reached their queue"
	}
	return ""
}

// holds returns how many messages a queue holds.
func (w *World) holds(queue string) int {
	d, _ := w.memory.Queues().Depth(context.Background(), queue) // the implementation without faults returns no error
	return d.Visible + d.InFlight + d.Delayed
}

// Check verifies what must hold when the world has settled.
func (w *World) Check() {
	ctx := context.Background()
	for slice := range w.ledger.slices {
		page, err := w.ledger.Table.Query(ctx, item.Query{Table: contract.Jobs, Index: contract.DueIndex, PK: slice})
		if err != nil || len(page.Items) > 0 {
			w.violation("the due index still holds %v in %s (%v)", page.Items, slice, err)
		}
	}
	letters := w.deadLetters()
	children := map[job.Key][]job.Row{}
	for _, r := range w.ledger.all() {
		if r.RedriveOf != "" {
			of := job.Key{Tenant: r.Tenant, ID: r.RedriveOf}
			children[of] = append(children[of], r)
		}
	}
	for _, r := range w.ledger.all() {
		w.checkRow(r, letters[r.Key], children[r.Key])
	}
	w.checkSchedules()
	aside, _ := w.memory.Queues().Receive(ctx, contract.FiringDead, 10, 0, time.Second)
	for _, d := range aside {
		if d.Source == "" && w.ledger.distrusted() {
			continue // a stream record of an item that could not be read
		}
		if w.faults() > 1 {
			break // with random faults a message may fail ten times; what it reports is recorded
		}
		w.violation("a message of %q sent at %s was set aside after %d receives: %s", d.Source, clockTime(d.SentAt),
			d.Receives, d.Body)
	}
}

func (w *World) checkRow(r job.Row, letters int, children []job.Row) {
	succeeded := 0
	for _, run := range w.runs(r.Key) {
		if !run.to.IsZero() && run.err == nil && run.attempt == r.Attempt {
			succeeded++
		}
	}
	claim := w.ledger.claim(r.Key)
	if w.faults() == 0 && !w.poison && !w.rerun { // nothing went wrong, so nothing may happen twice
		seen := map[int64]bool{}
		for _, run := range w.runs(r.Key) {
			if seen[run.attempt] {
				w.violation("attempt %d of %s was run twice for no reason", run.attempt, short(r.ID))
			}
			seen[run.attempt] = true
		}
		if letters > 1 {
			w.violation("job %s has %d messages in the dead-letter queue for no reason", short(r.ID), letters)
		}
	}
	switch {
	case !r.Status.Final():
		w.violation("job %s is still %s", short(r.ID), r.Status)
	case !r.Kind().IsJob(), r.Forced != job.NotForced: // it is no job, or an operator has ended it
	case w.carried(r) && len(w.runs(r.Key)) == 0:
	case r.Status == job.Succeeded && succeeded == 0:
		w.violation("job %s is SUCCEEDED, but no run of attempt %d was", short(r.ID), r.Attempt)
	case r.Status == job.Succeeded && claim.Outcome == nil:
		w.violation("job %s is SUCCEEDED without an outcome on record", short(r.ID))
	case r.Status == job.Cancelled && r.CancelRequestedAt.IsZero() && !r.InRun() && r.Parents == "":
		w.violation("job %s is CANCELLED, and nobody asked for it", short(r.ID))
	case r.Status == job.Dead && !w.poison && (r.Reason.Code == job.CodePoison &&
		w.lostWorkers() < contract.MaxTakeovers || r.Reason.Code == job.CodeUnknownTask):
		w.violation("job %s is DEAD of %s", short(r.ID), r.Reason.Code)
	case r.Status == job.Dead && r.RedrivenBy == "" && letters == 0:
		w.violation("job %s is DEAD and its dead letter is not in its queue", short(r.ID))
	}
	w.showsStarts(r)
	w.startedIsNotUnstarted(r)
	w.expiresInTime(r)
	switch {
	case len(children) > 1:
		w.violation("job %s was brought back %d times", short(r.ID), len(children))
	case len(children) == 1 && (r.RedrivenBy != children[0].ID || children[0].HandlerKey() != r.HandlerKey()):
		w.violation("job %s says redriven by %s with key %s; that is %s with key %s", short(r.ID), r.RedrivenBy,
			r.HandlerKey(), children[0].ID, children[0].HandlerKey())
	case len(children) == 0 && r.RedrivenBy != "":
		w.violation("job %s says redriven by %s, which is not there", short(r.ID), r.RedrivenBy)
	}
}

// startsShown is how many starts of one attempt a job shows at least: beyond these the oldest are forgotten.
const startsShown = 10

// deadlineBound is how long after its deadline a job that waits has ended.
const deadlineBound = 65 * time.Second

// expiresInTime verifies that what waited past its deadline ended soon after it, where no fault held that up.
func (w *World) expiresInTime(r job.Row) {
	at, over := w.ledger.overAt(r.Key)
	by := r.Deadline()
	if r.Status != job.Expired || !over || by.IsZero() || len(w.runs(r.Key)) > 0 || w.faults() > 0 || w.o.Disturbed {
		return
	}
	if late := at.Sub(by); late > deadlineBound {
		w.violation("job %s expired %s after its deadline", short(r.ID), late)
	}
}

// startedIsNotUnstarted verifies that no job whose handler was started ended as one that never started: only that ends
// by start_within, or by a rule, an edit or a delete of its schedule.
func (w *World) startedIsNotUnstarted(r job.Row) {
	starts := len(w.runs(r.Key))
	switch {
	case starts == 0:
	case r.Status == job.Expired && r.Reason.Code == job.CodeStartWithin,
		r.Status == job.Skipped && r.Forced == job.NotForced:
		w.violation("job %s was started %d times and is %s (%s), as if it had never started", short(r.ID), starts,
			r.Status, r.Reason.Code)
	case r.Retry.FailOnLost && r.Attempt == 1 && starts == 1 && r.CancelRequestedAt.IsZero() && !r.InRun() &&
		r.Status != job.Succeeded && r.Status != job.Dead:
		w.violation("job %s fails with its worker, was started once and is %s", short(r.ID), r.Status)
	}
}

// showsStarts verifies that every start of a job is among its attempts, whatever became of its worker.
func (w *World) showsStarts(r job.Row) {
	started := map[int64]int{}
	for _, run := range w.runs(r.Key) {
		started[run.attempt]++
	}
	if len(started) == 0 || r.IsMapped() {
		return
	}
	entries, _, err := w.behindTheScenes().Attempts(context.Background(), r, 0, 1000)
	if err != nil {
		w.violation("reading the attempts of job %s: %v", short(r.ID), err)
	}
	shown := map[int64]int{}
	for _, a := range entries {
		if !a.StartedAt.IsZero() {
			shown[a.Attempt]++
		}
	}
	for attempt, n := range started {
		if shown[attempt] < min(n, startsShown) {
			w.violation("attempt %d of job %s (%s) was started %d times, and its attempts show %d", attempt,
				short(r.ID), r.Status, n, shown[attempt])
		}
	}
}

// lostWorkers returns how many workers have died or frozen with a claim.
func (w *World) lostWorkers() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, what := range w.struck {
		if strings.Contains(what, " at worker/") &&
			(strings.HasPrefix(what, "crash") || strings.HasPrefix(what, string(Freeze))) {
			n++
		}
	}
	return n
}

// deadLetters counts the messages in the dead-letter queue, by job. They stay there.
func (w *World) deadLetters() map[job.Key]int {
	ctx, qs := context.Background(), w.memory.Queues()
	count := map[job.Key]int{}
	for {
		got, err := qs.Receive(ctx, contract.DeadLetters, 10, 0, time.Second)
		if err != nil || len(got) == 0 {
			break
		}
		for _, d := range got {
			l, err := message.Decode[message.DeadLetter](d.Body)
			if err != nil {
				w.violation("a dead letter cannot be read: %v", err)
			}
			if d.Source != contract.RedriveQueue {
				w.violation("a dead letter came from %q, so that it cannot be redriven to its source", d.Source)
			}
			count[job.Key{Tenant: tenant.ID(l.Tenant), ID: job.ID(l.JobID)}]++
		}
	}
	time.Sleep(2 * time.Second)
	return count
}

// Redrive moves dead letters back, as the console's default redrive does.
func (w *World) Redrive() int {
	n, err := w.memory.Queues().StartMoveTask(context.Background(), contract.DeadLetters, "")
	if err != nil {
		w.violation("redriving: %v", err)
	}
	return n
}

// OnTime verifies that every run started within most of its due time.
func (w *World) OnTime(most time.Duration) {
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	for _, r := range w.history.runs {
		if r.late > most {
			w.violation("attempt %d of %s started %s late", r.attempt, short(r.ID), r.late)
		}
	}
}

// Is verifies that a job ended in one of the statuses, at that attempt (0: any).
func (w *Client) Is(id job.ID, attempt int64, statuses ...job.Status) {
	if id == "" {
		return // a violation of its request is already noted
	}
	r, ok := w.row(id)
	if !ok {
		w.violation("job %s was acknowledged and is not there", short(id))
		return
	}
	good := false
	for _, s := range statuses {
		good = good || r.Status == s
	}
	if !good || attempt > 0 && r.Attempt != attempt {
		w.violation("job %s is %s at attempt %d (%s), want %v at attempt %d", short(id), r.Status, r.Attempt,
			r.Reason.Code, statuses, attempt)
	}
}

// Ran verifies how often a job's handler was started, without attempts of crashed processes.
func (w *Client) Ran(id job.ID, times int) {
	n := 0
	for _, r := range w.of(id) {
		if !r.process.dead.Load() {
			n++
		}
	}
	if n != times {
		w.violation("job %s ran %d times, want %d", short(id), n, times)
	}
}

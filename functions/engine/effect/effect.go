package effect

import (
	"punctual/shared/job"
	"punctual/shared/limit"
	"punctual/shared/message"
	"punctual/shared/run"
)

// List is what a call leaves to be done. The zero List is nothing.
type List struct {
	Ended     []End       // jobs that are final
	Over      []Over      // runs whose schedules are to be notified of the end, or whose events are to be announced
	Wake      []Wake      // parked jobs to be decided about
	Freed     []limit.Key // of whose permits some were given back while jobs wait
	Made      []job.Row   // jobs of backfills that have ended
	Reconcile []run.Key   // runs to be reconciled once all the rest is done
}

// End is a job that has become final.
type End struct {
	Row job.Row
	// Counted says that the end was counted before: this call repeats what follows it.
	Counted bool
	// Unopened says that the row was made as an ended one. It is not counted, and if its dead letter cannot be sent,
	// that is left to its wake-up.
	Unopened bool
	// Notified says that only the dead letter of the job is missing.
	Notified bool
	// Later has the children of the job evaluated in an invocation of its own.
	Later bool
	// Freed says that its permits were given back already.
	Freed bool
}

// Over is a run that has ended, or an event of which is to be announced.
type Over struct {
	Run run.Run
	// Repeated says that the run was read so: an earlier call may have crashed before its schedule was notified.
	Repeated bool
}

// Wake asks to decide about the first of some parked jobs whose row can be read.
type Wake struct {
	Jobs []job.Key
	// Else is what dispatch is asked for if none of them can be read; nil for nothing.
	Else *message.Outgoing
}

// Add appends what another call leaves to be done.
func (l *List) Add(more List) {
	l.Ended = append(l.Ended, more.Ended...)
	l.Over = append(l.Over, more.Over...)
	l.Wake = append(l.Wake, more.Wake...)
	l.Freed = append(l.Freed, more.Freed...)
	l.Made = append(l.Made, more.Made...)
	l.Reconcile = append(l.Reconcile, more.Reconcile...)
}

// End appends jobs that have just become final.
func (l *List) End(rows ...job.Row) {
	for _, row := range rows {
		l.Ended = append(l.Ended, End{Row: row})
	}
}

// Empty says that there is nothing to do.
func (l *List) Empty() bool {
	return len(l.Ended) == 0 && len(l.Over) == 0 && len(l.Wake) == 0 && len(l.Freed) == 0 && len(l.Made) == 0 &&
		len(l.Reconcile) == 0
}

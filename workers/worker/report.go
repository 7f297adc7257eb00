package worker

import (
	"punctual/shared/message"
)

// add queues a report; it waits while too many do. When the worker has ended meanwhile the report
// is not sent, the message not deleted, and its redelivery repeats the report.
func (r *reports) add(report message.Report, then *firing) {
	select {
	case r.in <- note{r.outgoing(report), then}:
	case <-r.w.ctx.Done():
	}
}

// try queues a report that can wait for another time; false: too many wait already.
func (r *reports) try(report message.Report) bool { return r.tryThen(report, nil) }

// tryThen is try for a report after which a message may be deleted.
func (r *reports) tryThen(report message.Report, then *firing) bool {
	select {
	case r.in <- note{r.outgoing(report), then}:
		return true
	default:
		return false
	}
}

func (r *reports) outgoing(report message.Report) message.Outgoing {
	report.V, report.Worker = message.V, r.w.opts.Name
	return message.Outgoing{Body: message.Encode(report), Group: report.Tenant}
}

// close ends run after what was added is sent, or cannot be.
func (r *reports) close() { close(r.hurry) }

package worker

import (
	"context"
	"errors"
	"time"

	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/store"
)

const (
	// logTime bounds the writes of lines while the attempt runs.
	logTime = 5 * time.Second
	// logLast bounds those of the last lines, after which the slot is free.
	logLast = 2 * time.Second
	// logBefore is how long the report of an attempt waits for its last lines, so that readers who see the end can
	// read them.
	logBefore = 500 * time.Millisecond
	// logRetry is when lines are written once more that could not be written.
	logRetry = 200 * time.Millisecond
)

// logWriter writes the lines of a start to the store. A line that it cannot write is lost at the end of the attempt,
// which it neither delays nor changes.
type logWriter struct {
	w     *Worker
	row   *job.Row
	lines *lines
	pages job.LogPages
	turn  chan struct{} // has a value while no writes are under way
}

func newLogWriter(w *Worker, row *job.Row, start job.LogStart, mark func() string) *logWriter {
	l := &logWriter{w: w, row: row, lines: newLines(mark), turn: make(chan struct{}, 1),
		pages: job.LogPages{Start: start}}
	l.turn <- struct{}{}
	return l
}

// flush writes what is new, within that time. Lines that could not be written count as new again.
func (l *logWriter) flush(most time.Duration) error {
	ctx, cancel := context.WithTimeout(l.w.ctx, most)
	defer cancel()
	select {
	case <-l.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { l.turn <- struct{}{} }()
	text := l.lines.text()
	until := job.LogUntil(*l.row, l.w.clock.Now())
	for {
		write, ok := l.pages.Next(text, until)
		if !ok {
			return nil
		}
		if err := l.w.store.Put(ctx, write.Write); err != nil && store.Refused(err) == nil {
			return err
		}
		l.pages.Stored(write)
	}
}

// running writes lines while the attempt runs.
func (l *logWriter) running() {
	if err := l.flush(logTime); err != nil {
		l.w.fault("writing the log of an attempt", err)
		select {
		case l.lines.grown <- struct{}{}:
		default:
		}
	}
}

// last writes the last lines, and closes the channel that it returns when that has ended.
func (l *logWriter) last() <-chan struct{} {
	l.lines.end()
	over := make(chan struct{})
	if l.lines.text().Head == "" {
		close(over)
		return over
	}
	go func() {
		defer close(over)
		deadline := time.Now().Add(logLast)
		for {
			err := l.flush(time.Until(deadline))
			if err == nil {
				return
			}
			if errors.Is(err, context.DeadlineExceeded) || !fault.Retryable(err) ||
				time.Until(deadline) < 2*logRetry {
				l.w.fault("writing the end of an attempt's log", err)
				return
			}
			waitFor(l.w.ctx.Done(), logRetry)
		}
	}()
	return over
}

// waitFor waits for a channel to be closed, for that time at most.
func waitFor(over <-chan struct{}, most time.Duration) {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-over:
	case <-t.C:
	}
}

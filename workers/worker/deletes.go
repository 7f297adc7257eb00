package worker

import (
	"context"
	"time"

	"punctual/shared/contract"
)

func (d *deletes) add(f *firing) {
	d.mu.Lock()
	queue := f.source.queue
	d.waiting[queue] = append(d.waiting[queue], f.receipt)
	var full []string
	if len(d.waiting[queue]) >= receiveMost {
		full = d.waiting[queue]
		delete(d.waiting, queue)
	} else if !d.timed {
		d.timed = true
		time.AfterFunc(contract.ReportFlushEvery, d.all)
	}
	d.mu.Unlock()
	if full != nil {
		d.delete(queue, full)
	}
}

// flush deletes what waits, and returns when that is done.
func (d *deletes) flush() {
	d.all()
	d.calls.Wait()
}

func (d *deletes) all() {
	d.mu.Lock()
	waiting := d.waiting
	d.waiting, d.timed = map[string][]string{}, false
	d.mu.Unlock()
	for queue, receipts := range waiting {
		d.delete(queue, receipts)
	}
}

func (d *deletes) delete(queue string, receipts []string) {
	d.callSlots <- struct{}{}
	d.calls.Go(func() {
		defer func() { <-d.callSlots }()
		ctx, cancel := context.WithTimeout(d.w.ctx, flushLast)
		defer cancel()
		if err := d.w.queues.Delete(ctx, queue, receipts...); err != nil {
			d.w.fault("deleting messages of "+queue, err)
		}
	})
}

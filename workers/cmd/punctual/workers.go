package main

import "punctual/shared/client/rest"

type listWorkers struct {
	Queues bool `help:"List the queues in place of the workers."`
}

// Run lists the workers or the queues.
func (c listWorkers) Run(s *shell) error {
	found, err := s.client.Workers(s.ctx)
	if err != nil {
		return err
	}
	if c.Queues {
		return list(s, given(found.Queues), 0, queueName, queueColumns...)
	}
	return list(s, given(found.Items), 0, workerName, workerColumns...)
}

// given iterates over values that were read already.
func given[T any](values []T) func(yield func(T, error) bool) {
	return func(yield func(T, error) bool) {
		for _, v := range values {
			if !yield(v, nil) {
				return
			}
		}
	}
}

func workerName(w rest.WorkerView) string { return w.Worker }

var workerColumns = []column[rest.WorkerView]{
	{"WORKER", workerName},
	{"POOL", func(w rest.WorkerView) string { return w.Pool }},
	{"BUSY", func(w rest.WorkerView) string { return count(w.Busy) + "/" + count(w.Slots) }},
	{"STATE", func(w rest.WorkerView) string {
		if w.Draining {
			return "draining"
		}
		return "working"
	}},
	{"STARTED", func(w rest.WorkerView) string { return instant(&w.StartedAt) }},
	{"SEEN", func(w rest.WorkerView) string { return instant(&w.SeenAt) }},
	{"VERSION", func(w rest.WorkerView) string { return w.Version }},
}

func queueName(q rest.QueueView) string { return q.Pool + "-" + q.Priority }

var queueColumns = []column[rest.QueueView]{
	{"POOL", func(q rest.QueueView) string { return q.Pool }},
	{"PRIORITY", func(q rest.QueueView) string { return q.Priority }},
	{"WAITING", func(q rest.QueueView) string { return count(q.Waiting) }},
	{"DELAYED", func(q rest.QueueView) string { return count(q.Delayed) }},
	{"OLDEST S", func(q rest.QueueView) string { return countOrNone(q.OldestS) }},
}

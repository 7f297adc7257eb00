package arm

import (
	"context"
	"sync"

	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/message"
)

// Slices asks dispatch to read slices at their time. It is safe for concurrent use; the zero Slices with a Queue
// is ready.
type Slices struct {
	Queue message.Sender
	asked Recent
}

// Ask asks for each slice, unless this process has asked before, and returns one error for each. Asking twice
// does no harm: the slice has one timer.
func (s *Slices) Ask(ctx context.Context, slices []horizon.Slice) []error {
	errs := make([]error, len(slices))
	of := map[horizon.Slice][]int{}
	var todo []horizon.Slice
	for i, slice := range slices {
		if s.Asked(slice) {
			continue
		}
		if of[slice] == nil {
			todo = append(todo, slice)
		}
		of[slice] = append(of[slice], i)
	}
	out := make([]message.Outgoing, len(todo))
	for n, slice := range todo {
		out[n] = job.AskSlice(slice)
	}
	for n, err := range Send(ctx, s.Queue, contract.DispatchQueue, out) {
		if err == nil {
			s.asked.Add(todo[n].String())
		}
		for _, i := range of[todo[n]] {
			errs[i] = err
		}
	}
	return errs
}

// Asked says whether this process has asked for a slice.
func (s *Slices) Asked(slice horizon.Slice) bool { return s.asked.Has(slice.String()) }

// Recent remembers at least the last 50,000 names, which is more than all slices of the horizon. Forgetting one is
// harmless: it is asked for twice.
type Recent struct {
	mu       sync.Mutex
	new, old map[string]struct{}
}

const generation = 50_000

// Has says whether a name was added and is not forgotten yet.
func (r *Recent) Has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, isNew := r.new[name]
	_, isOld := r.old[name]
	return isNew || isOld
}

// Add remembers a name.
func (r *Recent) Add(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.new == nil || len(r.new) >= generation {
		r.new, r.old = make(map[string]struct{}), r.new
	}
	r.new[name] = struct{}{}
}

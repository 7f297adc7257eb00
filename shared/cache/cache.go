package cache

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// Options says how a cache is set up.
type Options[V any] struct {
	// Age is how old an answer may be. 0: it never grows too old.
	Age time.Duration
	// Most is how many answers are kept; with Weigh it is their weight together. At least 1.
	Most int
	// Weigh says how heavy an answer is. Nil: each weighs 1. An answer that is heavier than Most
	// is returned and not kept.
	Weigh func(V) int
	// RetryAfter says for how long an error is the answer to all who ask for its key, by how many
	// reads of the key have failed in a row, from 1. Nil: every Get after an error reads.
	RetryAfter func(failures int) time.Duration
	// Now returns the time. Nil: time.Now, whose monotonic reading no change of the clock touches.
	Now func() time.Time
}

// Cache keeps answers by key. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	options Options[V]

	mu      sync.Mutex
	entries map[K]*entry[K, V]
	order   list.List        // of *entry, by the time they were read, oldest first
	weight  int              // of all entries
	flights map[K]*flight[V] // reads that later askers may wait for
}

// entry is what is known of a key.
type entry[K comparable, V any] struct {
	key     K
	value   V
	at      time.Time // when the read of value began
	read    bool      // there is a value
	weight  int
	element *list.Element

	err      error // of the last read
	failures int   // in a row
	until    time.Time
}

// flight is a read that is going on.
type flight[V any] struct {
	at      time.Time // when it began
	done    chan struct{}
	value   V
	err     error
	decided bool // value or err is an answer to everybody; false: the reader gave up
}

// New returns an empty cache.
func New[K comparable, V any](o Options[V]) *Cache[K, V] {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Weigh == nil {
		o.Weigh = func(V) int { return 1 }
	}
	o.Most = max(o.Most, 1)
	return &Cache[K, V]{options: o, entries: map[K]*entry[K, V]{}, flights: map[K]*flight[V]{}}
}

// Get returns the answer of a key, or reads it. read is called with ctx.
func (c *Cache[K, V]) Get(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	v, _, err := c.Within(ctx, key, c.options.Age, read)
	return v, err
}

// Within is Get for an answer whose read began less than age ago, whatever Options.Age says; 0
// takes one of any age. It also returns when the read began.
func (c *Cache[K, V]) Within(
	ctx context.Context, key K, age time.Duration, read func(context.Context) (V, error),
) (V, time.Time, error) {
	asked := c.options.Now()
	for {
		c.mu.Lock()
		now := c.options.Now()
		e, f := c.entries[key], c.flights[key]
		switch {
		case e != nil && e.read && younger(e.at, now, age):
			v, at := e.value, e.at
			c.mu.Unlock()
			return v, at, nil
		case e != nil && e.err != nil && now.Before(e.until):
			err := e.err
			c.mu.Unlock()
			return *new(V), time.Time{}, err
		case f == nil:
			f = &flight[V]{at: now, done: make(chan struct{})}
			c.flights[key] = f
			c.mu.Unlock()
			c.fly(ctx, key, f, read)
			return f.answer()
		}
		c.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return *new(V), time.Time{}, context.Cause(ctx)
		}
		if f.decided && (younger(f.at, asked, age) || !f.at.Before(asked)) {
			return f.answer()
		}
	}
}

func (f *flight[V]) answer() (V, time.Time, error) {
	if f.err != nil {
		return *new(V), time.Time{}, f.err
	}
	return f.value, f.at, nil
}

// younger says whether what was read at that time is younger than age.
func younger(at, now time.Time, age time.Duration) bool { return age == 0 || now.Sub(at) < age }

// fly reads and keeps the answer. The others go on however read ends, also by a panic.
func (c *Cache[K, V]) fly(ctx context.Context, key K, f *flight[V], read func(context.Context) (V, error)) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.flights[key] == f { // else the key was dropped meanwhile
			delete(c.flights, key)
			if f.decided {
				c.keep(key, f)
			}
		}
		close(f.done)
	}()
	f.value, f.err = read(ctx)
	f.decided = f.err == nil || !errors.Is(ctx.Err(), context.Canceled)
}

// keep notes what a read came to. The lock is held.
func (c *Cache[K, V]) keep(key K, f *flight[V]) {
	e := c.entries[key]
	switch {
	case f.err == nil:
		c.remove(e)
		if weight := c.options.Weigh(f.value); weight <= c.options.Most {
			c.put(&entry[K, V]{key: key, value: f.value, at: f.at, read: true, weight: weight})
		}
	case c.options.RetryAfter != nil:
		if e == nil {
			e = &entry[K, V]{key: key, weight: 1}
			c.put(e)
		}
		e.failures++
		e.err, e.until = f.err, c.options.Now().Add(c.options.RetryAfter(e.failures))
	}
}

// put adds an entry; the oldest go until there is room. The lock is held.
func (c *Cache[K, V]) put(e *entry[K, V]) {
	for c.weight+e.weight > c.options.Most {
		c.remove(c.order.Front().Value.(*entry[K, V]))
	}
	c.weight += e.weight
	c.entries[e.key], e.element = e, c.order.PushBack(e)
}

// remove takes an entry out; nil is none. The lock is held.
func (c *Cache[K, V]) remove(e *entry[K, V]) {
	if e == nil {
		return
	}
	c.weight -= e.weight
	c.order.Remove(e.element)
	delete(c.entries, e.key)
}

// Peek returns the answer of a key if it is there and not too old. It never reads.
func (c *Cache[K, V]) Peek(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[key]; e != nil && e.read && younger(e.at, c.options.Now(), c.options.Age) {
		return e.value, true
	}
	return *new(V), false
}

// Drop forgets what is known of a key, so that the process that asks from now on reads.
func (c *Cache[K, V]) Drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.entries[key])
	delete(c.flights, key)
}

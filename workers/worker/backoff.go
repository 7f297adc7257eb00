package worker

import "time"

// doubled is first·2ⁿ, at most last.
func doubled(first time.Duration, n int, last time.Duration) time.Duration {
	for ; n > 0 && first < last; n-- {
		first *= 2
	}
	return min(first, last)
}

// backoff is how long a message stays away that was received that often, in whole seconds:
// doubling, so that the queue's limit of receives is hours away.
func backoff(receives int, first, last time.Duration) time.Duration {
	return doubled(first, max(receives-1, 0), last)
}

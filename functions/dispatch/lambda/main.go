// Command lambda is the main of the dispatch queue's consumer.
package main

import (
	"punctual/functions/dispatch"
	"punctual/functions/entry"
	"punctual/shared/clock"
)

func main() {
	s := entry.New("dispatch", "PUNCTUAL_TIMER_ROLE", "PUNCTUAL_TIMER_TARGET")
	entry.Start(s, dispatch.New(dispatch.Deps{
		Store:     s.Store(),
		Queue:     s.Queues(),
		Timer:     s.Timers(),
		Clock:     clock.System{},
		Log:       s.Log,
		Meter:     s.Meter,
		Shards:    s.Env.Shards,
		RateLimit: s.RateLimit(),
	}).Handle)
}

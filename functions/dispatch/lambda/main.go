// Command lambda is the main of the dispatch queue's consumer.
package main

import (
	"punctual/functions/dispatch"
	"punctual/functions/entry"
)

func main() {
	s := entry.New("dispatch", "PUNCTUAL_TIMER_ROLE", "PUNCTUAL_TIMER_TARGET")
	entry.Start(s, dispatch.New(dispatch.Deps{
		Store:     s.Store(),
		Queue:     s.Queues(),
		Timer:     s.Timers(),
		Base:      s.Base(),
		RateLimit: s.RateLimit(),
	}).Handle)
}

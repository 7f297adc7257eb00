// Command lambda is the main of the sweeper, which a rule calls each minute.
package main

import (
	"punctual/functions/entry"
	"punctual/functions/sweeper"
	"punctual/shared/clock"
)

func main() {
	s := entry.New("sweeper")
	entry.Start(s, sweeper.New(sweeper.Deps{
		Store:     s.Store(),
		Queue:     s.Queues(),
		Clock:     clock.System{},
		Log:       s.Log,
		Meter:     s.Meter,
		Shards:    s.Env.Shards,
		RateLimit: s.RateLimit(),
	}).Handle)
}

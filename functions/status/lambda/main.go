// Command lambda is the main of the report queue's consumer.
package main

import (
	"punctual/functions/entry"
	"punctual/functions/status"
	"punctual/shared/clock"
)

func main() {
	s := entry.New("status")
	entry.Start(s, status.New(status.Deps{
		Store:     s.Store(),
		Queue:     s.Queues(),
		Clock:     clock.System{},
		Log:       s.Log,
		Meter:     s.Meter,
		Shards:    s.Env.Shards,
		RateLimit: s.RateLimit(),
	}).Handle)
}

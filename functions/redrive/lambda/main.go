// Command lambda is the main of the redrive queue's consumer.
package main

import (
	"punctual/functions/entry"
	"punctual/functions/redrive"
	"punctual/shared/clock"
)

func main() {
	s := entry.New("redrive", "PUNCTUAL_BUCKET")
	entry.Start(s, redrive.New(redrive.Deps{
		Store:     s.Store(),
		Queue:     s.Queues(),
		Clock:     clock.System{},
		Log:       s.Log,
		Meter:     s.Meter,
		Shards:    s.Env.Shards,
		RateLimit: s.RateLimit(),
	}).Handle)
}

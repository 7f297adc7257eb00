// Command lambda is the main of the promoter, which a rule calls each minute.
package main

import (
	"punctual/functions/entry"
	"punctual/functions/promoter"
	"punctual/shared/clock"
)

func main() {
	s := entry.New("promoter")
	entry.Start(s, promoter.New(promoter.Deps{
		Store:      s.Store(),
		Queue:      s.Queues(),
		Clock:      clock.System{},
		Log:        s.Log,
		Meter:      s.Meter,
		Shards:     s.Env.Shards,
		Heartbeats: s.Env.Heartbeats,
	}).Handle)
}

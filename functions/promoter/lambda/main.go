// Command lambda is the main of the promoter, which a rule calls each minute.
package main

import (
	"punctual/functions/entry"
	"punctual/functions/promoter"
)

func main() {
	s := entry.New("promoter")
	entry.Start(s, promoter.New(promoter.Deps{
		Store:      s.Store(),
		Queue:      s.Queues(),
		Base:       s.Base(),
		Heartbeats: s.Env.Heartbeats,
	}).Handle)
}

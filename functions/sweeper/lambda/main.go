// Command lambda is the main of the sweeper, which a rule calls each minute.
package main

import (
	"punctual/functions/entry"
	"punctual/functions/sweeper"
)

func main() {
	s := entry.New("sweeper")
	entry.Start(s, sweeper.New(sweeper.Deps{
		Store:     s.Store(),
		Queue:     s.Queues(),
		Base:      s.Base(),
		RateLimit: s.RateLimit(),
	}).Handle)
}

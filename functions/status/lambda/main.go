// Command lambda is the main of the report queue's consumer.
package main

import (
	"punctual/functions/entry"
	"punctual/functions/status"
)

func main() {
	s := entry.New("status")
	entry.Start(s, status.New(status.Deps{
		Store:     s.Store(),
		Queue:     s.Queues(),
		Base:      s.Base(),
		RateLimit: s.RateLimit(),
	}).Handle)
}

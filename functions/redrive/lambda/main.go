// Command lambda is the main of the redrive queue's consumer.
package main

import (
	"punctual/functions/entry"
	"punctual/functions/redrive"
)

func main() {
	s := entry.New("redrive", "PUNCTUAL_BUCKET")
	entry.Start(s, redrive.New(redrive.Deps{
		Store:     s.Store(),
		Queue:     s.Queues(),
		Base:      s.Base(),
		RateLimit: s.RateLimit(),
	}).Handle)
}

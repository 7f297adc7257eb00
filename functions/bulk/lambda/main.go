// Command lambda is the main of the bulk queue's consumer.
package main

import (
	"punctual/functions/bulk"
	"punctual/functions/entry"
)

func main() {
	s := entry.New("bulk", "PUNCTUAL_BUCKET")
	entry.Start(s, bulk.New(bulk.Deps{
		Store:     s.Store(),
		Queue:     s.Queues(),
		Search:    s.Search(),
		Base:      s.Base(),
		RateLimit: s.RateLimit(),
	}).Handle)
}

// Command lambda is the main of the stream consumer.
package main

import (
	"punctual/functions/entry"
	"punctual/functions/stream"
)

func main() {
	s := entry.New("stream")
	entry.Start(s, stream.New(stream.Deps{
		Queue: s.Queues(),
		Base:  s.Base(),
	}).Handle)
}

// Command lambda is the main of the stream consumer.
package main

import (
	"punctual/functions/entry"
	"punctual/functions/stream"
	"punctual/shared/clock"
)

func main() {
	s := entry.New("stream")
	entry.Start(s, stream.New(stream.Deps{
		Queue: s.Queues(),
		Clock: clock.System{},
		Log:   s.Log,
		Meter: s.Meter,
	}).Handle)
}

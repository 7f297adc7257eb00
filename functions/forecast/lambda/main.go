// Command lambda is the main of the look ahead, which a rule calls each minute.
package main

import (
	"punctual/functions/entry"
	"punctual/functions/forecast"
	"punctual/shared/clock"
)

func main() {
	s := entry.New("forecast")
	entry.Start(s, forecast.New(forecast.Deps{
		Store:  s.Store(),
		Clock:  clock.System{},
		Log:    s.Log,
		Meter:  s.Meter,
		Shards: s.Env.Shards,
	}).Handle)
}

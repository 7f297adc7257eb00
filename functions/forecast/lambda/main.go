// Command lambda is the main of the look ahead, which a rule calls each minute.
package main

import (
	"punctual/functions/entry"
	"punctual/functions/forecast"
)

func main() {
	s := entry.New("forecast")
	entry.Start(s, forecast.New(forecast.Deps{
		Store: s.Store(),
		Base:  s.Base(),
	}).Handle)
}

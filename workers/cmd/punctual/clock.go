package main

import "time"

// now is the time by the clock that decides what is due, which a laptop may have set to another year. It is this
// machine's when the API does not say.
func (s *shell) now() time.Time {
	ready, err := s.client.Readiness(s.ctx)
	if err != nil || ready.Now.IsZero() {
		return time.Now()
	}
	return ready.Now
}

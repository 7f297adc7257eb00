package api

import (
	"context"
	"net/http"
	"sync/atomic"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
)

// Drain ends the API of a process that is asked to end: first no request may change anything any more, and in the end
// the requests that wait are answered. Its zero value is not ready; see NewDrain.
type Drain struct {
	draining atomic.Bool
	over     context.Context
	end      context.CancelFunc
}

// NewDrain returns a Drain of a process that goes on.
func NewDrain() *Drain {
	d := &Drain{}
	d.over, d.end = context.WithCancel(context.Background())
	return d
}

// Begin refuses every request that may change something, with a 503: what it accepted would wait for the next process,
// or be lost with this one. Reads are still answered.
func (d *Drain) Begin() { d.draining.Store(true) }

// Begun reports whether Begin was called.
func (d *Drain) Begun() bool { return d.draining.Load() }

// End answers the requests that wait for an end, with a 503.
func (d *Drain) End() { d.end() }

// Handler serves next until the process drains.
func (d *Drain) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(d.over, cancel)()
			next.ServeHTTP(w, r.WithContext(ctx))
			return
		}
		if d.Begun() {
			spec.Catalogue.Write(w, "", rest.Unavailable("this process is ending, and takes no changes; try again"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

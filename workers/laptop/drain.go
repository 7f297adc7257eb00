package laptop

import (
	"context"
	"net/http"
	"sync/atomic"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
)

// drain ends the API of a process that is asked to end: first no request may change anything any more, and in the end
// the requests that wait are answered. Its zero value is not ready; see newDrain.
type drain struct {
	draining atomic.Bool
	over     context.Context
	finish   context.CancelFunc // answers the requests that wait for an end, with a 503
}

// newDrain returns a drain of a process that goes on.
func newDrain() *drain {
	d := &drain{}
	d.over, d.finish = context.WithCancel(context.Background())
	return d
}

// begin refuses every request that may change something, with a 503: what it accepted would wait for the next process,
// or be lost with this one. Reads are still answered.
func (d *drain) begin() { d.draining.Store(true) }

// begun reports whether begin was called.
func (d *drain) begun() bool { return d.draining.Load() }

// guard serves next until the process drains.
func (d *drain) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(d.over, cancel)()
			next.ServeHTTP(w, r.WithContext(ctx))
			return
		}
		if d.begun() {
			spec.Catalogue.Write(w, "", rest.Unavailable("this process is ending, and takes no changes; try again"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

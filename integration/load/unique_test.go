package load

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"punctual/workers/worker"
)

// BenchmarkUnique measures requests for jobs with unique keys: with keys of their own, with one that is held, and with
// keys whose holders they replace.
func BenchmarkUnique(b *testing.B) {
	for b.Loop() {
		plain := requests(b, nil)
		note("requests for jobs without a unique key, 8 connections", "%s", plain)
		for _, c := range []struct {
			name, conflict string
			keys           int
		}{
			{"requests for jobs with a unique key of their own", "return", unlimited},
			{"requests that are answered with the job that holds the key", "return", 1},
			{"requests that replace the job that holds one of 100 keys", "replace", 100},
		} {
			is := requests(b, func(n int) object {
				return object{"key": strconv.Itoa(n % c.keys), "on_conflict": c.conflict}
			})
			note(c.name, "%s, %.2f ×", is, is.rate/plain.rate)
		}
	}
}

// unlimited is more than there are requests.
const unlimited = 1 << 30

// answered is how fast requests are answered.
type answered struct {
	rate  float64 // a second
	times []time.Duration
}

func (a answered) String() string { return fmt.Sprintf("%.0f/s, %s", a.rate, spread(a.times)) }

// requests posts jobs, one a request, with the unique keys that key gives; nil for none.
func requests(b *testing.B, key func(n int) object) answered {
	b.Helper()
	const n, connections = 8_000, 8
	h := open(b, worker.Options{})
	defer h.stop()
	var mu sync.Mutex
	var times []time.Duration
	var g sync.WaitGroup
	from := time.Now()
	for c := range connections {
		g.Go(func() {
			own := make([]time.Duration, 0, n/connections)
			for i := c; i < n; i += connections {
				body := inAnHour(i)
				if key != nil {
					body["unique"] = key(i)
				}
				sent := time.Now()
				h.call("POST", "/jobs", body)
				own = append(own, time.Since(sent))
			}
			mu.Lock()
			defer mu.Unlock()
			times = append(times, own...)
		})
	}
	g.Wait()
	rate := n / time.Since(from).Seconds()
	slices.Sort(times)
	return answered{rate, times}
}

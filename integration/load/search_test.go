package load

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"punctual/shared/memory"
	"punctual/workers/system"
	"punctual/workers/worker"
)

// BenchmarkSearchBehind measures how far the index of jobs is behind while 1,000 jobs a second pass through, and how
// long a search takes meanwhile.
func BenchmarkSearchBehind(b *testing.B) {
	const seconds, rate, batch = 20, 1000, 100
	for b.Loop() {
		h := openOver(b, worker.Options{Slots: 500}, system.Options{}, nil, func(w *memory.World, p *system.Ports) {
			p.Search = w.Search()
		})
		var behind, took []time.Duration
		done := make(chan struct{})
		var asking sync.WaitGroup
		asking.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				case <-time.After(50 * time.Millisecond):
				}
				var page struct {
					AsOf time.Time `json:"as_of"`
				}
				from := time.Now()
				answer := h.call("GET", fmt.Sprint("/jobs?pool=short&tag.customer=", n%50), nil)
				if err := json.Unmarshal(answer, &page); err != nil {
					b.Error(err)
					return
				}
				behind, took = append(behind, time.Since(page.AsOf)), append(took, time.Since(from))
			}
		})
		began := time.Now()
		for n := range seconds * rate / batch {
			time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second * batch / rate)))
			jobs := make([]object, batch)
			for i := range jobs {
				jobs[i] = object{"task": "probe", "tags": object{"customer": fmt.Sprint(i % 50)}}
			}
			h.call("POST", "/jobs/batch", object{"jobs": jobs})
		}
		h.starts.wait(b, seconds*rate, time.Minute)
		close(done)
		asking.Wait()
		slices.Sort(behind)
		slices.Sort(took)
		note("index behind at 1,000 jobs/s", "%s", spread(behind))
		note("a search by pool and tag meanwhile", "%s", spread(took))
		h.stop()
	}
}

package cost

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"punctual/integration/story"
	"punctual/shared/span"
)

// option is something that a job may have, and what it takes more than one without: due now, a hundred a request.
type option struct {
	name   string
	jobs   int
	with   func(n int) story.Object // the fields of the nth job
	before func(a *story.API)       // makes what the jobs name
	// most is how many write units it may take more.
	most float64
	// apart is how long after one job the next is due; each runs for half as long more. 0: all are due at once.
	apart time.Duration
	// unmade says that requests with the option make no job: what they take is compared with no request.
	unmade bool
}

var options = []option{
	{
		name: "with a limit that has a permit free", jobs: 500, most: 3,
		before: putLimit("limit", story.Object{"max_running": 1000}),
		with:   limited("limit"),
	},
	{
		name: "with a limit of a rate that is not used up", jobs: 500, most: 3,
		before: putLimit("limit", story.Object{"rate": story.Object{"count": 1000, "per": "1m"}}),
		with:   limited("limit"),
	},
	{
		name: "with a limit of 1, of a key of its own", jobs: 500, most: 3,
		before: putLimit("limit", story.Object{"max_running": 1}),
		with: func(n int) story.Object {
			return story.Object{"limits": []story.Object{{"name": "limit", "key": fmt.Sprint(n)}}}
		},
	},
	{
		name: "with two limits that have a permit free", jobs: 500, most: 6,
		before: func(a *story.API) {
			putLimit("a", story.Object{"max_running": 1000})(a)
			putLimit("b", story.Object{"max_running": 1000})(a)
		},
		with: limited("a", "b"),
	},
	{
		name: "with a limit of 1, and waits for its permit", jobs: 200, most: 3 + 8, apart: 100 * time.Millisecond,
		before: putLimit("limit", story.Object{"max_running": 1}),
		with:   limited("limit"),
	},
	{
		name: "with a unique key", jobs: 500, most: 3, before: func(*story.API) {},
		with: func(n int) story.Object { return story.Object{"unique": story.Object{"key": fmt.Sprint(n)}} },
	},
	{
		name: "with a unique key until its start", jobs: 500, most: 4, before: func(*story.API) {},
		with: func(n int) story.Object {
			return story.Object{"unique": story.Object{"key": fmt.Sprint(n), "until": "started"}}
		},
	},
	{
		name: "with a unique key that another job holds, which is returned", jobs: 500, most: 0, unmade: true,
		before: func(a *story.API) {
			a.Post(story.Object{"task": "echo", "delay": "1m", "unique": story.Object{"key": "k"}})
		},
		with: func(int) story.Object { return story.Object{"unique": story.Object{"key": "k"}} },
	},
}

func putLimit(name string, body story.Object) func(a *story.API) {
	return func(a *story.API) { a.Want(http.StatusCreated, "PUT", "/limits/"+name, body) }
}

func limited(names ...string) func(int) story.Object {
	var list []story.Object
	for _, name := range names {
		list = append(list, story.Object{"name": name})
	}
	return func(int) story.Object { return story.Object{"limits": list} }
}

// difference begins the name of a figure that two counts make: one of jobs with an option, and one of jobs without.
const difference = "more for a job "

// more returns what a job with the option takes more than one without.
func (o option) more(t *testing.T) used {
	t.Helper()
	measure := func(with bool) used {
		return busy(t, func(a *story.API) {
			o.before(a)
			if o.unmade && !with {
				time.Sleep(2 * time.Minute)
				return
			}
			last := post(a, o.jobs, func(n int) story.Object {
				body := story.Object{"task": "echo", "payload": story.Object{"n": n}}
				if o.apart > 0 {
					body["delay"] = span.Format(time.Duration(n) * o.apart)
					body["payload"] = story.Object{"sleep": span.Format(o.apart*3/2 + 7*time.Millisecond)}
				}
				if with {
					for name, value := range o.with(n) {
						body[name] = value
					}
				}
				return body
			})
			time.Sleep(2 * time.Minute)
			a.WantStatus(last, "SUCCEEDED")
		})
	}
	return measure(true).less(measure(false), float64(o.jobs))
}

// optionRows counts the options, and returns their rows of the page.
func optionRows(t *testing.T, counted map[string]float64) string {
	t.Helper()
	var rows strings.Builder
	for _, o := range options {
		u := o.more(t)
		for what, n := range map[string]float64{"write units": u.write, "read units": u.read,
			"queue requests": u.queue} {
			if o.apart == 0 { // what waits meets others, and takes a little more or less each time
				counted[difference+o.name+": "+what] = n
			}
		}
		fmt.Fprintf(&rows, "| %s | %.1f | %.1f | %.1f | %.1f |\n", o.name, u.write, u.read, u.queue,
			1e6*(u.write*writeUnit+u.read*readUnit+u.queue*queueRequest))
		if u.write > o.most+0.05 {
			t.Errorf("a job %s takes %.2f write units more; at most %.0f are promised", o.name, u.write, o.most)
		}
	}
	return rows.String()
}

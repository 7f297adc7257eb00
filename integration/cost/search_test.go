package cost

import (
	"fmt"
	"testing"
	"time"

	"punctual/integration/story"
	"punctual/workers/system"
	"punctual/workers/worker"
)

// What is promised for the index of jobs, in dollars: per million jobs without tags that succeed at once, and per
// million tags.
const (
	mostSearch    = 2.50
	mostSearchTag = 0.65
)

const (
	searchEvery  = 1.0 // seconds that a call of the function that keeps the index waits for more changes
	searchCallMS = 20  // of that function for a call with a few changes, by assumption
	searchAlarms = 10  // metrics of prod; a test of the templates holds the page to them
)

// searchOf counts what the index takes for a job with so many tags.
func searchOf(t *testing.T, tags int) used {
	t.Helper()
	measure := func(indexed bool) used {
		before, after := play(t, indexed, system.Options{Shards: 4, Worker: worker.Options{Name: "w", Slots: 100}},
			3*time.Minute, func(a *story.API) {
				last := post(a, jobs, func(n int) story.Object {
					body := story.Object{"task": "echo", "payload": story.Object{"n": n}}
					if tags > 0 {
						named := story.Object{}
						for tag := range tags {
							named[fmt.Sprint("tag", tag)] = fmt.Sprint(n)
						}
						body["tags"] = named
					}
					return body
				})
				time.Sleep(2 * time.Minute)
				a.WantStatus(last, "SUCCEEDED")
			})
		return spent(after, before, nil)
	}
	return measure(true).less(measure(false), jobs)
}

// searchRow counts the index of jobs, and returns its line of the page.
func searchRow(t *testing.T, counted map[string]float64) string {
	t.Helper()
	dollars := func(u used) float64 {
		return 1e6 * (u.write*writeUnit + u.read*readUnit + changesOfJob*changeMS/1000*256/1024*gigabyteSec)
	}
	plain, tagged := searchOf(t, 0), searchOf(t, 2)
	for name, u := range map[string]used{"index": plain, "index with two tags": tagged} {
		counted[difference+"by the "+name+": write units"] = u.write
		counted[difference+"by the "+name+": read units"] = u.read
	}
	if dollars(plain) > mostSearch || dollars(tagged) > mostSearch+2*mostSearchTag || plain.write > 3.05 {
		t.Errorf("the index costs $%.2f a million jobs (%.2f write units), and $%.2f with two tags each",
			dollars(plain), plain.write, dollars(tagged))
	}
	const month = hoursAMonth * 3600
	calls := tableShards / searchEvery * (invocation + searchCallMS/1000.0*256/1024*gigabyteSec) * month
	return fmt.Sprintf("- `SETTINGS=search=yes` keeps an index of jobs: $%.2f a million jobs without tags that "+
		"succeed at once (%.1f write units), $%.2f with two tags each; a further change of a job is a write unit. The "+
		"function that keeps it waits for a second of changes, so that while there are always some its calls cost up "+
		"to $%.2f a month; its alarms cost $%.2f in prod. A search reads up to 5,000 entries a page, of which some "+
		"16 are a read unit.\n", dollars(plain), plain.write, dollars(tagged), calls, searchAlarms*alarmMonth)
}

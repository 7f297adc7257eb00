package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// night is a laptop on which twelve jobs of one cause have died, and one job waits for its time.
type night struct {
	rest

	mended    atomic.Bool // what the jobs call answers
	dead, due string      // one of the jobs that died, and the one that waits
}

func beginNight(t *testing.T) *night {
	n := &night{rest: serve(t)}
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !n.mended.Load() {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(target.Close)
	for i := range 12 {
		n.dead = n.post(fmt.Sprintf(`{"task":"http","payload":{"url":"%s"},"retry":{"max_attempts":1},
			"tags":{"order":"%d"}}`, target.URL, i))
		if status := n.ended("/jobs/" + n.dead); status != "DEAD" {
			t.Fatalf("the job is %s, want DEAD", status)
		}
	}
	n.due = n.post(`{"task":"echo","delay":"1h"}`)
	return n
}

//proof:of 195
func TestNight_IsMasteredByClicksInLightAndDarkNarrowAndWide(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	source := axe(t)
	for _, dark := range []bool{false, true} {
		for _, width := range []int{390, 1440} {
			name := fmt.Sprintf("%d-%s", width, map[bool]string{true: "dark", false: "light"}[dark])
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				n := beginNight(t)
				p := b.open(t, n.url+"/")
				p.resize(width, dark)
				p.settled()
				p.eval(source + "; 0")
				n.master(p, func(step string) {
					t.Helper()
					what := "night-" + step + "-" + name
					p.accessible(what)
					if step != "ask" { // what is behind a dialog may be anywhere
						p.fits(what)
					}
					p.shoot(what)
				})
			})
		}
	}
}

// master does what a person does in such a night: finds a job by its tag and reads why it died, sees since when it is
// bad, tries ten and then the others, and holds a job back. seen is called at each step.
func (n *night) master(p *tab, seen func(step string)) {
	p.visit("#/jobs")
	p.write("Tag, NAME=VALUE", "order=11")
	p.press("Tab")
	p.await(`[...document.querySelectorAll('tbody a.id')].map((e) => e.title).join() === ` + quoted(n.dead))
	seen("found")
	p.click(n.dead)
	p.shows("http_status", "the target answered 502", "Log of attempt 1", "502 Bad Gateway")
	seen("why")
	p.eval(`(async () => { for (let i = 0; i < 200; i++) {
		const s = await (await fetch('/v1/stats?step=1h')).json()
		if (s.series.dead.some((n) => n > 0)) return
		await new Promise((r) => setTimeout(r, 100))
	} })()`)
	p.visit("#/") // the chart is read once a minute, and jobs are counted some seconds after they end
	p.shows("The last 24 hours", "12 failed for good")
	seen("chart")
	p.click("Dead letters")
	p.shows("12 jobs failed for good, of 1 cause.")
	redrive := func() {
		p.click("Redrive, ten first…")
		p.shows("This touches 12 dead jobs.")
		p.write("Reason", "the provider says that it is back")
	}
	redrive()
	seen("ask")
	p.click("Begin the redrive")
	p.shows("canary_failed", "10 of 12 jobs.")
	seen("canary")
	n.mended.Store(true)
	p.await(`document.body.innerText.includes('22 letters')`) // the ten have died once more
	redrive()
	p.click("Begin the redrive")
	p.shows("12 of 12 jobs.", "the newest were redriven")
	seen("redriven")
	p.click("Operations")
	p.shows("2 operations, newest first")
	seen("operations")
	p.visit("#/jobs/" + n.due)
	p.click("Pause")
	p.write("Reason", "not before noon")
	p.click("Pause the job")
	p.shows("Held by the pause of this job: “not before noon”")
	seen("paused")
	if by := n.ask("GET", "/jobs/"+n.dead, "")["redriven_by"]; by == nil {
		p.t.Errorf("%s is not redriven", n.dead)
	}
}

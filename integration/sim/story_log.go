package sim

import (
	"fmt"
	"strings"

	"punctual/shared/item"
	"punctual/shared/job"
)

// Logged are stories about logs of attempts. Whatever becomes of a log, the attempt ends as it would without one.
var Logged = []Story{
	{Name: "an attempt writes lines for half a minute", Play: func(w *Client) func() {
		id := w.Post("lines", object{"payload": Work{Sleep: "30s", Lines: true}, "timeout": "10m"})
		return func() {
			w.Is(id, 1, job.Succeeded)
			w.logIsWhole(id, 1, "left=30s", "left=1s")
		}
	}},
	{Name: "attempts that fail write lines", Play: func(w *Client) func() {
		id := w.Post("lines", object{"payload": Work{Sleep: "3s", Lines: true, Fail: 2}})
		return func() {
			w.Is(id, 3, job.Succeeded)
			for attempt := range int64(3) {
				w.logIsWhole(id, attempt+1, "left=3s", "left=1s")
			}
		}
	}},
	{Name: "a worker crashes while its attempt writes lines", Play: func(w *Client) func() {
		id := w.Post("lines", object{"payload": Work{Sleep: "15s", Lines: true}})
		w.startWorker()
		return func() { w.logIsWhole(id, 1, "left=15s") }
	}},
}

// logIsWhole verifies that what is stored of each start begins with its mark, and that the log has these texts, unless
// a fault has kept them from being written.
func (w *Client) logIsWhole(id job.ID, attempt int64, texts ...string) {
	k := job.Key{Tenant: w.tenant, ID: id}
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	read := func(ref item.Ref) item.Item { return w.ledger.items[ref] }
	parts := job.LogStarts(k, attempt, read(job.LogRef(k, attempt)))
	for n, p := range parts {
		for slot := 0; read(p.PageRef(slot)) != nil; slot++ {
			parts[n].Pages = append(parts[n].Pages, job.ParseLogPage(read(p.PageRef(slot))))
		}
		mark := fmt.Sprintf(" INFO \"attempt %d began\" start=%d token=%d ", attempt, p.Start, p.Token)
		if text, _ := job.JoinLog(parts[n:n+1], 0); !strings.Contains(text[:min(len(text), 100)], mark) {
			w.violation("the log of start %d of job %s begins with %.100q", p.Start, short(id), text)
		}
	}
	whole, _ := job.JoinLog(parts, 0)
	for _, text := range texts {
		if !strings.Contains(whole, text) && w.faults() == 0 {
			w.violation("the log of attempt %d of job %s has no %s: %q", attempt, short(id), text, whole)
		}
	}
}

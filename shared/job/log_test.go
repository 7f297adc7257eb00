package job_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
)

// shelf is a table that has the items of logs.
type shelf map[string]item.Item

// put does a write, and returns the write units that it takes.
func (s shelf) put(w item.Write) int {
	if !item.Any(w.When, s[w.PK]) {
		return 0
	}
	s[w.PK] = w.Applied(s[w.PK], contract.AttrPK, "")
	return (s[w.PK].Size() + 1023) / 1024
}

// read joins what is stored of an attempt's starts.
func (s shelf) read(k job.Key, attempt, from int64) (string, int64) {
	parts := job.LogStarts(k, attempt, s[job.LogRef(k, attempt).PK])
	for n, p := range parts {
		for slot := 0; s[p.PageRef(slot).PK] != nil; slot++ {
			parts[n].Pages = append(parts[n].Pages, job.ParseLogPage(s[p.PageRef(slot).PK]))
		}
	}
	return job.JoinLog(parts, from)
}

// writer is a worker that keeps the first and the last bytes of a start.
type writer struct {
	pages  job.LogPages
	lines  []string
	full   bool
	text   job.LogText
	units  int // that its writes have taken
	writes int
}

func startOf(k job.Key, start int64) *writer {
	return &writer{pages: job.LogPages{Start: job.LogStart{Key: k, Attempt: 3, Start: start, Token: start + 4}}}
}

// write adds a line.
func (w *writer) write(line string) {
	w.lines = append(w.lines, line)
	if w.full = w.full || len(w.text.Head)+len(line) > contract.LogHead; !w.full {
		w.text.Head += line
		w.text.TailAt = int64(len(w.text.Head))
		return
	}
	w.text.Tail += line
	for len(w.text.Tail) > contract.LogTail {
		end := strings.IndexByte(w.text.Tail, '\n') + 1
		w.text.Tail, w.text.TailAt = w.text.Tail[end:], w.text.TailAt+int64(end)
	}
}

// flush writes what is new to the table; some answers are lost.
func (w *writer) flush(to shelf, lost func() bool) {
	for {
		write, ok := w.pages.Next(w.text, time.Unix(1_900_000_000, 0))
		if !ok {
			return
		}
		w.units, w.writes = w.units+to.put(write.Write), w.writes+1
		if lost() {
			return
		}
		w.pages.Stored(write)
	}
}

func never() bool { return false }

var logJob = job.Key{Tenant: "acme", ID: job.DeterministicID(time.Unix(1_800_000_000, 0), "log")}

func TestLog_ShowsTheFirstAndTheLastBytesOfAnyText(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		dice := rand.New(rand.NewPCG(seed, 1))
		to, w, most := shelf{}, startOf(logJob, 1), 1+dice.IntN(8000)
		w.write("the mark of the start\n")
		for range dice.IntN(100) {
			for range dice.IntN(20) {
				w.write(strings.Repeat("x", dice.IntN(most)) + "\n")
			}
			w.flush(to, func() bool { return dice.IntN(5) == 0 })
		}
		w.flush(to, never)
		got, next := to.read(logJob, 3, 0)
		whole := strings.Join(w.lines, "")
		if next != int64(len(whole)) {
			t.Fatalf("seed %d: next is %d of %d bytes", seed, next, len(whole))
		}
		if w.text.TailAt == int64(len(w.text.Head)) {
			if got != whole {
				t.Fatalf("seed %d: a log of %d bytes is shown as %d", seed, len(whole), len(got))
			}
			continue
		}
		if !strings.HasPrefix(got, w.text.Head) || !strings.HasSuffix(got, w.text.Tail) {
			t.Fatalf("seed %d: the first or the last bytes are missing", seed)
		}
		if n := strings.Count(got, " bytes left out]\n"); n > 1 {
			t.Fatalf("seed %d: %d lines say that bytes are left out", seed, n)
		}
		stored := 0
		for _, i := range to {
			stored += i.Size()
		}
		if stored > 3*(contract.LogHead+contract.LogTail) {
			t.Fatalf("seed %d: %d bytes are stored", seed, stored)
		}
	}
}

func TestLog_CostsAUnitForEachKiBAndOneForEachFlush(t *testing.T) {
	t.Parallel()
	for _, each := range []int{40, 100, 300, 700, 761, 1000, 3000, 8000} {
		t.Run(fmt.Sprint(each), func(t *testing.T) {
			t.Parallel()
			to, w := shelf{}, startOf(logJob, 1)
			for n := range 200 {
				w.write(strings.Repeat("x", each-1) + "\n")
				w.flush(to, never)
				const names = 160 // bytes of an item that are no text
				if most := (n+1)*(each+names)/1024 + n + 2; w.units > most {
					t.Fatalf("after %d flushes of %d bytes: %d write units, want at most %d", n+1, each, w.units, most)
				}
			}
			if pages := len(to); pages > 200 {
				t.Fatalf("the log has %d items", pages)
			}
		})
	}
	w := startOf(logJob, 1)
	w.write("one short line\n")
	w.flush(shelf{}, never)
	if w.units != 1 {
		t.Fatalf("a short log takes %d write units, want 1", w.units)
	}
}

func TestLog_JoinsTheStartsOfAnAttempt(t *testing.T) {
	t.Parallel()
	to, first, second := shelf{}, startOf(logJob, 1), startOf(logJob, 2)
	first.write("start 1\n")
	first.write("a\n")
	first.flush(to, never)
	text, next := to.read(logJob, 3, 0)
	if text != "start 1\na\n" || next != int64(len(text)) {
		t.Fatalf("the first start is %q, up to %d", text, next)
	}
	second.write("start 2\n")
	second.write("b\n")
	second.flush(to, never)
	first.write("late\n")
	first.flush(to, never) // its worker was presumed dead
	text, end := to.read(logJob, 3, next)
	if text != "late\nstart 2\nb\n" {
		t.Fatalf("after the first start comes %q", text)
	}
	second.write("c\n")
	second.flush(to, never)
	if text, _ = to.read(logJob, 3, end); text != "c\n" {
		t.Fatalf("then comes %q", text)
	}
	if text, _ = to.read(logJob, 2, 0); text != "" {
		t.Fatalf("another attempt has the log %q", text)
	}
}

func TestLog_SaysWhereAReaderGoesOn(t *testing.T) {
	t.Parallel()
	to, w := shelf{}, startOf(logJob, 1)
	whole := ""
	for n := range 400 {
		line := fmt.Sprintf("line %d ä\n", n)
		whole += line
		w.write(line)
		w.flush(to, never)
	}
	for from := range len(whole) + 3 {
		text, next := to.read(logJob, 3, int64(from))
		want := whole[min(from, len(whole)):]
		if want != "" && want[0] == "ä"[1] {
			want = want[1:] // half a character is left out
		}
		if text != want || next != int64(max(from, len(whole))) {
			t.Fatalf("from %d: %d bytes up to %d, want %d", from, len(text), next, len(want))
		}
	}
}

func TestLog_IgnoresAWriteThatComesLate(t *testing.T) {
	t.Parallel()
	to, w := shelf{}, startOf(logJob, 1)
	w.write("a\n")
	early, _ := w.pages.Next(w.text, time.Unix(1_900_000_000, 0)) // its answer is lost, and it arrives last
	w.write("b\n")
	w.flush(to, never)
	to.put(early.Write)
	if text, _ := to.read(logJob, 3, 0); text != "a\nb\n" {
		t.Fatalf("the log is %q", text)
	}
}

func TestLogUntil_OutlivesTheRow(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for _, r := range []job.Row{{}, {NodeRef: job.NodeRef{RunID: "run"}}} {
		r.Retry = job.RetryPolicy{MaxAttempts: 3, MaxDelay: time.Hour}
		kept := contract.DeadKept
		if r.InRun() {
			kept = contract.NodeKept
		}
		if got := job.LogUntil(r, now); got.Before(now.Add(kept + 3*time.Hour)) {
			t.Errorf("a log is kept until %v", got)
		}
	}
}

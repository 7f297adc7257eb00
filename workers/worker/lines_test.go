package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/workers/executor"
)

// log reads the log of an attempt from a position on.
func (b *bench) log(r job.Row, attempt, from int64) (string, int64) {
	b.Helper()
	text, next, err := b.Store.AttemptLog(b.Context(), r.Key, attempt, from)
	b.Must(err)
	return text, next
}

// says has attempts write lines, with pauses after each.
func (b *bench) says(pause time.Duration, lines ...string) {
	b.then(func(_ context.Context, w executor.Work) (json.RawMessage, error) {
		for _, line := range lines {
			w.Log.Info(line, "n", 1)
			time.Sleep(pause)
		}
		return nil, nil
	})
}

// countLogWrites counts the writes of logs.
func (b *bench) countLogWrites() *int {
	n := new(int)
	b.World.SetFaults(func(c memory.Call) memory.Fault {
		if writesLog(c) {
			*n++
		}
		return memory.Fault{}
	})
	return n
}

func writesLog(c memory.Call) bool {
	return stagetest.Writes(job.WriteLogStart)(c) || stagetest.Writes(job.WriteLogPage)(c)
}

func TestLog_OfAnAttemptIsThereBeforeItsEndIsReported(t *testing.T) {
	within(t, func(b *bench) {
		writes := b.countLogWrites()
		b.says(0, "hello", "two words")
		b.start("a")
		r := b.put(0)
		b.fire(r, 0)
		b.sleep(time.Second)
		text, next := b.log(r, 1, 0)
		lines := strings.Split(text, "\n")
		if len(lines) != 4 || next != int64(len(text)) {
			t.Fatalf("the log is %q, up to %d", text, next)
		}
		if !strings.HasSuffix(lines[0], ` INFO "attempt 1 began" start=1 token=1 worker=a`) ||
			!strings.HasSuffix(lines[1], " INFO hello n=1") || !strings.HasSuffix(lines[2], ` INFO "two words" n=1`) {
			t.Errorf("the lines are %q", lines)
		}
		for _, line := range lines[:3] {
			at, _, _ := strings.Cut(line, " ")
			if _, err := time.Parse("2006-01-02T15:04:05.000Z", at); err != nil {
				t.Errorf("a line begins with %q: %v", at, err)
			}
		}
		if *writes != 1 {
			t.Errorf("%d writes for a short log", *writes)
		}
	})
}

func TestLog_WithoutLinesCostsNothing(t *testing.T) {
	within(t, func(b *bench) {
		writes := b.countLogWrites()
		b.sleeps(time.Minute)
		b.start("a")
		r := b.put(0, func(r *job.Row) { r.Timeout = time.Hour })
		b.fire(r, 0)
		b.sleep(2 * time.Minute)
		if text, next := b.log(r, 1, 0); text != "" || next != 0 {
			t.Errorf("the log is %q, up to %d", text, next)
		}
		if len(b.outcomes()) != 1 || *writes != 0 {
			t.Errorf("%d writes", *writes)
		}
	})
}

func TestLog_IsAtMostTenSecondsBehindWhileTheAttemptRuns(t *testing.T) {
	within(t, func(b *bench) {
		writes := b.countLogWrites()
		var lines []string
		for n := range 100 {
			lines = append(lines, fmt.Sprint("line-", n))
		}
		b.says(3*time.Second, lines...)
		b.start("a")
		r := b.put(0, func(r *job.Row) { r.Timeout = time.Hour })
		b.fire(r, 0)
		b.sleep(time.Second)
		seen, from := "", int64(0)
		for second := 1; second < 290; second++ {
			var more string
			more, from = b.log(r, 1, from)
			seen += more
			if n := (second - 10) / 3; second > 10 && !strings.Contains(seen, fmt.Sprintf(" line-%d ", n)) {
				t.Fatalf("after %d s, line %d is not there: %q", second, n, seen)
			}
			b.sleep(time.Second)
		}
		b.sleep(time.Minute)
		more, _ := b.log(r, 1, from)
		if whole, _ := b.log(r, 1, 0); seen+more != whole || strings.Count(whole, "\n") != 101 {
			t.Errorf("whoever followed saw %d bytes of %d", len(seen+more), len(whole))
		}
		if *writes > 36 { // one in 10 s, and one for each KiB
			t.Errorf("%d writes in 300 s", *writes)
		}
	})
}

func TestLog_OfAHostileHandlerIsBounded(t *testing.T) {
	within(t, func(b *bench) {
		b.then(func(_ context.Context, w executor.Work) (json.RawMessage, error) {
			for n := range 5000 {
				w.Log.Info(strings.Repeat("x", n*4), "line", n)
			}
			w.Log.Info("\x00\x1b[31m\xff\u202e line\nbreak")
			time.Sleep(time.Minute)
			w.Log.Info("last")
			return nil, nil
		})
		b.start("a")
		r := b.put(0, func(r *job.Row) { r.Timeout = time.Hour })
		b.fire(r, 0)
		b.sleep(2 * time.Minute)
		text, _ := b.log(r, 1, 0)
		const most = contract.LogHead + contract.LogTail
		if n := len(text); n > most+100 || n < most-2*contract.MaxLogLine {
			t.Errorf("the log has %d bytes", n)
		}
		if strings.Count(text, " bytes left out]\n") != 1 {
			t.Error("no line says what is left out")
		}
		for line := range strings.SplitSeq(text, "\n") {
			if len(line) > contract.MaxLogLine {
				t.Errorf("a line has %d bytes", len(line))
			}
		}
		hidden := func(c rune) bool { return c != '\n' && !unicode.IsPrint(c) }
		if strings.ContainsFunc(text, hidden) || !utf8.ValidString(text) {
			t.Error("the log has control characters")
		}
		if !strings.Contains(text, `\x00\x1b[31m\xff\u202e line\nbreak`) || !strings.HasSuffix(text, " INFO last\n") {
			t.Errorf("the log ends with %q", text[len(text)-300:])
		}
	})
}

func TestLog_OfAnotherStartFollows(t *testing.T) {
	within(t, func(b *bench) {
		b.says(20*time.Second, "one", "two", "three")
		_, kill := b.killable("a")
		r := b.put(0, func(r *job.Row) { r.Timeout = time.Hour })
		b.fire(r, 0)
		b.sleep(15 * time.Second)
		kill()
		b.start("b")
		b.sleep(5 * time.Minute)
		text, _ := b.log(r, 1, 0)
		var shape []string
		for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
			_, what, _ := strings.Cut(line, " INFO ")
			shape = append(shape, what)
		}
		want := []string{`"attempt 1 began" start=1 token=1 worker=a`, "one n=1",
			`"attempt 1 began" start=2 token=2 worker=b`, "one n=1", "two n=1", "three n=1"}
		if strings.Join(shape, "|") != strings.Join(want, "|") {
			t.Errorf("the log is %q", shape)
		}
	})
}

func TestLog_ThatCannotBeWrittenKeepsNoAttemptFromEnding(t *testing.T) {
	for name, f := range map[string]memory.Fault{
		"refused":   {Fail: fault.Invalid},
		"no answer": {Lost: true},
		"hangs":     {Hang: true},
		"throttled": {Fail: fault.Throttled},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(b *bench) {
				b.World.SetFaults(func(c memory.Call) memory.Fault {
					if writesLog(c) {
						return f
					}
					return memory.Fault{}
				})
				b.says(12*time.Second, "one", "two")
				b.start("a")
				r := b.put(0)
				b.fire(r, 0)
				b.sleep(25 * time.Second)
				if o := b.outcomes(); len(o) != 1 || o[0].Kind != job.OutcomeSucceeded {
					t.Fatalf("recorded %+v", o)
				}
			})
		})
	}
}

func TestLog_IsEmptiedWithItsJobAndKeptWithIt(t *testing.T) {
	within(t, func(b *bench) {
		b.then(func(_ context.Context, w executor.Work) (json.RawMessage, error) {
			for range 20 {
				w.Log.Info(strings.Repeat("x", 1000))
			}
			return nil, nil
		})
		b.start("a")
		r := b.put(0)
		b.fire(r, 0)
		b.sleep(time.Second)
		until := time.Now().Add(300 * 24 * time.Hour)
		b.Must(b.Store.KeepJob(t.Context(), r.Key, until))
		start := job.LogStart{Key: r.Key, Attempt: 1, Start: 1, Token: 1}
		for _, ref := range []item.Ref{job.LogRef(r.Key, 1), start.PageRef(0)} {
			i, err := b.World.Table().Get(t.Context(), ref)
			b.Must(err)
			if i.Int(contract.AttrExpiresAt) != until.Unix() {
				t.Errorf("%s is kept until %d", ref, i.Int(contract.AttrExpiresAt))
			}
		}
		b.Must(b.Store.ForgetContents(t.Context(), r))
		if text, _ := b.log(r, 1, 0); text != "" {
			t.Errorf("left behind: %d bytes", len(text))
		}
	})
}

// broken is an error whose text panics.
type broken struct{}

func (broken) Error() string { panic("no text") }

func TestLog_MasksSecretsAndSurvivesValues(t *testing.T) {
	t.Parallel()
	l := newLines(func() string { return "mark\n" })
	log := l.logger(time.Now)
	const hidden = "hunter2hunter2"
	log.Info("given password="+hidden, "password", hidden, "config", map[string]string{"api_key": hidden},
		slog.Group("db", "pass", "short", "token", "x"), "error", broken{}, "url", "https://u:"+hidden+"@host/")
	log.With("secret", hidden).WithGroup("credentials").Warn("Bearer "+hidden, "value", hidden, "bytes", []byte("abc"))
	log.Debug("not kept")
	text := l.text().Head
	if strings.Contains(text, hidden) {
		t.Errorf("the log shows a secret: %s", text)
	}
	for _, want := range []string{"password=[secret]", "!PANIC", "db.token=x", "credentials.bytes=abc"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing: %s", want, text)
		}
	}
	if strings.Contains(text, "not kept") {
		t.Error("a line of level DEBUG is kept")
	}
	l.end()
	log.Info("late")
	if strings.Contains(l.text().Head, "late") {
		t.Error("a line is kept after the end")
	}
}

func TestLog_OfAHandlerIsTheAttempts(t *testing.T) {
	t.Parallel()
	l := newLines(func() string { return "mark\n" })
	r := NewRegistry()
	Register(r, "task", func(ctx context.Context, _ Job[any]) (any, error) {
		Log(ctx).Info("from the handler")
		return nil, errors.New("no")
	})
	_, _ = r.Run(t.Context(), executor.Work{Task: "task", Log: l.logger(time.Now)})
	if text := l.text().Head; !strings.Contains(text, "from the handler") {
		t.Errorf("the log is %q", text)
	}
	Log(t.Context()).Info("dropped")
}

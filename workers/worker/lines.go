package worker

import (
	"bytes"
	"context"
	"encoding"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/secret"
	"punctual/shared/text"
)

// Log returns the logger of the attempt whose handler has this context. Its lines, of level INFO and above, are kept
// with the attempt: the first and the last 32 KiB of each start. Readers of the job see them some seconds later. What
// looks like a secret is masked. An attempt without lines costs nothing. In a context of no attempt, the logger drops
// everything.
func Log(ctx context.Context) *slog.Logger {
	if l, ok := ctx.Value(logKey{}).(*slog.Logger); ok && l != nil {
		return l
	}
	return slog.New(slog.DiscardHandler)
}

type logKey struct{}

func withLog(ctx context.Context, l *slog.Logger) context.Context {
	return context.WithValue(ctx, logKey{}, l)
}

// lines are the lines of one start, as far as they are kept. What a handler writes is bounded: a line is cut, and of
// all lines the first and the last bytes are held in memory.
type lines struct {
	mark func() string // the line before the first one
	// grown has a value while lines wait to be written to the store.
	grown chan struct{}

	mu     sync.Mutex
	head   []byte
	full   bool // the next line goes to tail
	tail   []byte
	tailAt int64 // position of the first byte of tail
	ended  bool
}

func newLines(mark func() string) *lines { return &lines{mark: mark, grown: make(chan struct{}, 1)} }

// Write takes one line as slog.TextHandler writes it.
func (l *lines) Write(b []byte) (int, error) {
	line := plainLine(b)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return len(b), nil
	}
	if len(l.head) == 0 {
		l.head = append(l.head, l.mark()...)
	}
	l.add(line)
	select {
	case l.grown <- struct{}{}:
	default: // it has one
	}
	return len(b), nil
}

// plainLine leaves out the names that slog gives to time, level and message, and cuts the line.
func plainLine(b []byte) []byte {
	var line []byte
	for _, name := range []string{"time=", "level=", "msg="} {
		value, after, _ := bytes.Cut(bytes.TrimPrefix(b, []byte(name)), []byte(" "))
		if name == "msg=" {
			line = append(line, bytes.TrimPrefix(b, []byte(name))...)
			break
		}
		line, b = append(append(line, value...), ' '), after
	}
	if len(line) > contract.MaxLogLine {
		line = append([]byte(job.Cut(string(line), contract.MaxLogLine-1)), '\n')
	}
	return line
}

// add keeps a line. The tail grows to twice what is kept of it, so that its bytes are not moved for each line.
func (l *lines) add(line []byte) {
	if l.full = l.full || len(l.head)+len(line) > contract.LogHead; !l.full {
		l.head = append(l.head, line...)
		l.tailAt = int64(len(l.head))
		return
	}
	if len(l.tail)+len(line) > 2*contract.LogTail {
		l.trim()
	}
	l.tail = append(l.tail, line...)
}

// trim leaves the last lines that are kept.
func (l *lines) trim() {
	over := len(l.tail) - contract.LogTail
	if over <= 0 {
		return
	}
	over += bytes.IndexByte(l.tail[over-1:], '\n') // the end of the line that is at the bound
	l.tail, l.tailAt = append(l.tail[:0], l.tail[over:]...), l.tailAt+int64(over)
}

// text returns a copy of what is kept.
func (l *lines) text() job.LogText {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trim()
	return job.LogText{Head: string(l.head), Tail: string(l.tail), TailAt: l.tailAt}
}

// end drops what a handler writes from now on: its attempt has ended.
func (l *lines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

// logger returns a logger that writes lines, with times by that clock.
func (l *lines) logger(now func() time.Time) *slog.Logger {
	return slog.New(lineHandler{slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: shown}), now})
}

// lineHandler writes records with the time of the worker's clock.
type lineHandler struct {
	slog.Handler
	now func() time.Time
}

func (h lineHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Time = h.now()
	return h.Handler.Handle(ctx, r)
}

func (h lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return lineHandler{h.Handler.WithAttrs(attrs), h.now}
}

func (h lineHandler) WithGroup(name string) slog.Handler {
	return lineHandler{h.Handler.WithGroup(name), h.now}
}

// shown is an attribute as it is written: times in UTC, and no secrets.
func shown(groups []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindTime:
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	case slog.KindString:
		names := append(slices.Clone(groups), a.Key)
		if len(groups) == 0 && a.Key == slog.MessageKey {
			names = nil
		}
		a.Value = slog.StringValue(secret.Mask(names, cutText(a.Value.String())))
	case slog.KindAny:
		if _, ok := a.Value.Any().(slog.Level); !ok {
			a.Value = slog.StringValue(shownAny(append(slices.Clone(groups), a.Key), a.Value.Any()))
		}
	}
	return a
}

// cutText is as much of a text as a line can show, so that no more has to be searched for secrets.
func cutText(s string) string {
	if len(s) > contract.MaxLogLine {
		return job.Cut(s, contract.MaxLogLine)
	}
	return s
}

// shownAny is the text of a value. A panic of its methods is text, too: the handler's work goes on.
func shownAny(names []string, v any) (s string) {
	defer func() {
		if p := recover(); p != nil {
			s = "!PANIC"
		}
	}()
	switch v := v.(type) {
	case error:
		s = v.Error()
	case encoding.TextMarshaler:
		b, err := v.MarshalText()
		if err != nil {
			return "!ERROR"
		}
		s = string(b)
	case []byte:
		s = string(v)
	case fmt.Stringer:
		s = v.String()
	default:
		s = fmt.Sprintf("%+v", v)
		if body, err := text.JSON(v); err == nil && secret.InJSON(names, body) {
			return secret.Masked
		}
	}
	return secret.Mask(names, cutText(s))
}

package memory_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/conformance"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/store"
)

// reopened is a World that is closed and opened again before every call that finds it at rest: whatever a call
// has answered must then come from the files.
type reopened struct {
	dir string
	o   memory.Options

	mu    sync.Mutex
	calls int
	w     *memory.World
	fatal func(...any)
}

func reopening(t *testing.T) *reopened {
	t.Helper()
	r := &reopened{dir: t.TempDir(), o: memory.Options{LogSize: 4 << 10}, fatal: t.Fatal}
	r.w = keeping(t, r.dir, r.o)
	t.Cleanup(func() { r.w.Close() })
	return r
}

func keeping(t testing.TB, dir string, o memory.Options) *memory.World {
	t.Helper()
	w, err := memory.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// use returns the World for one call.
func (r *reopened) use() (*memory.World, func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls == 0 {
		r.w.Close()
		w, err := memory.Open(r.dir, r.o)
		if err != nil {
			r.fatal(err)
		}
		r.w = w
	}
	r.calls++
	return r.w, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls--
	}
}

func (r *reopened) Get(ctx context.Context, ref item.Ref) (item.Item, error) {
	w, done := r.use()
	defer done()
	return w.Table().Get(ctx, ref)
}

func (r *reopened) GetMany(ctx context.Context, refs []item.Ref) ([]item.Item, error) {
	w, done := r.use()
	defer done()
	return w.Table().GetMany(ctx, refs)
}

func (r *reopened) Write(ctx context.Context, write item.Write) (item.Item, error) {
	w, done := r.use()
	defer done()
	return w.Table().Write(ctx, write)
}

func (r *reopened) Commit(ctx context.Context, writes ...item.Write) error {
	w, done := r.use()
	defer done()
	return w.Table().Commit(ctx, writes...)
}

func (r *reopened) Query(ctx context.Context, q item.Query) (item.Page, error) {
	w, done := r.use()
	defer done()
	return w.Table().Query(ctx, q)
}

func (r *reopened) Identity(ctx context.Context, table string) (item.Identity, error) {
	w, done := r.use()
	defer done()
	return w.Table().Identity(ctx, table)
}

func (r *reopened) Send(ctx context.Context, queue string, out ...message.Outgoing) error {
	w, done := r.use()
	defer done()
	return w.Queues().Send(ctx, queue, out...)
}

func (r *reopened) Receive(ctx context.Context, queue string, most int, wait,
	visibility time.Duration) ([]message.Delivery, error) {
	w, done := r.use()
	defer done()
	return w.Queues().Receive(ctx, queue, most, wait, visibility)
}

func (r *reopened) Delete(ctx context.Context, queue string, receipts ...string) error {
	w, done := r.use()
	defer done()
	return w.Queues().Delete(ctx, queue, receipts...)
}

func (r *reopened) SetVisibility(ctx context.Context, queue, receipt string, d time.Duration) error {
	w, done := r.use()
	defer done()
	return w.Queues().SetVisibility(ctx, queue, receipt, d)
}

func (r *reopened) Depth(ctx context.Context, queue string) (message.Depth, error) {
	w, done := r.use()
	defer done()
	return w.Queues().Depth(ctx, queue)
}

func (r *reopened) Arm(ctx context.Context, t message.Timer) error {
	w, done := r.use()
	defer done()
	return w.Timers().Arm(ctx, t)
}

// reopenedBlobs are the blobs of a reopened World, whose table has methods of the same names.
type reopenedBlobs struct{ *reopened }

func (r reopenedBlobs) Put(ctx context.Context, key string, body []byte) error {
	w, done := r.use()
	defer done()
	return w.Blobs().Put(ctx, key, body)
}

func (r reopenedBlobs) Get(ctx context.Context, key string) ([]byte, error) {
	w, done := r.use()
	defer done()
	return w.Blobs().Get(ctx, key)
}

func (r reopenedBlobs) Delete(ctx context.Context, key string) error {
	w, done := r.use()
	defer done()
	return w.Blobs().Delete(ctx, key)
}

func TestOpen_ConformsToAWSAlthoughItIsClosedBeforeEveryCall(t *testing.T) {
	t.Parallel()
	t.Run("tables behave as DynamoDB", func(t *testing.T) {
		t.Parallel()
		conformance.Table(t, func(t *testing.T) store.Table { return reopening(t) }, virtual)
	})
	t.Run("queues behave as SQS", func(t *testing.T) {
		t.Parallel()
		conformance.Queue(t, func(t *testing.T) message.Queues { return reopening(t) }, virtual)
	})
	t.Run("timers behave as EventBridge Scheduler", func(t *testing.T) {
		t.Parallel()
		conformance.Timer(t, func(t *testing.T) conformance.TimerBench {
			r := reopening(t)
			return conformance.TimerBench{Timers: r, Queues: r,
				Armed: func(_ context.Context, name string) (message.Timer, bool, error) {
					w, done := r.use()
					defer done()
					armed := w.Timers().Armed()
					n := slices.IndexFunc(armed, func(t message.Timer) bool { return t.Name == name })
					if n < 0 {
						return message.Timer{}, false, nil
					}
					return armed[n], true, nil
				}}
		}, virtual)
	})
	t.Run("blobs behave as S3", func(t *testing.T) {
		t.Parallel()
		conformance.Blob(t, func(t *testing.T) store.Blobs { return reopenedBlobs{reopening(t)} }, virtual)
	})
}

// textRow is an item of the jobs table, which has a stream, with some text in it.
func textRow(n int, text string) item.Write {
	pk, id := fmt.Sprintf("acme#%d", n%4), fmt.Sprintf("j-%d", n)
	return item.Write{Ref: item.Ref{Table: contract.Jobs, PK: pk, SK: id}, Name: "put",
		Put: item.Item{"pk": pk, "job_id": id, "text": text, "n": int64(n)}}
}

func text(t *testing.T, w *memory.World, n int) string {
	t.Helper()
	i, err := w.Table().Get(t.Context(), textRow(n, "").Ref)
	if err != nil {
		t.Fatal(err)
	}
	return i.Str("text")
}

// streamed are the texts that the stream shows after a record.
func streamed(t *testing.T, w *memory.World, after string) (texts []string, last string) {
	t.Helper()
	changes, err := w.Table().Stream(t.Context(), after, 100, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		texts, last = append(texts, c.New.Str("text")), c.Seq
	}
	return texts, last
}

func TestOpen_StreamsAgainWhatIsNotHandled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, size := range []int64{0, 1} { // the second time, from a snapshot
		w := keeping(t, dir, memory.Options{LogSize: size})
		write(t, w, textRow(1, "a"), textRow(2, "b"), textRow(3, "c"))
		_, last := streamed(t, w, "")
		if more, _ := streamed(t, w, last); len(more) > 0 { // which says that all before are handled
			t.Errorf("read again at once: %v", more)
		}
		write(t, w, textRow(1, "d"), textRow(2, "e"))
		w.Close()
		w = keeping(t, dir, memory.Options{LogSize: size})
		texts, next := streamed(t, w, "")
		if strings.Join(texts, "") != "de" || next <= last {
			t.Errorf("after the end at %s: %v to %s", last, texts, next)
		}
		write(t, w, textRow(1, "a"), textRow(2, "b"), textRow(3, "x"))
		_, last = streamed(t, w, "")
		_, _ = streamed(t, w, last)
		w.Close()
	}
}

func TestOpen_BoundsItsFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := memory.Options{LogSize: 64 << 10, Unkept: func(err error) { t.Error(err) }}
	w := keeping(t, dir, o)
	held := func() (size int64) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if info, err := e.Info(); err == nil { // it may be gone by now
				size += info.Size()
			}
		}
		return size
	}
	written, handled := int64(0), ""
	for n, end := 0, time.Now().Add(time.Minute); n < 1000 || held() > 3*o.LogSize; n++ {
		write(t, w, textRow(n%10, fmt.Sprint(n, strings.Repeat(".", 200))))
		if _, last := streamed(t, w, handled); last != "" {
			handled = last
		}
		if written = int64(n); time.Now().After(end) {
			t.Fatalf("%d bytes after %d writes", held(), n)
		}
	}
	w.Close()
	w = keeping(t, dir, o)
	defer w.Close()
	for n := range 10 {
		last := written - (written-int64(n))%10 // the last write of this row
		if got := text(t, w, n); !strings.HasPrefix(got, fmt.Sprint(last, ".")) {
			t.Errorf("row %d is %.8q, want %d", n, got, last)
		}
	}
}

// While a snapshot is written, rows change that are in it: each of these changes is in the log after it, and is read
// from the stream exactly once.
func TestOpen_StreamsOnceWhatChangesDuringASnapshot(t *testing.T) {
	t.Parallel()
	const rows, writes = 500, 5000
	o := memory.Options{LogSize: 64 << 10, Unkept: func(err error) { t.Error(err) }}
	dir := t.TempDir()
	w := keeping(t, dir, o)
	handled := ""
	for n := range writes {
		write(t, w, textRow(n%rows, fmt.Sprint(n)))
		if n == writes/2 {
			_, handled = streamed(t, w, handled)
		}
	}
	_, _ = streamed(t, w, handled) // which says that those up to there are handled
	w.Close()
	w = keeping(t, dir, o)
	defer w.Close()
	for want, after := 100, ""; want < writes; {
		texts, last := streamed(t, w, after)
		for _, got := range texts {
			if got != fmt.Sprint(want) {
				t.Fatalf("the stream shows write %s, want %d", got, want)
			}
			want++
		}
		if after = last; last == "" {
			t.Fatalf("the stream ends before write %d", want)
		}
	}
}

// logFile is the path of the only log of dir.
func logFile(t *testing.T, dir string) string {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("%v %v", logs, err)
	}
	return logs[0]
}

func TestOpen_TakesEachLineAsAWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := keeping(t, dir, memory.Options{})
	write(t, w, textRow(1, "first"))
	if err := w.Table().Commit(t.Context(), textRow(1, "second"), textRow(2, "second")); err != nil {
		t.Fatal(err)
	}
	w.Close()
	path := logFile(t, dir)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte{'\n'})
	begun := len(whole) - len(lines[len(lines)-2])
	for cut := begun; cut < len(whole); cut++ {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		w := keeping(t, dir, memory.Options{})
		if a, b := text(t, w, 1), text(t, w, 2); a != "first" || b != "" {
			t.Fatalf("cut at byte %d of %d: %q and %q", cut, len(whole), a, b)
		}
		write(t, w, textRow(3, "third"))
		w.Close()
		w = keeping(t, dir, memory.Options{})
		if a, b := text(t, w, 1), text(t, w, 3); a != "first" || b != "third" {
			t.Fatalf("written on after a cut at byte %d: %q and %q", cut, a, b)
		}
		w.Close()
	}
}

func TestOpen_LosesNoMessageOnItsWayToTheDeadLetterQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		w := keeping(t, dir, memory.Options{LogSize: 1}) // a snapshot at almost every change
		defer func() { w.Close() }()
		const queue = contract.ReportQueue
		must(t, w.Queues().Send(t.Context(), queue, message.Outgoing{Body: "poison"}))
		all := contract.Queues()
		spec := all[slices.IndexFunc(all, func(q contract.Queue) bool { return q.Name == queue })]
		for range spec.MaxReceives + 1 {
			if _, err := w.Queues().Receive(t.Context(), queue, 10, 0, time.Second); err != nil {
				t.Fatal(err)
			}
			w.Close()
			w = keeping(t, dir, memory.Options{LogSize: 1})
			time.Sleep(2 * time.Second)
		}
		got, err := w.Queues().Receive(t.Context(), spec.DeadLetter, 10, 0, 0)
		if err != nil || len(got) != 1 || got[0].Body != "poison" || got[0].Source != queue {
			t.Errorf("%v %v", got, err)
		}
		if moved, err := w.Queues().StartMoveTask(t.Context(), spec.DeadLetter, ""); err != nil || moved != 0 {
			t.Errorf("moved %d in flight: %v", moved, err)
		}
		time.Sleep(2 * time.Minute)
		if moved, err := w.Queues().StartMoveTask(t.Context(), spec.DeadLetter, ""); err != nil || moved != 1 {
			t.Errorf("moved %d: %v", moved, err)
		}
		w.Close()
		w = keeping(t, dir, memory.Options{})
		if d, err := w.Queues().Depth(t.Context(), queue); err != nil || d.Visible != 1 {
			t.Errorf("moved back: %+v %v", d, err)
		}
	})
}

func TestOpen_ChangesNothingThatItCannotWrite(t *testing.T) {
	t.Parallel()
	w := keeping(t, t.TempDir(), memory.Options{})
	write(t, w, textRow(1, "first"))
	w.Close()
	refuses(t, w)
	if w.Writable() == nil || w.Failed() != nil {
		t.Errorf("closed: writable %v, failed %v", w.Writable(), w.Failed())
	}
}

func TestOpen_ReleasesWhatWasInFlight(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := keeping(t, dir, memory.Options{})
	must(t, w.Queues().Send(t.Context(), contract.ReportQueue, message.Outgoing{Body: "taken"},
		message.Outgoing{Body: "delayed", Delay: time.Minute}))
	got, err := w.Queues().Receive(t.Context(), contract.ReportQueue, 10, 0, time.Hour)
	if err != nil || len(got) != 1 {
		t.Fatalf("%v %v", got, err)
	}
	w.Close()
	for _, released := range []bool{false, true} {
		w = keeping(t, dir, memory.Options{Released: released})
		d, err := w.Queues().Depth(t.Context(), contract.ReportQueue)
		if want := map[bool]int{true: 1}[released]; err != nil || d.Visible != want || d.InFlight != 1-want ||
			d.Delayed != 1 {
			t.Errorf("released %v: %+v %v", released, d, err)
		}
		w.Close()
	}
}

func TestOpen_FiresTimersWhoseTimeHasPassed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := keeping(t, dir, memory.Options{})
		at := time.Now().Add(time.Hour)
		if err := w.Timers().Arm(t.Context(), message.Timer{Name: "t", At: at, Body: "ring",
			MaxAge: 24 * time.Hour}); err != nil {
			t.Fatal(err)
		}
		w.Close()
		time.Sleep(8 * time.Hour)
		w = keeping(t, dir, memory.Options{})
		defer w.Close()
		got, err := w.Queues().Receive(t.Context(), contract.DispatchQueue, 10, 20*time.Second, 0)
		if err != nil || len(got) != 1 || got[0].Body != "ring" || time.Since(at) > 8*time.Hour {
			t.Errorf("%v %v", got, err)
		}
	})
}

// BenchmarkKept makes a write of a job's row into files.
func BenchmarkKept(b *testing.B) {
	w := keeping(b, b.TempDir(), memory.Options{})
	defer w.Close()
	n := 0
	for b.Loop() {
		n++
		pk, id := fmt.Sprintf("acme#%d", n%32), fmt.Sprintf("01J%022d", n)
		if _, err := w.Table().Write(b.Context(), item.Write{Ref: item.Ref{Table: contract.Jobs, PK: pk, SK: id},
			Put: jobRow(pk, id, fmt.Sprintf("2027-03-28T00:05#%d", n%64))}); err != nil {
			b.Fatal(err)
		}
	}
}

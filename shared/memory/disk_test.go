package memory_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/memory"
	"punctual/shared/message"
)

// disk is a folder whose disk can be full, or fail to sync.
type disk struct {
	memory.Folder

	mu      sync.Mutex
	full    bool
	badSync bool
	refused string // files whose names contain it cannot be made
}

func newDisk(t *testing.T) (*disk, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	folder, err := memory.Dir(path)
	must(t, err)
	return &disk{Folder: folder}, path
}

func (d *disk) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func (d *disk) Create(name string) (memory.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refused != "" && strings.Contains(name, d.refused) {
		return nil, &fs.PathError{Op: "open", Path: d.Path(name), Err: syscall.EACCES}
	}
	f, err := d.Folder.Create(name)
	return &diskFile{f, d}, err
}

func (d *disk) Append(name string) (memory.File, error) {
	f, err := d.Folder.Append(name)
	return &diskFile{f, d}, err
}

type diskFile struct {
	memory.File
	disk *disk
}

// Write writes half of what does not fit, as a full disk does.
func (f *diskFile) Write(b []byte) (int, error) {
	f.disk.mu.Lock()
	full := f.disk.full
	f.disk.mu.Unlock()
	if !full {
		return f.File.Write(b)
	}
	n, err := f.File.Write(b[:len(b)/2])
	return n, errors.Join(err, syscall.ENOSPC)
}

func (f *diskFile) Sync() error {
	f.disk.mu.Lock()
	bad := f.disk.badSync
	f.disk.badSync = false // Linux reports the failure of a write-back once
	f.disk.mu.Unlock()
	if bad {
		return syscall.EIO
	}
	return f.File.Sync()
}

// lost collects what Options.Lost gets.
type lost struct {
	mu   sync.Mutex
	errs []error
}

func (l *lost) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

func (l *lost) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.errs)
}

// refuses checks that every kind of change fails, and that nothing is changed.
func refuses(t *testing.T, w *memory.World) {
	t.Helper()
	before := text(t, w, 1)
	_, err := w.Table().Write(t.Context(), textRow(1, "refused"))
	if fault.KindOf(err) != fault.Unavailable || text(t, w, 1) != before {
		t.Errorf("a write: %v, and the row is %q", err, text(t, w, 1))
	}
	err = w.Table().Commit(t.Context(), textRow(1, "refused"), textRow(2, "refused"))
	if fault.KindOf(err) != fault.Unavailable || text(t, w, 1) != before {
		t.Errorf("a transaction: %v, and the row is %q", err, text(t, w, 1))
	}
	err = w.Queues().Send(t.Context(), contract.ReportQueue, message.Outgoing{Body: "x"})
	if _, unsent := errors.AsType[*message.Unsent](err); !unsent {
		t.Errorf("a message: %v", err)
	}
	if err := w.Blobs().Put(t.Context(), "k", nil); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a blob: %v", err)
	}
	err = w.Timers().Arm(t.Context(), message.Timer{Name: "t", At: time.Now().Add(time.Hour), Body: "x",
		MaxAge: time.Hour})
	if fault.KindOf(err) != fault.Unavailable || len(w.Timers().Armed()) > 0 {
		t.Errorf("a timer: %v", err)
	}
}

func TestOpen_ChangesNothingOnAFullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, path := newDisk(t)
		w, err := memory.OpenFolder(d, memory.Options{})
		must(t, err)
		write(t, w, textRow(1, "first"))
		must(t, w.Writable())
		d.set(func() { d.full = true })
		refuses(t, w)
		time.Sleep(2 * time.Second) // a probe of the disk counts for one
		if err := w.Writable(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("a full disk is writable: %v", err)
		}
		d.set(func() { d.full = false })
		write(t, w, textRow(2, "second"))
		time.Sleep(2 * time.Second)
		must(t, w.Writable())
		w.Close()
		must(t, w.Failed())
		w = keeping(t, path, memory.Options{})
		defer w.Close()
		if text(t, w, 1) != "first" || text(t, w, 2) != "second" {
			t.Errorf("opened again, the rows are %q and %q", text(t, w, 1), text(t, w, 2))
		}
	})
}

func TestOpen_GoesOnWithALogThatNoOtherCanFollow(t *testing.T) {
	t.Parallel()
	for _, refused := range []string{".log", ".snapshot"} {
		t.Run("files refused: "+refused, func(t *testing.T) {
			t.Parallel()
			d, path := newDisk(t)
			var unkept lost
			w, err := memory.OpenFolder(d, memory.Options{LogSize: 1, Unkept: unkept.add})
			must(t, err)
			d.set(func() { d.refused = refused })
			for n := range 10 {
				write(t, w, textRow(n, fmt.Sprint(n)))
			}
			w.Close()
			must(t, w.Failed())
			if unkept.count() == 0 {
				t.Error("no error says that the snapshot is missing")
			}
			w = keeping(t, path, memory.Options{})
			defer w.Close()
			for n := range 10 {
				if got := text(t, w, n); got != fmt.Sprint(n) {
					t.Errorf("row %d is %q", n, got)
				}
			}
		})
	}
}

//proof:of F80
func TestOpen_WritesNothingAfterAFailedSync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, _ := newDisk(t)
		var said lost
		w, err := memory.OpenFolder(d, memory.Options{Lost: said.add})
		must(t, err)
		write(t, w, textRow(1, "first"))
		d.set(func() { d.badSync = true })
		time.Sleep(1500 * time.Millisecond)
		refuses(t, w)
		if err := w.Writable(); !errors.Is(err, syscall.EIO) {
			t.Errorf("after a failed sync it is writable: %v", err)
		}
		w.Close()
		if err := w.Failed(); !errors.Is(err, syscall.EIO) || said.count() != 1 {
			t.Errorf("it ended with %v, and %d errors were told", err, said.count())
		}
	})
}

func TestOpen_SeesThatItsFilesAreGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		remove func(path string) error
		moved  bool // the log is still somewhere: what is written until it is looked for is not lost
	}{
		"the folder is removed": {os.RemoveAll, false},
		"the log is removed": {func(path string) error {
			return os.Remove(filepath.Join(path, "00000001.log"))
		}, false},
		"the folder has another name": {func(path string) error { return os.Rename(path, path+"-away") }, true},
		"another folder has its name": {func(path string) error {
			return errors.Join(os.Rename(path, path+"-away"), os.CopyFS(path, os.DirFS(path+"-away")))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, path := newDisk(t)
			var said lost
			w := keeping(t, path, memory.Options{Lost: said.add})
			write(t, w, textRow(1, "first"))
			must(t, c.remove(path))
			if c.moved && w.Writable() == nil {
				t.Error("it is writable")
			}
			refuses(t, w)
			if err := w.Writable(); err == nil {
				t.Error("it is writable")
			}
			w.Close()
			if w.Failed() == nil || said.count() != 1 {
				t.Errorf("it ended with %v, and %d errors were told", w.Failed(), said.count())
			}
		})
	}
	t.Run("at rest, within seconds", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			_, path := newDisk(t)
			var said lost
			w := keeping(t, path, memory.Options{Lost: said.add})
			defer w.Close()
			must(t, os.RemoveAll(path))
			time.Sleep(3 * time.Second)
			if said.count() != 1 {
				t.Errorf("%d errors were told", said.count())
			}
		})
	})
}

func TestOpen_RemovesNoFileOfSomebodyElse(t *testing.T) {
	t.Parallel()
	_, path := newDisk(t)
	others := []string{"notes.unfinished", "7.log", "app.log", "00000001.snapshot.bak", "x00000001.unfinished"}
	for _, name := range append(others, "00000003.unfinished", "00000003.snapshot.unfinished") {
		must(t, os.WriteFile(filepath.Join(path, name), []byte("mine"), 0o600))
	}
	w := keeping(t, path, memory.Options{LogSize: 1})
	for n := range 5 {
		write(t, w, textRow(n, "x"))
	}
	w.Close()
	for _, name := range others {
		if body, err := os.ReadFile(filepath.Join(path, name)); err != nil || string(body) != "mine" {
			t.Errorf("%s: %s %v", name, body, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(path, "0*.unfinished")); err != nil || len(left) > 0 {
		t.Errorf("left unfinished: %v %v", left, err)
	}
}

// full fills a folder with rows 0 to 99, and more of each kind; the newest nine rows are in the log.
func full(t *testing.T, path string) {
	t.Helper()
	w := keeping(t, path, memory.Options{})
	for n := range 90 {
		write(t, w, textRow(n, fmt.Sprint("text ", n)))
	}
	must(t, w.Blobs().Put(t.Context(), "k", []byte("blob")))
	must(t, w.Queues().Send(t.Context(), contract.ReportQueue, message.Outgoing{Body: "message"}))
	w.Close()
	w = keeping(t, path, memory.Options{LogSize: 1})
	write(t, w, textRow(90, "text 90"))
	w.Close()
	w = keeping(t, path, memory.Options{})
	for n := 91; n < 100; n++ {
		write(t, w, textRow(n, fmt.Sprint("text ", n)))
	}
	w.Close()
}

// images are the files of a folder by name.
func images(t *testing.T, path string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	entries, err := os.ReadDir(path)
	must(t, err)
	for _, e := range entries {
		if e.Type().IsRegular() {
			if all[e.Name()], err = os.ReadFile(filepath.Join(path, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// laid makes a folder of files.
func laid(t *testing.T, files map[string][]byte) string {
	t.Helper()
	path := t.TempDir()
	for name, body := range files {
		must(t, os.WriteFile(filepath.Join(path, name), body, 0o600))
	}
	return path
}

func fileWith(t *testing.T, files map[string][]byte, suffix string) string {
	t.Helper()
	found := ""
	for name := range files {
		if strings.HasSuffix(name, suffix) {
			if found != "" {
				t.Fatalf("there are %s and %s", found, name)
			}
			found = name
		}
	}
	if found == "" {
		t.Fatalf("there is no file %s", suffix)
	}
	return found
}

// refusedAt checks that a folder cannot be opened because of a file, and that it stays as it is.
func refusedAt(t *testing.T, what string, files map[string][]byte, file string) {
	t.Helper()
	path := laid(t, files)
	w, err := memory.Open(path, memory.Options{})
	if err == nil {
		w.Close()
	}
	if !errors.Is(err, memory.ErrDamaged) || !strings.Contains(err.Error(), filepath.Join(path, file)) {
		t.Errorf("%s: %v, want damage of %s", what, err, file)
	}
	after := images(t, path)
	for name, body := range files {
		if !bytes.Equal(after[name], body) {
			t.Errorf("%s: %s was changed from %d to %d bytes", what, name, len(body), len(after[name]))
		}
	}
}

//proof:of F80
func TestOpen_RefusesAnyByteThatIsNotAsItWasWritten(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	full(t, path)
	for format, files := range map[int]map[string][]byte{
		1: images(t, "testdata/format1"), 2: images(t, "testdata/format2"), 3: images(t, path),
	} {
		for _, suffix := range []string{".log", ".snapshot"} {
			name := fileWith(t, files, suffix)
			random := rand.New(rand.NewPCG(1, uint64(format)))
			offsets := []int{0, 7, 8, 9, 10, len(files[name]) - 1, len(files[name]) - 2} // the last is a line feed
			for range 60 {
				offsets = append(offsets, random.IntN(len(files[name])))
			}
			for n, at := range offsets {
				bad := map[string][]byte{}
				for other, body := range files {
					bad[other] = slices.Clone(body)
				}
				flip := byte(1 << random.IntN(7))
				if n%3 == 0 {
					flip = bad[name][at] ^ '\n' // makes it a line feed
				}
				if flip == 0 {
					flip = 0x40
				}
				bad[name][at] ^= flip
				refusedAt(t, fmt.Sprintf("format %d, %s, byte %d, flipped by %#x", format, suffix, at, flip), bad, name)
			}
		}
	}
}

func TestOpen_RefusesFilesThatLackSomething(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	full(t, path)
	files := images(t, path)
	log, snapshot := fileWith(t, files, ".log"), fileWith(t, files, ".snapshot")
	with := func(name string, change func(lines [][]byte) [][]byte) map[string][]byte {
		all := map[string][]byte{}
		for other, body := range files {
			all[other] = body
		}
		all[name] = bytes.Join(change(bytes.SplitAfter(slices.Clone(files[name]), []byte{'\n'})), nil)
		return all
	}
	for what, c := range map[string]struct {
		file   string
		change func(lines [][]byte) [][]byte
	}{
		"an empty snapshot": {snapshot, func([][]byte) [][]byte { return nil }},
		"an empty log":      {log, func([][]byte) [][]byte { return nil }},
		"a snapshot of zeros": {snapshot, func(l [][]byte) [][]byte {
			return [][]byte{make([]byte, len(bytes.Join(l, nil)))}
		}},
		"a log of zeros": {log, func(l [][]byte) [][]byte { return [][]byte{make([]byte, len(bytes.Join(l, nil)))} }},
		"a log that ends in zeros": {log, func(l [][]byte) [][]byte {
			return append(l, make([]byte, 100))
		}},
		"a snapshot without its last line": {snapshot, func(l [][]byte) [][]byte { return l[:len(l)-2] }},
		"a snapshot cut within a line": {snapshot, func(l [][]byte) [][]byte {
			return append(l[:len(l)-3], l[len(l)-3][:20])
		}},
		"a log without a line in the middle": {log, func(l [][]byte) [][]byte { return slices.Delete(l, 3, 4) }},
		"a log with a line twice":            {log, func(l [][]byte) [][]byte { return slices.Insert(l, 3, l[3]) }},
		"a log with two lines exchanged": {log, func(l [][]byte) [][]byte {
			l[3], l[4] = l[4], l[3]
			return l
		}},
		"a log without its first line": {log, func(l [][]byte) [][]byte { return l[1:] }},
		"all lines but the first two flipped": {log, func(l [][]byte) [][]byte {
			for _, line := range l[2:] {
				for n := range line {
					line[n] ^= 0x20
				}
			}
			return l
		}},
	} {
		refusedAt(t, what, with(c.file, c.change), c.file)
	}
	moved := map[string][]byte{"00000001.log": files[log]}
	refusedAt(t, "a log under another name", moved, "00000001.log")
	alone := map[string][]byte{snapshot: files[snapshot]}
	refusedAt(t, "a snapshot without its log", alone, log)
	refusedAt(t, "a log without its snapshot", map[string][]byte{log: files[log]}, "00000001.log")
	later := map[string][]byte{snapshot: files[snapshot], log: files[log], "00000009.log": files[log]}
	refusedAt(t, "a log is missing between others", later, "00000003.log")
}

func TestOpen_RefusesALogThatEndsBeforeTheNextBegins(t *testing.T) {
	t.Parallel()
	d, path := newDisk(t)
	d.refused = ".snapshot" // so that both logs stay
	w, err := memory.OpenFolder(d, memory.Options{LogSize: 600})
	must(t, err)
	for n := range 9 {
		write(t, w, textRow(n, fmt.Sprint(n)))
	}
	w.Close()
	files := images(t, path)
	if files["00000002.log"] == nil {
		t.Fatalf("there are only %d files", len(files))
	}
	lines := bytes.SplitAfter(files["00000001.log"], []byte{'\n'})
	files["00000001.log"] = bytes.Join(lines[:len(lines)-2], nil)
	refusedAt(t, "the first log lacks its last line", files, "00000002.log")
	files["00000001.log"] = files["00000001.log"][:len(files["00000001.log"])-3]
	refusedAt(t, "the first log ends within a line", files, "00000001.log")
}

func TestOpen_CutsOffATornRecordAndSaysSo(t *testing.T) {
	t.Parallel()
	_, path := newDisk(t)
	w := keeping(t, path, memory.Options{})
	write(t, w, textRow(1, "first"))
	w.Close()
	whole := images(t, path)["00000001.log"]
	f, err := os.OpenFile(filepath.Join(path, "00000001.log"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString("0123abcd 3 900 [{\"row\":")
	must(t, errors.Join(err, f.Close()))
	reported := ""
	w = keeping(t, path, memory.Options{Torn: func(path string, at, size int64) {
		reported = fmt.Sprint(filepath.Base(path), " ", at, " ", size)
	}})
	defer w.Close()
	if want := fmt.Sprint("00000001.log ", len(whole), " 23"); reported != want || text(t, w, 1) != "first" {
		t.Errorf("told %q, want %q; the row is %q", reported, want, text(t, w, 1))
	}
}

func TestOpen_ReadsOlderFormatsAndWritesTheNewest(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"format1", "format2"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir()
			must(t, os.CopyFS(path, os.DirFS(filepath.Join("testdata", format))))
			for _, when := range []string{"as it was", "opened once more"} {
				w := keeping(t, path, memory.Options{})
				for n, want := range map[int]string{0: "old 0", 1: "new 1", 2: "old 2", 7: "new 7"} {
					if got := text(t, w, n); got != want {
						t.Errorf("%s: row %d is %q, want %q", when, n, got, want)
					}
				}
				if body, err := w.Blobs().Get(t.Context(), "jobs/kept"); err != nil || string(body) != "a blob" {
					t.Errorf("%s: the blob is %s, %v", when, body, err)
				}
				if d, err := w.Queues().Depth(t.Context(), contract.ReportQueue); err != nil || d.Visible != 1 {
					t.Errorf("%s: %+v %v", when, d, err)
				}
				if armed := w.Timers().Armed(); len(armed) != 1 {
					t.Errorf("%s: %d timers", when, len(armed))
				}
				w.Close()
			}
			for name, body := range images(t, path) {
				if !bytes.Contains(body, []byte(`[{"format":3,`)) {
					t.Errorf("%s is not of format 3", name)
				}
			}
		})
	}
}

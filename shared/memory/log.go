package memory

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"punctual/shared/text"
)

// The files of a World that is kept:
//
//	00000007.snapshot   all that it held when log 7 began
//	00000007.log        what has changed since
//	00000008.log        only while, or after, snapshot 8 failed to be written
//
// A line is a checksum and a list of facts; it counts as a whole or not at all. When a log has grown as large as
// its snapshot the next one begins, and the snapshot for it is written beside the work.
const (
	logSuffix      = ".log"
	snapshotSuffix = ".snapshot"
	unfinished     = ".unfinished"
)

// logSize is how large, in bytes, a log becomes before a snapshot ends it, unless the snapshot is larger.
const logSize = 32 << 20

// syncEvery is how often the log is synced to the disk.
const syncEvery = time.Second

type log struct {
	dir   string
	least int64
	state func() []kept
	tell  func(error) // that a snapshot cannot be written

	mu      sync.Mutex // held while a change is written and made, so that lines are in the order of the changes
	file    *os.File
	number  int
	size    int64
	most    int64 // the size that ends this log
	synced  bool
	writing bool  // a snapshot is
	broken  error // why nothing can be written any more

	stop chan struct{}
	work sync.WaitGroup
}

// openLog loads what the files of dir hold and appends to them from then on.
func openLog(w *World, o Options, dir string) (*log, error) {
	l := &log{dir: dir, least: o.LogSize, most: o.LogSize, state: w.state, tell: o.Unkept, synced: true,
		stop: make(chan struct{})}
	if l.least == 0 {
		l.least, l.most = logSize, logSize
	}
	load := w.load
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	logs, snapshots, err := l.list()
	if err != nil {
		return nil, err
	}
	l.number = 1
	if len(snapshots) > 0 {
		l.number = snapshots[len(snapshots)-1]
		size, err := readLines(l.path(l.number, snapshotSuffix), false, func(k kept) error { return load(k, true) })
		if err != nil {
			return nil, err
		}
		l.most = max(l.least, size)
	}
	first := l.number
	logs = slices.DeleteFunc(logs, func(n int) bool { return n < first })
	for i, n := range logs {
		l.number = first + i
		path := l.path(l.number, logSuffix)
		if n != l.number {
			return nil, fmt.Errorf("%s is not there, but a later one is", path)
		}
		l.size, err = readLines(path, i == len(logs)-1, func(k kept) error { return load(k, false) })
		if err != nil {
			return nil, err
		}
	}
	l.file, err = os.OpenFile(l.path(l.number, logSuffix), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	// What follows the last whole line was never answered.
	if err := l.file.Truncate(l.size); err != nil {
		return nil, errors.Join(err, l.file.Close())
	}
	if l.size == 0 {
		if err := l.append(kept{Format: keptFormat}); err != nil {
			return nil, errors.Join(err, l.file.Close())
		}
	}
	l.work.Go(l.syncing)
	return l, nil
}

func (l *log) path(n int, suffix string) string {
	return filepath.Join(l.dir, fmt.Sprintf("%08d%s", n, suffix))
}

// list returns the numbers of the logs and snapshots, in order, and removes what was left unfinished.
func (l *log) list() (logs, snapshots []int, err error) {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		name, suffix := e.Name(), filepath.Ext(e.Name())
		n, err := strconv.Atoi(strings.TrimSuffix(name, suffix))
		switch {
		case suffix == unfinished:
			if err := os.Remove(filepath.Join(l.dir, name)); err != nil {
				return nil, nil, err
			}
		case err != nil:
		case suffix == logSuffix:
			logs = append(logs, n)
		case suffix == snapshotSuffix:
			snapshots = append(snapshots, n)
		}
	}
	slices.Sort(logs)
	slices.Sort(snapshots)
	return logs, snapshots, nil
}

// begin writes one line, and holds the lock if it could.
func (l *log) begin(facts []kept) error {
	l.mu.Lock()
	if err := l.write(facts); err != nil {
		l.mu.Unlock()
		return err
	}
	return nil
}

// write writes one line. The lock is held.
func (l *log) write(facts []kept) error {
	if len(facts) == 0 {
		return nil
	}
	if l.broken != nil {
		return l.broken
	}
	if l.size >= l.most && !l.writing {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	return l.append(facts...)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// line is the text of a list of facts.
func line(facts []kept) ([]byte, error) {
	body, err := text.JSON(facts)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(body)+10)
	out = fmt.Appendf(out, "%08x ", crc32.Checksum(body, castagnoli))
	return append(append(out, body...), '\n'), nil
}

func (l *log) append(facts ...kept) error {
	entry, err := line(facts)
	if err != nil {
		return err
	}
	n, err := l.file.Write(entry)
	if err == nil {
		l.size += int64(n)
		l.synced = false
		return nil
	}
	// Half a line must not stand before the next one.
	if undo := l.file.Truncate(l.size); undo != nil {
		l.broken = errors.Join(err, undo)
	}
	return err
}

// rotate begins the next log, and a snapshot for it beside the work. The lock is held.
func (l *log) rotate() error {
	if err := l.file.Sync(); err != nil {
		l.broken = err
		return err
	}
	next, err := os.OpenFile(l.path(l.number+1, logSuffix), os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	old, size, number := l.file, l.size, l.number
	l.file, l.size, l.number = next, 0, l.number+1
	if err := l.append(kept{Format: keptFormat}); err != nil {
		l.file, l.size, l.number = old, size, number
		return errors.Join(err, next.Close(), os.Remove(next.Name()))
	}
	_ = old.Close() // it is synced
	l.most, l.writing = l.least, true
	facts, n := l.state(), l.number
	l.work.Go(func() {
		size, err := l.save(n, facts)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.writing = false
		l.most = max(l.least, size)
		if err != nil && l.tell != nil {
			l.tell(fmt.Errorf("writing snapshot %d: %w", n, err))
		}
	})
	return nil
}

// save writes snapshot n and removes what it replaces. After an error the logs before it stay.
func (l *log) save(n int, facts []kept) (size int64, err error) {
	temporary := l.path(n, unfinished)
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for _, k := range slices.Concat([]kept{{Format: keptFormat}}, facts) {
		entry, err := line([]kept{k})
		if err != nil {
			return 0, errors.Join(err, f.Close(), os.Remove(temporary))
		}
		m, err := w.Write(entry)
		size += int64(m)
		if err != nil {
			break // Flush says it again
		}
	}
	if err := errors.Join(w.Flush(), f.Sync(), f.Close()); err != nil {
		return 0, errors.Join(err, os.Remove(temporary))
	}
	if err := os.Rename(temporary, l.path(n, snapshotSuffix)); err != nil {
		return 0, err
	}
	if err := l.syncDir(); err != nil {
		return size, err
	}
	logs, snapshots, err := l.list()
	for _, old := range logs {
		if old < n {
			err = errors.Join(err, os.Remove(l.path(old, logSuffix)))
		}
	}
	for _, old := range snapshots {
		if old < n {
			err = errors.Join(err, os.Remove(l.path(old, snapshotSuffix)))
		}
	}
	return size, err
}

// syncDir makes the names of the files last.
func (l *log) syncDir() error {
	d, err := os.Open(l.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// syncing syncs the log each second in which it was written.
func (l *log) syncing() {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-l.stop:
			return
		}
		l.mu.Lock()
		file, synced := l.file, l.synced
		l.synced = true
		l.mu.Unlock()
		if synced {
			continue
		}
		if err := file.Sync(); err != nil && !errors.Is(err, fs.ErrClosed) { // a log that has ended was synced
			l.mu.Lock()
			l.broken = err
			l.mu.Unlock()
		}
	}
}

var errClosed = errors.New("the files are closed")

// close syncs and closes the log, after the snapshot that is being written.
func (l *log) close() {
	if l == nil {
		return
	}
	close(l.stop)
	l.work.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		_ = l.file.Sync() // whoever needs it synced cannot know more than that the process has ended
	}
	_ = l.file.Close()
	l.broken = errClosed
}

// readLines calls each with the facts of a file, and returns how many bytes of it are whole lines. The end of the
// last log may be half a line.
func readLines(path string, last bool, each func(kept) error) (whole int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // it is only read
	for r, n := bufio.NewReaderSize(f, 1<<20), 1; ; n++ {
		entry, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(entry) == 0 {
			return whole, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return whole, err
		}
		facts, err := factsOf(entry)
		if err != nil {
			if last && !anyWhole(r) {
				return whole, nil
			}
			return whole, fmt.Errorf("%s: line %d, at byte %d, is damaged: %w", path, n, whole, err)
		}
		if n == 1 && (len(facts) != 1 || facts[0].Format != keptFormat) {
			return whole, fmt.Errorf("%s: it is of another format than %d", path, keptFormat)
		}
		for _, k := range facts {
			if err := each(k); err != nil {
				return whole, fmt.Errorf("%s: line %d: %w", path, n, err)
			}
		}
		whole += int64(len(entry))
	}
}

// anyWhole reports whether a whole line follows: what stands before it is no half line, then.
func anyWhole(r *bufio.Reader) bool {
	for {
		entry, err := r.ReadBytes('\n')
		if _, bad := factsOf(entry); bad == nil {
			return true
		}
		if err != nil {
			return false
		}
	}
}

func factsOf(entry []byte) ([]kept, error) {
	sum, body, ok := bytes.Cut(bytes.TrimSuffix(entry, []byte{'\n'}), []byte{' '})
	want, err := strconv.ParseUint(string(sum), 16, 32)
	if !ok || err != nil || !bytes.HasSuffix(entry, []byte{'\n'}) || crc32.Checksum(body, castagnoli) != uint32(want) {
		return nil, errors.New("its checksum is another")
	}
	var facts []kept
	err = json.Unmarshal(body, &facts)
	return facts, err
}

package memory

import (
	"bufio"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
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
// A record is a list of facts; it counts as a whole or not at all. When a log has grown as large as its snapshot, the
// next one begins and the snapshot for it is written, both in the background: no change waits for a large file. A file
// gets its name when it is synced: until then its name ends in .unfinished.
const (
	logSuffix      = ".log"
	snapshotSuffix = ".snapshot"
	unfinished     = ".unfinished"
)

// probeName is the file that shows whether the disk has space.
const probeName = "00000000" + unfinished

// logSize is how large, in bytes, a log becomes before a snapshot ends it, unless the snapshot is larger.
const logSize = 32 << 20

// syncEvery is how often the log is synced to the disk.
const syncEvery = time.Second

// A probe of the disk writes probeSize bytes, and its answer counts for probeAge.
const (
	probeSize = 64 << 10
	probeAge  = time.Second
)

type log struct {
	folder Folder
	least  int64
	state  func() snapshot
	unkept func(error) // is called when a snapshot cannot be written
	lost   func(error) // is called when nothing can be written any more

	mu      sync.Mutex // held while a change is written and made, so that records are in the order of the changes
	file    File
	number  int
	records int // in file
	size    int64
	most    int64  // the size that ends this log
	entry   []byte // the last line, whose memory is used for the next one
	synced  bool
	broken  error // why nothing can be written any more
	failed  error // as broken, unless the log was closed in order

	probing sync.Mutex
	probed  time.Time
	space   error // what the last probe found

	long chan struct{} // gets a value when the log has reached its size
	stop chan struct{}
	work sync.WaitGroup
}

// openLog loads what the files of a folder hold and appends to them from then on.
func openLog(w *World, o Options, folder Folder) (*log, error) {
	l := &log{folder: folder, least: o.LogSize, most: o.LogSize, state: w.state, unkept: o.Unkept, lost: o.Lost,
		synced: true, long: make(chan struct{}, 1), stop: make(chan struct{})}
	if l.least == 0 {
		l.least, l.most = logSize, logSize
	}
	found, err := list(folder)
	if err != nil {
		return nil, err
	}
	read := reading{folder: folder, load: w.load, built: w.table.build}
	if err := read.strictly(found); err != nil {
		return nil, err
	}
	l.most = max(l.least, read.snapshotSize)
	if read.last.name == "" {
		if err := l.start(1, 0); err != nil {
			return nil, err
		}
	} else if err := l.resume(read.last, o.Torn); err != nil {
		return nil, err
	}
	for _, name := range found.unfinished {
		if err := folder.Remove(name); err != nil {
			return nil, errors.Join(err, l.file.Close())
		}
	}
	l.work.Go(l.syncing)
	l.work.Go(l.compacting)
	return l, nil
}

// resume goes on with the newest log of a folder. The next one begins soon if it is of an older format.
func (l *log) resume(last fileRead, torn func(path string, at, size int64)) error {
	file, err := l.folder.Append(last.name)
	if err != nil {
		return err
	}
	l.file, l.number, l.records, l.size = file, last.number, last.records, last.whole
	if last.torn > 0 {
		// No call has been answered by the beginning of a record.
		if torn != nil {
			torn(l.folder.Path(last.name), last.whole, last.torn)
		}
		if err := errors.Join(file.Truncate(last.whole), file.Sync()); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	if last.format < keptFormat {
		l.long <- struct{}{}
	}
	return nil
}

func nameOf(n int, suffix string) string { return fmt.Sprintf("%08d%s", n, suffix) }

// files are the names in a folder that are ours.
type files struct {
	logs, snapshots []int // in order
	unfinished      []string
}

var (
	ourFile       = text.Pattern(`^([0-9]{8,18})(\.log|\.snapshot)$`)
	ourUnfinished = text.Pattern(`^[0-9]{8,18}(\.log|\.snapshot)?\.unfinished$`)
)

// list returns the files of a folder that are ours. Others may lie there; they are left alone.
func list(folder Folder) (files, error) {
	names, err := folder.Names()
	var found files
	for _, name := range names {
		m := ourFile().FindStringSubmatch(name)
		switch {
		case ourUnfinished().MatchString(name):
			found.unfinished = append(found.unfinished, name)
			continue
		case m == nil:
			continue
		}
		n, _ := strconv.Atoi(m[1]) // up to 18 digits
		if m[2] == logSuffix {
			found.logs = append(found.logs, n)
		} else {
			found.snapshots = append(found.snapshots, n)
		}
	}
	slices.Sort(found.logs)
	slices.Sort(found.snapshots)
	return found, err
}

// begin writes one record, and holds the lock if it could.
func (l *log) begin(facts []kept) error {
	buffer := bodies.Get().(*[]byte)
	body, err := encoded((*buffer)[:0], facts)
	if err != nil {
		return err
	}
	defer func() {
		if cap(body) <= batchSize {
			*buffer = body
			bodies.Put(buffer)
		}
	}()
	l.mu.Lock()
	if err := l.append(body); err != nil {
		l.mu.Unlock()
		return err
	}
	return nil
}

// bodies are buffers for bodies of records.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

// write writes one record. The lock is held.
func (l *log) write(facts []kept) error {
	body, err := encoded(nil, facts)
	if err != nil {
		return err
	}
	return l.append(body)
}

// breaks ends all writing: what was written cannot be relied on, or no reader will find it. The lock is held.
func (l *log) breaks(err error) error {
	if l.broken == nil {
		l.broken, l.failed = err, err
		if l.lost != nil {
			l.lost(err)
		}
	}
	return err
}

// append writes a record to the log. After an error the log is as it was, or nothing can be written any more. The lock
// is held.
func (l *log) append(body []byte) error {
	if len(body) == 0 {
		return nil
	}
	if l.broken != nil {
		return l.broken
	}
	entry := appendLine(l.entry[:0], l.records+1, body)
	if l.entry = entry; cap(entry) > batchSize {
		l.entry = nil
	}
	if _, err := l.file.Write(entry); err != nil {
		// Half a record must not precede the next one.
		if undo := l.file.Truncate(l.size); undo != nil {
			return l.breaks(errors.Join(err, undo))
		}
		return err
	}
	// A removed file takes writes without an error.
	if err := l.file.Linked(); err != nil {
		return l.breaks(fmt.Errorf("the log is gone: %w", err))
	}
	l.size += int64(len(entry))
	l.records++
	l.synced = false
	if l.size >= l.most {
		select {
		case l.long <- struct{}{}:
		default: // it is known
		}
	}
	return nil
}

// start makes log n and writes to it from then on; before is the number of records in the log before it.
func (l *log) start(n, before int) error {
	name := nameOf(n, logSuffix)
	file, size, err := l.finish(name, slices.Values([]kept{{Format: keptFormat, File: n, Before: before}}))
	if err != nil {
		return err
	}
	l.file, l.number, l.records, l.size = file, n, 1, size
	return nil
}

// finish writes a file, one record for each fact, syncs it and gives it its name. After an error there is no such file,
// or nothing can be written any more.
func (l *log) finish(name string, facts iter.Seq[kept]) (f File, size int64, err error) {
	temporary := name + unfinished
	f, err = l.folder.Create(temporary)
	if err != nil {
		return nil, 0, err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	var body, entry []byte
	n := 0
	for k := range facts {
		n++
		if body, err = encoded(body[:0], []kept{k}); err != nil {
			return nil, 0, errors.Join(err, f.Close(), l.folder.Remove(temporary))
		}
		entry = appendLine(entry[:0], n, body)
		m, err := w.Write(entry)
		size += int64(m)
		if err != nil {
			break // Flush returns it
		}
	}
	if err := errors.Join(w.Flush(), f.Sync()); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("writing %s: %w", l.folder.Path(name), err), f.Close(),
			l.folder.Remove(temporary))
	}
	err = l.folder.Rename(temporary, name)
	if err == nil {
		err = l.folder.Sync()
	}
	if err != nil {
		// Whether the file has its name now is not known.
		return nil, 0, errors.Join(errUnnamed, fmt.Errorf("naming %s: %w", l.folder.Path(name), err), f.Close())
	}
	return f, size, nil
}

// errUnnamed is in the error of a file that may or may not have its name.
var errUnnamed = errors.New("a file could not be named")

// compacting begins the next log, and writes the snapshot for it, whenever the log has reached its size.
func (l *log) compacting() {
	for {
		select {
		case <-l.long:
			l.compact()
			continue
		case <-l.stop:
		}
		select {
		case <-l.long:
			l.compact()
		default:
		}
		return
	}
}

func (l *log) compact() {
	l.mu.Lock()
	file := l.file
	l.mu.Unlock()
	synced := file.Sync() // so that the sync under the lock has little to write
	l.mu.Lock()
	if synced != nil {
		_ = l.breaks(fmt.Errorf("syncing a log: %w", synced))
	}
	if l.broken != nil {
		l.mu.Unlock()
		return
	}
	n := l.number + 1
	if err := l.rotate(); err != nil {
		l.most = l.size + l.least // until then no other is tried
		l.mu.Unlock()
		l.report(n, err)
		return
	}
	state := l.state()
	l.most = math.MaxInt64 // until the snapshot is written
	l.mu.Unlock()

	size, err := l.save(n, state.facts())
	l.mu.Lock()
	l.most = max(l.least, size)
	l.mu.Unlock()
	if err != nil {
		l.report(n, err)
	}
}

// report says that a snapshot was not written.
func (l *log) report(n int, err error) {
	if l.unkept != nil {
		l.unkept(fmt.Errorf("writing snapshot %d: %w", n, err))
	}
}

// rotate begins the next log. The lock is held.
func (l *log) rotate() error {
	if err := l.file.Sync(); err != nil {
		return l.breaks(err)
	}
	old := l.file
	if err := l.start(l.number+1, l.records); err != nil {
		if errors.Is(err, errUnnamed) { // the next log may be there, and what is written to this one would be lost
			return l.breaks(err)
		}
		return err
	}
	_ = old.Close() // it is synced
	l.synced = true
	return nil
}

// save writes snapshot n and removes what it replaces. After an error the logs before it stay.
func (l *log) save(n int, facts iter.Seq[kept]) (size int64, err error) {
	all := func(yield func(kept) bool) {
		count := 1
		if !yield(kept{Format: keptFormat, File: n}) {
			return
		}
		for k := range facts {
			count++
			if !yield(k) {
				return
			}
		}
		yield(kept{End: count})
	}
	f, size, err := l.finish(nameOf(n, snapshotSuffix), all)
	if err != nil {
		return 0, err
	}
	if err := f.Close(); err != nil {
		return 0, err
	}
	found, err := list(l.folder)
	for _, old := range found.logs {
		if old < n {
			err = errors.Join(err, l.folder.Remove(nameOf(old, logSuffix)))
		}
	}
	for _, old := range found.snapshots {
		if old < n {
			err = errors.Join(err, l.folder.Remove(nameOf(old, snapshotSuffix)))
		}
	}
	return size, err
}

// syncing syncs the log each second in which it was written, and sees whether it is still there.
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
		file, name, synced, broken := l.file, nameOf(l.number, logSuffix), l.synced, l.broken
		l.synced = true
		l.mu.Unlock()
		if broken != nil {
			return
		}
		err := file.Present(name)
		if err == nil && !synced {
			err = file.Sync()
		}
		if err == nil {
			continue
		}
		l.mu.Lock()
		if l.file == file { // else the next log has begun: this one was synced, and may be removed
			_ = l.breaks(fmt.Errorf("syncing %s: %w", l.folder.Path(name), err))
		}
		l.mu.Unlock()
	}
}

// writable returns why nothing can be written now; nil if something can.
func (l *log) writable() error {
	l.mu.Lock()
	err := l.broken
	if err == nil {
		if err = l.file.Present(nameOf(l.number, logSuffix)); err != nil {
			err = l.breaks(fmt.Errorf("the log is gone: %w", err))
		}
	}
	l.mu.Unlock()
	if err != nil {
		return err
	}
	l.probing.Lock()
	defer l.probing.Unlock()
	if now := time.Now(); now.Sub(l.probed) >= probeAge {
		l.space = l.probe()
		l.probed = now
	}
	return l.space
}

// probe reports whether the disk has space for a file.
func (l *log) probe() error {
	f, err := l.folder.Create(probeName)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, probeSize))
	return errors.Join(err, f.Close(), l.folder.Remove(probeName))
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
		l.failed = errors.Join(l.file.Present(nameOf(l.number, logSuffix)), l.file.Sync())
	}
	_ = l.file.Close() // it is synced, or its failure is known
	l.broken = errClosed
}

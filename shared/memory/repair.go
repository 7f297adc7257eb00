package memory

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Survey is what Check or Repair found in the files of a World.
type Survey struct {
	Files   []SurveyedFile `json:"files"` // in the order in which they are read
	Damages []Damage       `json:"damages"`
	// Rows counts the items that can be read, by table. Messages, Timers and Blobs count as well.
	Rows     map[string]int `json:"rows"`
	Messages int            `json:"messages"`
	Timers   int            `json:"timers"`
	Blobs    int            `json:"blobs"`
	Kept     string         `json:"kept,omitempty"` // folder of the copies that Repair made; "": it changed nothing
}

// SurveyedFile is one file of a World.
type SurveyedFile struct {
	Path    string `json:"path"`
	Format  int    `json:"format"` // 0: unreadable
	Bytes   int64  `json:"bytes"`
	Torn    int64  `json:"torn"`    // bytes of an unfinished record at the end
	Records int    `json:"records"` // that are whole
	Damages int    `json:"damages"`
}

// Check reads the files of dir, which no World may have open, and changes nothing. Damage is no error.
func Check(path string) (Survey, error) {
	s, w, err := survey(path)
	if w != nil {
		w.Close()
	}
	return s, err
}

// Repair writes all that can be read of damaged files into new ones, from which Open begins. The files as they were
// are copied before into a folder of dir, which is never deleted. Without damage it changes nothing. No World
// may have dir open.
func Repair(path string, now time.Time) (Survey, error) {
	s, w, err := survey(path)
	if err != nil || len(s.Damages) == 0 {
		if w != nil {
			w.Close()
		}
		return s, err
	}
	defer w.Close()
	folder := dir(path)
	found, err := list(folder)
	if err != nil {
		return s, err
	}
	to := filepath.Join(path, "damaged-"+now.UTC().Format("20060102T150405.000Z"))
	if err := keepCopies(path, to, found); err != nil {
		return s, fmt.Errorf("copying the files to %s: %w", to, err)
	}
	s.Kept = to
	// The newest snapshot and its log come first: without the older files nothing is lost, wherever this is broken off.
	next := 1
	for _, n := range slices.Concat(found.logs, found.snapshots) {
		next = max(next, n+1)
	}
	l := &log{folder: folder}
	if err := l.start(next, 0); err != nil {
		return s, err
	}
	if err := l.file.Close(); err != nil {
		return s, err
	}
	if _, err := l.save(next, w.state().facts()); err != nil {
		return s, err
	}
	return s, nil
}

// keepCopies copies our files into a new folder.
func keepCopies(path, to string, found files) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	names := slices.Clone(found.unfinished)
	for _, n := range found.logs {
		names = append(names, nameOf(n, logSuffix))
	}
	for _, n := range found.snapshots {
		names = append(names, nameOf(n, snapshotSuffix))
	}
	for _, name := range names {
		if err := copyFile(filepath.Join(path, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return errors.Join(dir(to).Sync(), dir(path).Sync())
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it is only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// survey loads what can be read into a World.
func survey(path string) (s Survey, w *World, err error) {
	if info, err := os.Stat(path); err != nil {
		return s, nil, err
	} else if !info.IsDir() {
		return s, nil, &fs.PathError{Op: "reading the folder", Path: path, Err: errors.New("it is a file")}
	}
	folder := dir(path)
	found, err := list(folder)
	if err != nil {
		return s, nil, err
	}
	if len(found.logs)+len(found.snapshots) == 0 {
		return s, nil, fmt.Errorf("%s holds no data: no file is named as 00000001.log", path)
	}
	base, err := baseOf(folder, found.snapshots)
	if err != nil {
		return s, nil, err
	}
	w = New(Options{})
	read := reading{folder: folder, load: w.load, built: w.table.build, found: func(d Damage) error {
		s.Damages = append(s.Damages, d)
		return nil
	}}
	all, err := read.leniently(found, base)
	if err != nil {
		return s, w, err
	}
	for _, f := range all {
		s.Files = append(s.Files, SurveyedFile{Path: folder.Path(f.name), Format: f.format, Bytes: f.size, Torn: f.torn,
			Records: f.records, Damages: f.damaged})
	}
	s.count(w)
	return s, w, nil
}

// baseOf returns the snapshot to begin with: the newest without damage, or else the oldest; 0 if there is none.
func baseOf(folder Folder, snapshots []int) (int, error) {
	for _, n := range slices.Backward(snapshots) {
		check := reading{folder: folder, load: func(kept, bool) error { return nil },
			found: func(Damage) error { return nil }}
		switch read, err := check.snapshot(n); {
		case err != nil:
			return 0, err
		case read.damaged == 0:
			return n, nil
		}
	}
	if len(snapshots) == 0 {
		return 0, nil
	}
	return snapshots[0], nil
}

// leniently loads all that can be read, beginning with snapshot base.
func (r *reading) leniently(found files, base int) (all []fileRead, err error) {
	if base > 0 {
		read, err := r.snapshot(base)
		if err != nil {
			return nil, err
		}
		all = append(all, read)
	}
	first := max(base, 1)
	logs := slices.DeleteFunc(slices.Clone(found.logs), func(n int) bool { return n < first })
	if len(logs) == 0 {
		_ = r.found(Damage{Path: r.folder.Path(nameOf(first, logSuffix)), Why: "is missing"}) // it returns no error
	}
	read, err := r.allLogs(logs, first)
	return append(all, read...), err
}

func (s *Survey) count(w *World) {
	s.Rows = map[string]int{}
	for name, space := range w.table.spaces {
		for n := range space.buckets {
			s.Rows[name] += len(space.buckets[n].rows)
		}
	}
	for _, q := range w.queues.queues {
		s.Messages += len(q.byID)
	}
	s.Timers, s.Blobs = len(w.timers.armed), len(w.blobs.bodies)
}

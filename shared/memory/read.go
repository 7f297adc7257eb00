package memory

import (
	"errors"
	"fmt"
	"slices"
)

// reading reads the files of a folder.
type reading struct {
	folder Folder
	load   func(k kept, snapshot bool) error // takes over a fact
	found  func(Damage) error                // gets what is wrong; its error ends the reading
	built  func()                            // is called after a snapshot; nil: nothing is

	snapshotSize int64
	last         fileRead // the newest log; the zero value if there is none
}

// fileRead is what was read of one file.
type fileRead struct {
	name    string
	number  int
	format  int // 0 where not even that can be read
	records int
	size    int64
	whole   int64 // bytes that come before a torn record
	torn    int64 // bytes of a torn record
	damaged int   // how often r.found was called
}

// Damage is something in the files of a World that is not as it was written.
type Damage struct {
	Path string `json:"path"`
	At   int64  `json:"at"`
	Size int64  `json:"size"` // in bytes; 0: it is not about some of them
	Why  string `json:"why"`
}

// Error says where the damage is.
func (d Damage) Error() string {
	if d.Size == 0 {
		return d.Path + " " + d.Why
	}
	return fmt.Sprintf("%s is damaged at byte %d: %s", d.Path, d.At, d.Why)
}

// Is makes a Damage an [ErrDamaged].
func (d Damage) Is(target error) bool { return target == ErrDamaged }

// ErrDamaged is in the error of Open for files that are not as they were written, but for a torn last record.
var ErrDamaged = errors.New("the files are damaged")

// strictly loads the newest snapshot and the logs since, and returns the first damage as an error.
func (r *reading) strictly(found files) error {
	r.found = func(d Damage) error { return d }
	base := 1
	if n := len(found.snapshots); n > 0 {
		base = found.snapshots[n-1]
		read, err := r.snapshot(base)
		if err != nil {
			return err
		}
		r.snapshotSize = read.size
	}
	logs := slices.DeleteFunc(slices.Clone(found.logs), func(n int) bool { return n < base })
	if len(logs) == 0 && len(found.snapshots) > 0 {
		return r.found(Damage{Path: r.folder.Path(nameOf(base, logSuffix)), Why: "is missing"})
	}
	_, err := r.allLogs(logs, base)
	return err
}

// allLogs reads logs, of which the first should be number first.
func (r *reading) allLogs(logs []int, first int) (all []fileRead, err error) {
	before := -1 // records of the log before; unknown
	for i, n := range logs {
		for ; first < n; first++ {
			before = -1
			missing := Damage{
				Path: r.folder.Path(nameOf(first, logSuffix)),
				Why:  "is missing, but a later one is there",
			}
			if err := r.found(missing); err != nil {
				return all, err
			}
		}
		first = n + 1
		read, err := r.file(nameOf(n, logSuffix), n, i == len(logs)-1, before, false)
		if err != nil {
			return all, err
		}
		all = append(all, read)
		r.last = read
		if before = read.records; read.damaged > 0 {
			before = -1
		}
	}
	return all, nil
}

func (r *reading) snapshot(n int) (fileRead, error) {
	read, err := r.file(nameOf(n, snapshotSuffix), n, false, -1, true)
	if r.built != nil && err == nil {
		r.built()
	}
	return read, err
}

// file reads one file. A last one may end in a torn record. before is how many records the log before it has,
// -1 if that is not known.
func (r *reading) file(name string, number int, last bool, before int, snapshot bool) (read fileRead, err error) {
	f, err := r.folder.Read(name)
	if err != nil {
		return read, err
	}
	defer func() { _ = f.Close() }() // it is only read
	read = fileRead{name: name, number: number}
	damage := func(at, size int64, why string, args ...any) error {
		read.damaged++
		return r.found(Damage{Path: r.folder.Path(name), At: at, Size: size, Why: fmt.Sprintf(why, args...)})
	}
	end, lines, ended := 0, 0, false
	err = records(f, func(rec recordRead) error {
		read.size += rec.size
		lines++
		if rec.torn && last {
			read.torn = rec.size
			return nil
		}
		read.whole = read.size
		switch {
		case rec.torn:
			return damage(rec.at, rec.size, "line %d ends too early", lines)
		case rec.err != nil:
			end++
			return damage(rec.at, rec.size, "line %d: %v", lines, rec.err)
		}
		read.records++
		if why := read.fits(rec, end+1); why != "" {
			if err := damage(rec.at, rec.size, "line %d: %s", lines, why); err != nil {
				return err
			}
		}
		end = rec.number
		for _, k := range rec.facts {
			if k.Format > 0 && k.Format <= keptFormat {
				read.format = k.Format
			}
			why := ""
			switch {
			case k.Format > 0:
				why = mismatch(k, number, before)
			case k.End > 0:
				ended = k.End == read.records-1
			default:
				if err := r.load(k, snapshot); err != nil {
					why = err.Error()
				}
			}
			if why != "" {
				if err := damage(rec.at, rec.size, "line %d: %s", lines, why); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return read, err
	}
	switch {
	case read.size == 0:
		return read, damage(0, 0, "is empty")
	case read.records == 0 && read.damaged == 0:
		return read, damage(0, read.size, "there is no whole record")
	case snapshot && (read.format > 1 && !ended || read.format == 1 && read.records < 2):
		return read, damage(read.whole, 0, "ends too early, at byte %d", read.whole)
	}
	return read, nil
}

// fits returns what is wrong with the place of a record in the file, of which number was expected; "" for nothing.
func (f *fileRead) fits(rec recordRead, number int) string {
	first := len(rec.facts) == 1 && rec.facts[0].Format > 0
	switch {
	case f.records == 1 && !first:
		return "the first record does not name the format"
	case f.records > 1 && rec.facts != nil && len(rec.facts) > 0 && rec.facts[0].Format > 0:
		return "the format is named twice"
	case f.format > 0 && (f.format == 1) != (rec.number == 0):
		return fmt.Sprintf("it is no record of format %d", f.format)
	case rec.number > 0 && rec.number != number:
		return fmt.Sprintf("record %d, where %d is expected", rec.number, number)
	}
	return ""
}

// mismatch returns what is wrong with the first record of file n; "" for nothing.
func mismatch(k kept, n, before int) string {
	switch {
	case k.Format < 1 || k.Format > keptFormat:
		return fmt.Sprintf("it is of format %d; this version reads 1 to %d", k.Format, keptFormat)
	case k.Format == 1:
	case k.File != n:
		return fmt.Sprintf("it was written as file %d", k.File)
	case before >= 0 && k.Before > 0 && k.Before != before:
		return fmt.Sprintf("the log before it had %d records, and has %d", k.Before, before)
	}
	return ""
}

package memory_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/memory"
)

var repairedAt = time.Date(2027, 3, 28, 1, 0, 0, 0, time.UTC)

func TestCheck_ShowsDamageAndChangesNothing(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	full(t, path)
	s, err := memory.Check(path)
	if err != nil || len(s.Damages) > 0 || s.Rows[contract.Jobs] != 100 || s.Messages != 1 || s.Blobs != 1 ||
		len(s.Files) != 2 {
		t.Errorf("without damage: %+v %v", s, err)
	}
	files := images(t, path)
	log := fileWith(t, files, ".log")
	bad := slices.Clone(files[log])
	at := bytes.Index(bad, []byte("text 95"))
	bad[at]++
	must(t, os.WriteFile(filepath.Join(path, log), append(bad, "01"...), 0o600))
	before := images(t, path)
	if s, err = memory.Check(path); err != nil || len(s.Damages) != 1 || s.Rows[contract.Jobs] != 99 {
		t.Fatalf("%+v %v", s, err)
	}
	if d := s.Damages[0]; d.Path != filepath.Join(path, log) || d.At > int64(at) || d.At+d.Size < int64(at) {
		t.Errorf("byte %d is damaged; it says %+v", at, d)
	}
	if f := s.Files[1]; f.Torn != 2 || f.Damages != 1 {
		t.Errorf("%+v", f)
	}
	for name, body := range images(t, path) {
		if !bytes.Equal(body, before[name]) {
			t.Errorf("%s was changed", name)
		}
	}
}

func TestCheck_RefusesWhatHoldsNoData(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	file := filepath.Join(path, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, path := range []string{path, file, filepath.Join(path, "nowhere")} {
		if _, err := memory.Check(path); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
	if _, err := os.Stat(filepath.Join(path, "nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Error("it made a folder")
	}
}

func TestRepair_SavesWhatCanBeReadAndKeepsTheOriginal(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	full(t, source)
	files := images(t, source)
	log, snapshot := fileWith(t, files, ".log"), fileWith(t, files, ".snapshot")
	change := func(name string, to func([]byte) []byte) func(map[string][]byte) {
		return func(all map[string][]byte) { all[name] = to(slices.Clone(all[name])) }
	}
	flip := func(text string) func([]byte) []byte {
		return func(b []byte) []byte {
			b[bytes.Index(b, []byte(text))] ^= 1
			return b
		}
	}
	for what, c := range map[string]struct {
		change func(map[string][]byte)
		rows   int // that are saved
	}{
		"a line in the middle of the log":      {change(log, flip("text 95")), 99},
		"a line in the middle of the snapshot": {change(snapshot, flip("text 42")), 99},
		"the first line of the log":            {change(log, flip("format")), 100},
		"the end of the log is flipped":        {change(log, lastFlipped), 99},
		"the log is zeros": {change(log, func(b []byte) []byte { return make([]byte, len(b)) }),
			91},
		"the log is empty":        {change(log, func([]byte) []byte { return nil }), 91},
		"the log is missing":      {func(all map[string][]byte) { delete(all, log) }, 91},
		"the snapshot is empty":   {change(snapshot, func([]byte) []byte { return nil }), 9},
		"the snapshot is missing": {func(all map[string][]byte) { delete(all, snapshot) }, 9},
		"the snapshot lacks its last two lines": {change(snapshot, func(b []byte) []byte { return b[:len(b)-40] }),
			100},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			bad := map[string][]byte{}
			for name, body := range files {
				bad[name] = body
			}
			c.change(bad)
			path := laid(t, bad)
			if w, err := memory.Open(path, memory.Options{}); !errors.Is(err, memory.ErrDamaged) {
				t.Errorf("before the repair: %v", err)
				if err == nil {
					w.Close()
				}
			}
			s, err := memory.Repair(path, repairedAt)
			if err != nil || len(s.Damages) == 0 || filepath.Dir(s.Kept) != path {
				t.Fatalf("%+v %v", s, err)
			}
			kept := images(t, s.Kept)
			for name, body := range bad {
				if !bytes.Equal(kept[name], body) {
					t.Errorf("%s is not kept as it was", name)
				}
			}
			w := keeping(t, path, memory.Options{})
			defer w.Close()
			saved := 0
			for n := range 100 {
				if text(t, w, n) == fmt.Sprint("text ", n) {
					saved++
				}
			}
			if saved != c.rows {
				t.Errorf("%d rows are saved, want %d: %v", saved, c.rows, s.Damages)
			}
			if reopened, err := memory.Repair(path, repairedAt.Add(time.Hour)); err != nil || reopened.Kept != "" {
				t.Errorf("repaired twice: %+v %v", reopened, err)
			}
		})
	}
}

// lastFlipped changes the last line feed into another byte.
func lastFlipped(b []byte) []byte { return append(b[:len(b)-1], 'x') }

func TestRepair_LeavesAWholeFolderAlone(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	full(t, path)
	before := images(t, path)
	s, err := memory.Repair(path, repairedAt)
	if err != nil || s.Kept != "" {
		t.Errorf("%+v %v", s, err)
	}
	for name, body := range images(t, path) {
		if !bytes.Equal(body, before[name]) || strings.Contains(name, "damaged") {
			t.Errorf("%s was changed", name)
		}
	}
}

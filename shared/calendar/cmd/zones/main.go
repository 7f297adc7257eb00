// Command zones builds shared/calendar/zoneinfo.zip from a wheel of PyPI's tzdata; make zones fetches the pinned one
// and calls it. With -second it writes what another source says of the same release, for a test to compare.
package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"punctual/shared/calendar"
)

func main() {
	wheel := flag.String("wheel", "", "wheel of PyPI's tzdata to build the rules from")
	second := flag.String("second", "", "folder of compiled zones of the same release from another source, for zdump")
	to := flag.String("to", "shared/calendar", "folder of the rules")
	flag.Parse()
	err := fmt.Errorf("want -wheel or -second")
	switch {
	case *wheel != "":
		err = build(*wheel, *to)
	case *second != "":
		err = compare(*second, filepath.Join(*to, "testdata", "zones.json"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "zones:", err)
		os.Exit(1)
	}
}

const folder = "tzdata/zoneinfo/"

// build copies the compiled zones of a wheel as they are, sorted, so that the same wheel always gives the same file.
func build(wheel, to string) error {
	r, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	slices.SortFunc(r.File, func(a, b *zip.File) int { return strings.Compare(a.Name, b.Name) })
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range r.File {
		name, inside := strings.CutPrefix(f.Name, folder)
		if base := path.Base(name); inside && (!strings.Contains(base, ".") || base == "tzdata.zi") {
			if err := copyTo(w, f, name); err != nil {
				return err
			}
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	sum := sha256.Sum256(out.Bytes())
	return errors.Join(
		os.WriteFile(filepath.Join(to, "zoneinfo.zip"), out.Bytes(), 0o644),
		os.WriteFile(filepath.Join(to, "zoneinfo.sha256"), []byte(hex.EncodeToString(sum[:])+"\n"), 0o644))
}

// copyTo copies a file as it is compressed.
func copyTo(w *zip.Writer, f *zip.File, name string) error {
	header := f.FileHeader
	header.Name = name
	part, err := w.CreateRaw(&header)
	if err != nil {
		return err
	}
	raw, err := f.OpenRaw()
	if err != nil {
		return err
	}
	_, err = io.Copy(part, raw)
	return err
}

// source is what zdump, a program of its own, reads in another package of the same release.
type source struct {
	Version string            `json:"version"`
	Zones   map[string]string `json:"zones"` // name → digest of its changes from 2000 to 2099
}

func compare(dir, to string) error {
	head, err := os.ReadFile(filepath.Join(dir, "tzdata.zi"))
	if err != nil {
		return err
	}
	line, _, _ := strings.Cut(string(head), "\n")
	s := source{Version: strings.TrimPrefix(line, "# version "), Zones: map[string]string{}}
	for name := range calendar.ZoneNames() {
		out, err := exec.Command("zdump", "-i", "-c", "2000,2100", filepath.Join(dir, name)).Output()
		if err != nil {
			return fmt.Errorf("zdump %s: %w", name, err)
		}
		if s.Zones[name], err = digest(string(out)); err != nil {
			return fmt.Errorf("zdump %s: %w", name, err)
		}
	}
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(to, append(text, '\n'), 0o644)
}

// change is a line of zdump -i: the local time of a change in the new offset, or "-" for the time before the first.
var change = regexp.MustCompile(`^(-|\d{4}-\d{2}-\d{2})\t(-|[0-9:]+)\t([+-]\d{2,6})(?:\t|$)`)

func digest(dump string) (string, error) {
	changes, last := "", int64(math.MinInt64)
	for line := range strings.Lines(dump) {
		m := change.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			continue // the first line names the zone
		}
		offset, err := seconds(m[3])
		if err != nil {
			return "", err
		}
		if offset == last {
			continue // only the zone's letters change
		}
		last = offset
		at := int64(0) // of the offset at the beginning
		if m[1] != "-" {
			clock := m[2] + ":00:00"
			local, err := time.Parse("2006-01-02 15:04:05", m[1]+" "+clock[:len("15:04:05")])
			if err != nil {
				return "", err
			}
			at = local.Unix() - offset
		}
		changes += fmt.Sprintln(at, offset)
	}
	if changes == "" {
		return "", errors.New("no offset is shown")
	}
	sum := sha256.Sum256([]byte(changes))
	return hex.EncodeToString(sum[:8]), nil
}

// seconds reads an offset such as +01, +0530 or -001608.
func seconds(offset string) (int64, error) {
	digits := offset[1:] + "0000"
	n := int64(0)
	for i, unit := range []int64{3600, 60, 1} {
		v, err := strconv.Atoi(digits[2*i : 2*i+2])
		if err != nil {
			return 0, err
		}
		n += int64(v) * unit
	}
	if offset[0] == '-' {
		n = -n
	}
	return n, nil
}

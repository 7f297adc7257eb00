package calendar

import (
	"archive/zip"
	"bufio"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"path"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"punctual/shared/contract"
)

// zoneinfo holds the compiled rules of the IANA time zone database, as PyPI's package tzdata carries them; zones.txt
// pins it, and make zones builds this file from it. It is embedded because time.LoadLocation prefers whatever files the
// host has: two hosts would then disagree about a time.
//
//go:embed zoneinfo.zip
var zoneinfo []byte

// Rules is a release of the IANA time zone database.
type Rules struct {
	// Version is its name, such as 2026f. Names sort by age.
	Version string
	// ReleasedAt is the day on which its package was made, in UTC: a day or two after the release.
	ReleasedAt time.Time
}

// Age returns how old the rules are at now; 0 before their release.
func (r Rules) Age(now time.Time) time.Duration { return max(0, now.Sub(r.ReleasedAt)) }

// Old reports whether the rules are older than contract.MaxZoneRulesAge at now.
func (r Rules) Old(now time.Time) bool { return r.Age(now) > contract.MaxZoneRulesAge }

// Zones returns the rules in use: the embedded ones, or newer ones that Renew has taken.
func Zones() Rules { return inUse().Rules }

// ZoneNames iterates over the names of the zones in use, in no order.
func ZoneNames() iter.Seq[string] { return maps.Keys(inUse().files) }

// maxZone bounds the compiled rules of one zone, and the text that names the release.
const maxZone = 1 << 20

// ruleSet is a release with its zones.
type ruleSet struct {
	Rules
	files map[string]*zip.File
	zones sync.Map // name → *zone; bounded by the number of zones
}

var (
	embedded = sync.OnceValue(func() *ruleSet {
		set, err := readRules(zoneinfo)
		if err != nil {
			panic("calendar: the embedded zone rules are damaged: " + err.Error())
		}
		return set
	})
	renewed atomic.Pointer[ruleSet]
)

func inUse() *ruleSet {
	if set := renewed.Load(); set != nil {
		return set
	}
	return embedded()
}

// Renew replaces the embedded rules in this process. data is a zip file of compiled zones with tzdata.zi among them,
// such as a wheel of PyPI's tzdata, or a zip of /usr/share/zoneinfo. A main calls it before the first calendar is
// parsed. Data that is damaged, that lacks a zone, or that is not newer than the embedded rules is refused with an
// error, and the rules in use stay.
func Renew(data []byte) error {
	set, err := renewal(data)
	if err == nil {
		renewed.Store(set)
	}
	return err
}

func renewal(data []byte) (*ruleSet, error) {
	set, err := readRules(data)
	if err != nil {
		return nil, err
	}
	if set.Version <= embedded().Version {
		return nil, fmt.Errorf("the rules are of %s, not newer than %s, which are built in", set.Version,
			embedded().Version)
	}
	for name := range embedded().files { // a stored schedule may name any of them
		if _, refused := set.find("", name); refused != nil {
			return nil, fmt.Errorf("the rules of %s are incomplete: %s", set.Version, refused.Detail)
		}
	}
	return set, nil
}

var (
	versionLine = regexp.MustCompile(`^# version ([0-9]{4}[a-z]{1,2})$`)
	zoneName    = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$`)
)

// readRules reads a zip file of compiled zones, in whatever folder of it tzdata.zi is.
func readRules(data []byte) (*ruleSet, error) {
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("reading zone rules: %w", err)
	}
	set := &ruleSet{files: map[string]*zip.File{}}
	folder := ""
	for _, f := range r.File {
		if path.Base(f.Name) == "tzdata.zi" && set.Version == "" {
			if set.Version, err = release(f); err != nil {
				return nil, err
			}
			year, month, dom := f.Modified.UTC().Date()
			set.ReleasedAt = time.Date(year, month, dom, 0, 0, 0, 0, time.UTC)
			folder = strings.TrimSuffix(f.Name, "tzdata.zi")
		}
	}
	if set.Version == "" {
		return nil, errors.New("reading zone rules: there is no tzdata.zi, which names the release")
	}
	for _, f := range r.File {
		name, inside := strings.CutPrefix(f.Name, folder)
		if inside && name != "Factory" && zoneName.MatchString(name) && f.UncompressedSize64 <= maxZone {
			set.files[name] = f
		}
	}
	return set, nil
}

// release returns the name of a release from the first line of its tzdata.zi.
func release(f *zip.File) (string, error) {
	r, err := f.Open()
	if err != nil {
		return "", fmt.Errorf("reading zone rules: %w", err)
	}
	defer func() { _ = r.Close() }()
	line := bufio.NewScanner(io.LimitReader(r, maxZone))
	line.Scan()
	m := versionLine.FindStringSubmatch(line.Text())
	if m == nil {
		return "", errors.New("reading zone rules: tzdata.zi does not begin with its release")
	}
	return m[1], nil
}

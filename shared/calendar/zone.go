package calendar

import (
	"archive/zip"
	"io"
	"math"
	"sort"
	"time"
)

var (
	// firstInstant and lastInstant bound all calendar arithmetic, in seconds.
	firstInstant = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	lastInstant  = time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
)

// zone is a time zone as the list of its changes. offset[i] seconds apply from at[i] until before
// at[i+1]; neighbours always differ.
type zone struct {
	loc    *time.Location
	at     []int64
	offset []int64
}

// zoneFiles returns the compiled zones in use by name.
func zoneFiles() map[string]*zip.File { return inUse().files }

const zoneAllowed = `an IANA name such as "Europe/Berlin" or "UTC"`

// Location returns the time zone of an IANA name, by the rules that calendars use. The error is an [*Error].
func Location(name string) (*time.Location, error) {
	z, err := findZone("timezone", name)
	if err != nil {
		return nil, err
	}
	return z.loc, nil
}

// findZone returns the zone of an IANA name, with exact spelling.
func findZone(field, name string) (*zone, *Error) { return inUse().find(field, name) }

func (s *ruleSet) find(field, name string) (*zone, *Error) {
	if z, ok := s.zones.Load(name); ok {
		return z.(*zone), nil
	}
	f, ok := s.files[name]
	if !ok {
		return nil, noZone(field, name)
	}
	loc, err := loadZone(name, f)
	if err != nil {
		return nil, refuse(field, CodeInvalidValue, zoneAllowed, "time zone %q cannot be read", name)
	}
	z, _ := s.zones.LoadOrStore(name, newZone(loc))
	return z.(*zone), nil
}

func loadZone(name string, f *zip.File) (*time.Location, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // read whole or not at all
	data, err := io.ReadAll(io.LimitReader(r, maxZone))
	if err != nil {
		return nil, err
	}
	return time.LoadLocationFromTZData(name, data)
}

func newZone(loc *time.Location) *zone {
	t := time.Unix(firstInstant, 0).In(loc)
	_, offset := t.Zone()
	z := &zone{loc: loc, at: []int64{math.MinInt64 / 2}, offset: []int64{int64(offset)}}
	for t.Unix() < lastInstant {
		_, end := t.ZoneBounds()
		if end.IsZero() {
			break
		}
		if !end.After(t) {
			// On 31 December of a leap year ZoneBounds ends its zone a day too early, before the
			// time that it was given.
			end = t.Add(time.Hour)
		}
		t = end.In(loc)
		if _, now := t.Zone(); now != offset {
			offset = now
			z.at = append(z.at, t.Unix())
			z.offset = append(z.offset, int64(offset))
		}
	}
	return z
}

// keepsChanging reports whether the clock of the zone changes each year, for as long as its rules are known.
func (z *zone) keepsChanging() bool { return z.at[len(z.at)-1] > lastInstant-2*366*day }

// find returns the index of the stretch that contains t, in seconds.
func (z *zone) find(t int64) int {
	return sort.Search(len(z.at)-1, func(i int) bool { return z.at[i+1] > t })
}

// end returns the first instant after stretch i.
func (z *zone) end(i int) int64 {
	if i+1 < len(z.at) {
		return z.at[i+1]
	}
	return math.MaxInt64
}

// wall returns the local time at t.
func (z *zone) wall(t int64) int64 { return t + z.offset[z.find(t)] }

func (z *zone) day(t int64) int64 { return floorDiv(z.wall(t), day) }

// instants returns the first and the last instant at which the local clock shows w: usually the
// same, and two in a repeated hour. When the clock skips w, ok is false and both are the first
// instant after the change.
func (z *zone) instants(w int64) (first, last int64, ok bool) {
	i := z.find(w - 2*day)
	for ; z.end(i) != math.MaxInt64 && w >= z.end(i)+z.offset[i]; i++ {
	}
	if w < z.at[i]+z.offset[i] && i > 0 {
		return z.at[i], z.at[i], false
	}
	first, last = w-z.offset[i], w-z.offset[i]
	if end := z.end(i); end != math.MaxInt64 && w >= end+z.offset[i+1] {
		last = w - z.offset[i+1]
	}
	return first, last, true
}

// dayStart returns the first instant of day d, also where the clock changes at its midnight.
func (z *zone) dayStart(d int64) int64 {
	first, _, _ := z.instants(d * day)
	return first
}

// repeats reports whether the clock shows the local time of t at another instant, too.
func (z *zone) repeats(t int64) bool {
	i := z.find(t)
	w := t + z.offset[i]
	return i > 0 && w < z.at[i]+z.offset[i-1] || z.end(i) != math.MaxInt64 && w >= z.end(i)+z.offset[i+1]
}

// changes reports whether wall times of the local day of t are missing or repeated.
func (z *zone) changes(t int64) bool {
	i := z.find(t)
	d := floorDiv(t+z.offset[i], day)
	on := func(i int) bool {
		if i == 0 || i == len(z.at) {
			return false
		}
		low, high := min(z.offset[i-1], z.offset[i]), max(z.offset[i-1], z.offset[i])
		return floorDiv(z.at[i]+low, day) <= d && d <= floorDiv(z.at[i]+high-1, day)
	}
	return on(i) || on(i+1)
}

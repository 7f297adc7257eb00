package calendar

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The second algorithm shares only the zone data with the first: it steps through real instants,
// asks the time package for the local time, and lists all instants at which each wall time was
// shown.

type bruteSpec struct {
	text           string
	sets           [6]map[int]bool // second minute hour dom month dow
	either, wild   bool
	seconds        bool
	missing, twice string // "" is the default
}

func newBruteSpec(text string) bruteSpec {
	fields := strings.Fields(text)
	s := bruteSpec{text: text, seconds: len(fields) == 6}
	if !s.seconds {
		fields = append([]string{"0"}, fields...)
	}
	bounds := [6][2]int{{0, 59}, {0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 7}}
	for i, field := range fields {
		s.sets[i] = map[int]bool{}
		for part := range strings.SplitSeq(field, ",") {
			base, stepText, stepped := strings.Cut(part, "/")
			step := 1
			if stepped {
				step, _ = strconv.Atoi(stepText)
			}
			low, high := bounds[i][0], bounds[i][1]
			if base != "*" {
				from, to, ranged := strings.Cut(base, "-")
				low, _ = strconv.Atoi(from)
				if ranged {
					high, _ = strconv.Atoi(to)
				} else if !stepped {
					high = low
				}
			}
			for v := low; v <= high; v += step {
				if i == 5 {
					s.sets[i][v%7] = true
				} else {
					s.sets[i][v] = true
				}
			}
		}
	}
	s.either = fields[3][0] != '*' && fields[5][0] != '*'
	s.wild = fields[1][0] == '*' || fields[2][0] == '*' || s.seconds && fields[0][0] == '*'
	return s
}

// shown reports whether a wall time, given as if it were UTC, matches.
func (s bruteSpec) shown(wall time.Time) bool {
	if !s.sets[0][wall.Second()] || !s.sets[1][wall.Minute()] || !s.sets[2][wall.Hour()] ||
		!s.sets[4][int(wall.Month())] {
		return false
	}
	dom, dow := s.sets[3][wall.Day()], s.sets[5][int(wall.Weekday())]
	if s.either {
		return dom || dow
	}
	return dom && dow
}

func wallAsUTC(t time.Time, loc *time.Location) time.Time {
	_, offset := t.In(loc).Zone()
	return t.Add(time.Duration(offset) * time.Second)
}

func (s bruteSpec) walk(loc *time.Location, from, to time.Time, step time.Duration) (times []time.Time) {
	shownAt := map[int64][]time.Time{}
	var candidates []time.Time
	var gaps []struct {
		at    time.Time
		walls []time.Time
	}
	before := wallAsUTC(from.Add(-step), loc)
	for u := from; !u.After(to); u = u.Add(step) {
		wall := wallAsUTC(u, loc)
		if s.shown(wall) {
			shownAt[wall.Unix()] = append(shownAt[wall.Unix()], u)
			candidates = append(candidates, u)
		}
		if wall.Sub(before) > step {
			var walls []time.Time
			for w := before.Add(step); w.Before(wall); w = w.Add(step) {
				if s.shown(w) {
					walls = append(walls, w)
				}
			}
			if len(walls) > 0 {
				gaps = append(gaps, struct {
					at    time.Time
					walls []time.Time
				}{u, walls})
			}
		}
		before = wall
	}
	twice, missing := s.twice, s.missing
	if twice == "" {
		twice = map[bool]string{true: "both", false: "first"}[s.wild]
	}
	if missing == "" {
		missing = map[bool]string{true: "ignore", false: "run_after"}[s.wild]
	}
	for _, u := range candidates {
		all := shownAt[wallAsUTC(u, loc).Unix()]
		if twice == "both" || twice == "first" && u.Equal(all[0]) || twice == "last" && u.Equal(all[len(all)-1]) {
			times = append(times, u)
		}
	}
	if missing == "run_after" {
		for _, gap := range gaps {
			if slices.ContainsFunc(gap.walls, func(w time.Time) bool { return len(shownAt[w.Unix()]) == 0 }) {
				times = append(times, gap.at)
			}
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	return slices.CompactFunc(times, time.Time.Equal)
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func randomField(r *rand.Rand, low, high int, starred float64) string {
	if r.Float64() < starred {
		return pick(r, "*", "*", "*/"+strconv.Itoa(1+r.IntN(high-low+1)))
	}
	var parts []string
	for range 1 + r.IntN(3) {
		a := low + r.IntN(high-low+1)
		switch r.IntN(4) {
		case 0:
			b := a + r.IntN(high-a+1)
			parts = append(parts, fmt.Sprintf("%d-%d", a, b))
		case 1:
			b := a + r.IntN(high-a+1)
			parts = append(parts, fmt.Sprintf("%d-%d/%d", a, b, 1+r.IntN(7)))
		default:
			parts = append(parts, strconv.Itoa(a))
		}
	}
	return strings.Join(parts, ",")
}

// randomSpec prefers the hours and days of clock changes.
func randomSpec(r *rand.Rand, seconds bool, near time.Time) bruteSpec {
	hour := pick(r, randomField(r, 0, 23, .3), fmt.Sprint(near.Hour()), fmt.Sprintf("%d,%d", (near.Hour()+1)%24,
		(near.Hour()+23)%24))
	dom, month, dow := "*", "*", "*"
	switch r.IntN(6) {
	case 0:
		dom = randomField(r, 1, 31, 0)
	case 1:
		dow = randomField(r, 0, 7, .2)
	case 2:
		dom, dow = randomField(r, 1, 31, 0), randomField(r, 0, 7, 0)
	case 3:
		dow = fmt.Sprint(int(near.Weekday()))
	}
	if r.IntN(4) == 0 {
		month = fmt.Sprint(int(near.Month()))
	}
	text := strings.Join([]string{randomField(r, 0, 59, .3), hour, dom, month, dow}, " ")
	if seconds {
		text = pick(r, "0", "30", randomField(r, 0, 59, .2)) + " " + text
	}
	s := newBruteSpec(text)
	s.missing = pick(r, "", "", "run_after", "skip")
	s.twice = pick(r, "", "", "first", "last", "both")
	return s
}

// changesOf returns the hours in which the clock of loc changes.
func changesOf(loc *time.Location, from, to time.Time) (hours []time.Time) {
	_, before := from.In(loc).Zone()
	for t := from; t.Before(to); t = t.Add(time.Hour) {
		if _, now := t.In(loc).Zone(); now != before {
			hours = append(hours, t)
			before = now
		}
	}
	return hours
}

// Covers 1970 to 2120 with one clock change per zone; with CALENDAR_FULL set, with every clock
// change.
//
//proof:of 4 S04
func TestCalendar_AgreesWithASecondAlgorithmInEveryZone(t *testing.T) {
	t.Parallel()
	full := os.Getenv("CALENDAR_FULL") != ""
	names := zoneNames()
	if len(names) < 590 {
		t.Fatalf("only %d zones", len(names))
	}
	compared := 0
	for i, name := range names {
		z, err := findZone("", name)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, uint64(i)))
		from, to := date(1970), date(2121)
		if !full {
			from = date(1970 + r.IntN(151))
			to = from.AddDate(1, 0, 0)
		}
		changes := changesOf(z.loc, from, to)
		if len(changes) == 0 {
			changes = []time.Time{from.Add(time.Duration(r.IntN(8760)) * time.Hour)}
		}
		if !full {
			changes = changes[:1]
		}
		for _, change := range changes {
			compared += compareAround(t, r, z.loc, change, r.IntN(40) == 0)
			if t.Failed() {
				return
			}
		}
	}
	if compared < len(names) {
		t.Errorf("only %d times were compared", compared)
	}
	t.Logf("%d times compared", compared)
}

func date(year int) time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }

func zoneNames() (names []string) {
	for name := range zoneFiles() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func compareAround(t *testing.T, r *rand.Rand, loc *time.Location, change time.Time, seconds bool) (compared int) {
	t.Helper()
	s := randomSpec(r, seconds, wallAsUTC(change, loc))
	from, to, step := change.Add(-30*time.Hour), change.Add(42*time.Hour), time.Minute
	after := change.Add(-4 * time.Hour)
	_, offset := change.Add(-time.Hour).In(loc).Zone()
	if _, now := change.In(loc).Zone(); seconds || offset%60 != 0 || now%60 != 0 {
		from, to, step = change.Add(-26*time.Hour), change.Add(26*time.Hour), time.Second
		after = change.Add(-3 * time.Hour)
	}
	spec := Spec{Cron: &s.text, Timezone: new(loc.String())}
	if s.missing != "" {
		spec.MissingHour = &s.missing
	}
	if s.twice != "" {
		spec.RepeatedHour = &s.twice
	}
	c, err := Parse(spec, nil)
	if err != nil {
		return 0 // the random day is in no month
	}
	// After this the walk does not know which wall times are shown once more.
	last := to.Add(-25 * time.Hour)
	var want, got []string
	for _, u := range s.walk(loc, from, to, step) {
		if u.After(after) && !u.After(last) {
			want = append(want, u.Format(time.RFC3339))
		}
	}
	for at := after; ; {
		o, ok := c.Next(at)
		if !ok || o.NominalAt.After(last) {
			break
		}
		if !o.NominalAt.After(at) {
			t.Fatalf("%q in %s: next after %s is %s", s.text, loc, at, o.NominalAt)
		}
		got = append(got, o.NominalAt.Format(time.RFC3339))
		at = o.NominalAt
	}
	if !slices.Equal(got, want) {
		i := 0
		for i < len(got) && i < len(want) && got[i] == want[i] {
			i++
		}
		t.Errorf("%q in %s after %s, missing %q twice %q: from time %d on\n got %v\nwant %v", s.text, loc,
			after.Format(time.RFC3339),
			s.missing, s.twice, i, got[i:min(len(got), i+4)], want[i:min(len(want), i+4)])
	}
	return len(want)
}

package calendar

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"
)

// bruteClosed evaluates an exclusion the slow way: it asks the time package for the day and
// searches the lists.
func bruteClosed(e Exclusion, calendarZone *time.Location, t time.Time) bool {
	loc := calendarZone
	if e.Timezone != nil {
		z, _ := findZone("", *e.Timezone)
		loc = z.loc
	}
	local := t.In(loc)
	today := local.Format(time.DateOnly)
	if slices.Contains(e.Dates, today) || slices.Contains(e.Yearly, local.Format("01-02")) {
		return true
	}
	for _, wd := range e.Weekly {
		if weekdays[wd] == int(local.Weekday()) {
			return true
		}
	}
	for _, r := range e.Ranges {
		if len(r.From) == len(time.DateOnly) {
			if r.From <= today && today <= r.To {
				return true
			}
		} else if !t.Before(at(r.From)) && t.Before(at(r.To)) {
			return true
		}
	}
	return false
}

// bruteMoved applies exclusions to a list of plain times, one by one.
func bruteMoved(times []time.Time, names []string, exclusions Exclusions, z *zone) (moved []time.Time) {
	closed := func(t time.Time) bool {
		return slices.ContainsFunc(names, func(name string) bool { return bruteClosed(exclusions[name], z.loc, t) })
	}
	for _, t := range times {
		move, drop := "", false
		for _, name := range names {
			if !bruteClosed(exclusions[name], z.loc, t) {
				continue
			}
			switch m := exclusions[name].Move; {
			case m == nil || *m == "drop":
				drop = true
			case move == "":
				move = *m
			}
		}
		switch {
		case drop:
		case move == "":
			moved = append(moved, t)
		default:
			local := t.In(z.loc)
			step := map[string]int{"next": 1, "previous": -1}[move]
			for k := 1; k <= MaxMoveDays; k++ {
				wall := time.Date(local.Year(), local.Month(), local.Day()+step*k, local.Hour(), local.Minute(),
					local.Second(), 0, time.UTC)
				first, _, _ := z.instants(wall.Unix())
				if c := time.Unix(first, 0); !closed(c) {
					moved = append(moved, c)
					break
				}
			}
		}
	}
	slices.SortFunc(moved, time.Time.Compare)
	return slices.CompactFunc(moved, time.Time.Equal)
}

func randomExclusion(r *rand.Rand) Exclusion {
	var e Exclusion
	base := at("2027-03-01T00:00:00Z")
	for range r.IntN(6) {
		e.Dates = append(e.Dates, base.AddDate(0, 0, r.IntN(90)).Format(time.DateOnly))
	}
	for range r.IntN(3) {
		e.Yearly = append(e.Yearly, base.AddDate(0, 0, r.IntN(90)).Format("01-02"))
	}
	for _, wd := range []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"} {
		if r.IntN(5) == 0 {
			e.Weekly = append(e.Weekly, wd)
		}
	}
	if len(e.Weekly) == 7 {
		e.Weekly = e.Weekly[:6]
	}
	for range r.IntN(3) {
		from := base.Add(time.Duration(r.IntN(90*24)) * time.Hour)
		e.Ranges = append(e.Ranges, Range{From: from.Format(time.RFC3339),
			To: from.Add(time.Duration(1+r.IntN(100)) * time.Hour).Format(time.RFC3339)})
	}
	if r.IntN(3) == 0 {
		from := base.AddDate(0, 0, r.IntN(90))
		e.Ranges = append(e.Ranges, Range{From: from.Format(time.DateOnly), To: from.AddDate(0, 0, r.IntN(45)).
			Format(time.DateOnly)})
	}
	if len(e.Dates)+len(e.Yearly)+len(e.Weekly)+len(e.Ranges) == 0 {
		e.Weekly = []string{"sun"}
	}
	if r.IntN(2) == 0 {
		e.Timezone = new(pick(r, "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Africa/Cairo", "UTC"))
	}
	e.Move = pick(r, nil, new("drop"), new("next"), new("previous"), new("next"))
	return e
}

func TestExclusions_AgreeWithASecondAlgorithm(t *testing.T) {
	t.Parallel()
	moves := 0
	seeds := uint64(120)
	if os.Getenv("CALENDAR_FULL") != "" {
		seeds = 20000
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(2, seed))
		exclusions := Exclusions{}
		var names []string
		for i := range 1 + r.IntN(3) {
			name := fmt.Sprint("set", i)
			names = append(names, name)
			exclusions[name] = randomExclusion(r)
		}
		spec := Spec{Timezone: new(pick(r, "Europe/Berlin", "America/New_York", "Africa/Cairo", "UTC"))}
		spec.Cron = new(pick(r, "30 2 * * *", "0 0 * * *", "0 9,17 * * *", "30 23 * * 5", "0 12 28 * *",
			"15 9-17 * * 1-5", "0 */2 * * 6,0", "0 8 L * ?"))
		plain := mustParse(t, spec, nil)
		from, to := at("2027-01-01T00:00:00Z"), at("2027-09-01T00:00:00Z")
		var times []time.Time
		for o, ok := plain.Next(from); ok && o.NominalAt.Before(to); o, ok = plain.Next(o.NominalAt) {
			times = append(times, o.NominalAt)
		}
		spec.Exclude = names
		c, err := Parse(spec, exclusions)
		if err != nil {
			continue
		}
		from, to = from.AddDate(0, 0, 40), to.AddDate(0, 0, -40)
		var want, got []string
		for _, u := range bruteMoved(times, names, exclusions, plain.zone) {
			if u.After(from) && u.Before(to) {
				want = append(want, u.UTC().Format(time.RFC3339))
			}
		}
		for o, ok := c.Next(from); ok && o.NominalAt.Before(to); o, ok = c.Next(o.NominalAt) {
			got = append(got, o.NominalAt.Format(time.RFC3339))
			if slices.Contains(o.Flags, FlagMovedLater) || slices.Contains(o.Flags, FlagMovedEarlier) {
				moves++
			}
		}
		if !slices.Equal(got, want) {
			i := 0
			for i < len(got) && i < len(want) && got[i] == want[i] {
				i++
			}
			t.Fatalf("seed %d: %s in %s with %v %+v from time %d on\n got %v\nwant %v", seed, *spec.Cron,
				*spec.Timezone, names, exclusions,
				i, got[i:min(len(got), i+4)], want[i:min(len(want), i+4)])
		}
	}
	if moves < 200 {
		t.Errorf("only %d moves were seen", moves)
	}
}

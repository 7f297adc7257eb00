package calendar

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/teambition/rrule-go"
)

// randomRRule returns rules that the library gets right, too. The library intersects numbered and
// plain weekdays of one list, counts BYSETPOS from the start in the first week, and does not end
// for hourly rules that never match.
func randomRRule(r *rand.Rand) string {
	freq := pick(r, "YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY")
	parts := []string{"FREQ=" + freq}
	add := func(chance float64, name string, values ...string) {
		if r.Float64() < chance {
			n := 1 + r.IntN(3)
			var list []string
			for _, i := range r.Perm(len(values))[:min(n, len(values))] {
				list = append(list, values[i])
			}
			parts = append(parts, name+"="+strings.Join(list, ","))
		}
	}
	if r.IntN(2) == 0 {
		parts = append(parts, fmt.Sprint("INTERVAL=", 1+r.IntN(5)))
	}
	if r.IntN(4) == 0 {
		parts = append(parts, "WKST="+pick(r, "MO", "SU", "WE"))
	}
	add(.3, "BYMONTH", "1", "2", "3", "10", "12")
	switch {
	case freq == "WEEKLY", freq == "DAILY", freq == "HOURLY":
		add(.5, "BYDAY", "MO", "TU", "WE", "TH", "FR", "SA", "SU")
	case r.IntN(2) == 0:
		add(.6, "BYDAY", "MO", "TU", "FR", "SU")
	default:
		add(.6, "BYDAY", "1MO", "-1FR", "2SU", "5TU", "-2WE")
	}
	if freq != "WEEKLY" {
		add(.3, "BYMONTHDAY", "1", "13", "29", "31", "-1", "-2", "15")
	}
	if freq == "YEARLY" {
		add(.2, "BYYEARDAY", "1", "60", "100", "366", "-1", "-300")
	}
	if freq != "HOURLY" {
		add(.4, "BYHOUR", "0", "9", "17", "23")
		add(.4, "BYMINUTE", "0", "30", "59")
		add(.2, "BYSECOND", "0", "15")
		if freq != "WEEKLY" {
			add(.3, "BYSETPOS", "1", "2", "-1", "-2", "5")
		}
	} else {
		add(.3, "BYMINUTE", "0", "15", "45")
		add(.3, "BYSECOND", "0", "10", "50")
		add(.3, "BYSETPOS", "1", "2", "-1", "4", "-3")
	}
	if r.IntN(6) == 0 {
		parts = append(parts, fmt.Sprint("COUNT=", 1+r.IntN(60)))
	} else if r.IntN(6) == 0 {
		parts = append(parts, "UNTIL=20310615T120000Z")
	}
	return strings.Join(parts, ";")
}

func TestRRule_AgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	compared := 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(3, seed))
		text := randomRRule(r)
		start := at("2027-01-01T00:00:00Z").Add(time.Duration(r.IntN(400*24)) * time.Hour).
			Add(time.Duration(r.IntN(3600)) * time.Second)
		c, err := Parse(Spec{RRule: &text, StartAt: new(start.Format(time.RFC3339))}, nil)
		if err != nil {
			continue
		}
		option, err := rrule.StrToROption(text)
		if err != nil {
			t.Fatal(err)
		}
		option.Dtstart = start
		rule, err := rrule.NewRRule(*option)
		if err != nil {
			t.Fatal(err)
		}
		next := rule.Iterator()
		o, ok := c.Next(start.Add(-time.Second))
		for range 60 {
			want, wantOK := next()
			if want.After(start.AddDate(HorizonYears-1, 0, 0)) {
				break
			}
			if ok != wantOK || ok && !o.NominalAt.Equal(want) {
				t.Fatalf("seed %d: %s from %s: got %v %v, want %v %v", seed, text, start, o.NominalAt, ok, want, wantOK)
			}
			if !ok {
				break
			}
			compared++
			o, ok = c.Next(o.NominalAt)
		}
	}
	if compared < 20000 {
		t.Errorf("only %d times were compared", compared)
	}
}

func TestRRule_BeginsAtTheFirstWholeSecond(t *testing.T) {
	t.Parallel()
	for _, freq := range []string{"YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"} {
		for start, want := range map[string]string{
			"2027-01-31T23:59:59Z": "2027-01-31T23:59:59Z", "2027-01-31T23:59:59.001Z": "2027-02-01T00:00:00Z",
			"2027-03-28T01:59:59.999+01:00": "2027-03-28T03:00:00+02:00", // across a change of the clock
			"1969-12-31T23:59:59.5Z":        "1970-01-01T00:00:00Z",
		} {
			c := mustParse(t, Spec{
				RRule: new("FREQ=" + freq + ";COUNT=3"), StartAt: new(start), Timezone: new("Europe/Berlin"),
			}, nil)
			var got []time.Time
			for o, ok := c.Next(at("1960-01-01T00:00:00Z")); ok; o, ok = c.Next(o.NominalAt) {
				got = append(got, o.NominalAt)
			}
			if len(got) != 3 || !got[0].Equal(at(want)) {
				t.Errorf("%s from %s: %v, want three from %s on", freq, start, got, want)
			}
		}
	}
}

func TestRRule_CountsWeeksAsISO(t *testing.T) {
	t.Parallel()
	c := mustParse(t, Spec{RRule: new("FREQ=YEARLY;BYWEEKNO=1,20,-1;BYDAY=MO,SU")}, nil)
	seen := 0
	for o, ok := c.Next(at("2000-01-01T00:00:00Z")); ok && o.NominalAt.Year() < 2100; o, ok = c.Next(o.NominalAt) {
		year, week := o.NominalAt.ISOWeek()
		_, last := time.Date(year, 12, 28, 0, 0, 0, 0, time.UTC).ISOWeek()
		if wd := o.NominalAt.Weekday(); week != 1 && week != 20 && week != last || wd != time.Monday &&
			wd != time.Sunday {
			t.Fatalf("%s is week %d of %d, a %s", o.NominalAt, week, last, wd)
		}
		seen++
	}
	if seen != 600 {
		t.Errorf("%d days in 100 years, want 600", seen)
	}
}

func TestRRule_TakesTheSameWorkAtAnyTime(t *testing.T) {
	t.Parallel()
	c := mustParse(t, Spec{RRule: new("FREQ=DAILY;INTERVAL=3"), StartAt: new("1901-01-01T06:30:00Z")}, nil)
	steps := 0
	for after := at("1901-01-01T00:00:00Z"); ; steps++ {
		o, ok := c.Next(after)
		if !ok {
			break
		}
		if (o.NominalAt.Unix()-at("1901-01-01T06:30:00Z").Unix())%(3*day) != 0 {
			t.Fatalf("%s is off the interval", o.NominalAt)
		}
		after = o.NominalAt.AddDate(10, 0, 0)
	}
	if steps != 50 {
		t.Errorf("%d decades, want 50", steps)
	}
}

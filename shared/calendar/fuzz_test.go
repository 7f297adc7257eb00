package calendar

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"
)

// FuzzParse puts text into every field with a grammar of its own.
func FuzzParse(f *testing.F) {
	raw, err := os.ReadFile("testdata/cron-shared.json")
	if err != nil {
		f.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(raw, &vectors); err != nil {
		f.Fatal(err)
	}
	for _, v := range vectors {
		f.Add(v.Spec, v.Zone, "5m", "2027-01-01T00:00:00Z")
	}
	for _, h := range hard() {
		if h.spec.RRule != nil {
			f.Add(*h.spec.RRule, "UTC", "30s", "")
		}
	}
	f.Add("0 9 L-3,15W,LW * ?", "Europe/Berlin", "1h", "x")
	f.Add("0 9 ? * FRI#2,1L,7#5", "America/New_York", "1d1h1m1s1ms", "2027-01-01T00:00:00.5+14:00")
	f.Fuzz(func(t *testing.T, rule, zone, duration, instant string) {
		for _, s := range []Spec{
			{Cron: &rule, Timezone: &zone, Spread: &duration},
			{Cron: &rule, StartAt: &instant},
			{RRule: &rule, Timezone: &zone, Spread: &duration},
			{RRule: &rule, StartAt: &instant},
			{RRule: &rule, StartAt: new("2027-03-28T00:59:30.5Z"), Timezone: new("Europe/Berlin")},
			{Every: &duration, Phase: &rule, EndAt: &instant},
			{Dates: []string{instant, rule}, Timezone: &zone},
			{Cron: new("0 9 * * *"), Exclude: []string{"x"}, MissingHour: &rule, RepeatedHour: &zone},
		} {
			exclusions := Exclusions{"x": {Dates: []string{rule}, Yearly: []string{zone}, Weekly: []string{duration},
				Ranges: []Range{{From: instant, To: rule}}}}
			c, err := Parse(s, exclusions)
			if err != nil {
				var refused *Error
				if !errors.As(err, &refused) || refused.Field == "" || refused.Code == "" || refused.Detail == "" {
					t.Fatalf("the error does not say enough: %#v", err)
				}
				continue
			}
			requireOrder(t, c, at("2027-03-27T12:00:00Z"))
		}
	})
}

// FuzzNext asks calendars of every kind, with exclusions, for the time after any instant.
func FuzzNext(f *testing.F) {
	names := zoneNames()
	for i, h := range hard() {
		rule := "0 9 * * *"
		if h.spec.Cron != nil {
			rule = *h.spec.Cron
		} else if h.spec.RRule != nil {
			rule = *h.spec.RRule
		}
		f.Add(rule, uint16(i*17), at(h.after).Unix(), uint64(i)*0x9e3779b97f4a7c15, uint8(i))
	}
	f.Add("@every 90m", uint16(3), int64(-1<<63), uint64(0), uint8(0))
	f.Add("30 2 * * 0", uint16(9), int64(1<<63-1), ^uint64(0), uint8(255))
	f.Fuzz(func(t *testing.T, rule string, zone uint16, after int64, closed uint64, policy uint8) {
		name := names[int(zone)%len(names)]
		s := Spec{Cron: &rule, Timezone: &name}
		if len(rule) > 5 && rule[:5] == "FREQ=" {
			s.Cron, s.RRule = nil, &rule
			if policy&64 != 0 {
				s.StartAt = new("2027-01-01T00:00:00Z")
			}
		}
		if policy&1 != 0 {
			s.MissingHour = new([]string{"run_after", "skip"}[policy>>1&1])
		}
		if policy&4 != 0 {
			s.RepeatedHour = new([]string{"first", "last", "both", "last"}[policy>>3&3])
		}
		exclusions := Exclusions{}
		if policy&32 != 0 {
			// The bits of one number give two sets.
			for i, name := range []string{"a", "b"} {
				bits := closed >> (32 * i)
				var e Exclusion
				for wd, n := range weekdays {
					if bits>>n&1 != 0 {
						e.Weekly = append(e.Weekly, wd)
					}
				}
				from := at("2027-01-01T00:00:00Z").Add(time.Duration(bits>>8&0xfff) * time.Hour)
				e.Ranges = []Range{{From: from.Format(time.RFC3339),
					To: from.Add(time.Duration(1+bits>>20&0xff) * 7 * time.Hour).Format(time.RFC3339)}}
				e.Move = new([]string{"drop", "next", "previous", "next"}[bits>>28&3])
				if bits>>30&1 != 0 {
					e.Timezone = new(names[int(bits>>8&0xfff)%len(names)])
				}
				exclusions[name] = e
				s.Exclude = append(s.Exclude, name)
			}
		}
		c, err := Parse(s, exclusions)
		if err != nil {
			return
		}
		requireOrder(t, c.For("s", at("2027-01-01T00:00:00Z")), time.Unix(after, 0))
		requireOrder(t, c.For("s", at("2027-01-01T00:00:00Z")), at("2027-01-01T00:00:00Z").
			Add(time.Duration(uint32(after))*time.Second))
	})
}

// requireOrder asks for a few times in a row: each is after the last, the same from any moment
// before it, and none is expensive.
func requireOrder(t *testing.T, c Calendar, after time.Time) {
	t.Helper()
	for range 4 {
		began := time.Now()
		o, ok := c.Next(after)
		if took := time.Since(began); took > 20*limitPerNext {
			for range 20 {
				began = time.Now()
				c.Next(after)
				took = min(took, time.Since(began))
			}
			if took > 10*limitPerNext { // fuzzing slows the code
				t.Fatalf("next after %s takes %s", after, took)
			}
		}
		if !ok {
			return
		}
		if !o.NominalAt.After(after) || o.DueAt.Before(o.NominalAt) || o.NominalAt.Unix() >= lastInstant {
			t.Fatalf("next after %s is %+v", after, o)
		}
		if e, train := c.source.(every); !train || !e.floating {
			if same, ok := c.Next(o.NominalAt.Add(-time.Millisecond)); !ok || !same.NominalAt.Equal(o.NominalAt) {
				t.Fatalf("next after %s is %s, but a millisecond earlier %s %v", after, o.NominalAt, same.NominalAt, ok)
			}
		}
		after = o.NominalAt
	}
}

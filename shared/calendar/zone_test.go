package calendar

import (
	"testing"
	"time"
)

func TestZone_ReturnsTheInstantsOfAWallTime(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		zone, wall, first, last string
		ok                      bool
	}{
		{"UTC", "2027-03-28T02:30:00Z", "2027-03-28T02:30:00Z", "2027-03-28T02:30:00Z", true},
		{"Europe/Berlin", "2027-03-28T01:59:59Z", "2027-03-28T00:59:59Z", "2027-03-28T00:59:59Z", true},
		{"Europe/Berlin", "2027-03-28T02:00:00Z", "2027-03-28T01:00:00Z", "2027-03-28T01:00:00Z", false},
		{"Europe/Berlin", "2027-03-28T03:00:00Z", "2027-03-28T01:00:00Z", "2027-03-28T01:00:00Z", true},
		{"Europe/Berlin", "2027-10-31T02:00:00Z", "2027-10-31T00:00:00Z", "2027-10-31T01:00:00Z", true},
		{"Europe/Berlin", "2027-10-31T03:00:00Z", "2027-10-31T02:00:00Z", "2027-10-31T02:00:00Z", true},
		{"Pacific/Apia", "2011-12-30T12:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", false},
		{"America/Havana", "2026-03-08T00:00:00Z", "2026-03-08T05:00:00Z", "2026-03-08T05:00:00Z", false},
		{"Asia/Kolkata", "2399-12-31T23:00:00Z", "2399-12-31T17:30:00Z", "2399-12-31T17:30:00Z", true},
	} {
		z, err := findZone("", tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		first, last, ok := z.instants(at(tt.wall).Unix())
		if first != at(tt.first).Unix() || last != at(tt.last).Unix() || ok != tt.ok {
			t.Errorf("%s in %s: %s %s %v, want %s %s %v", tt.wall, tt.zone, time.Unix(first, 0).UTC(),
				time.Unix(last, 0).UTC(), ok, tt.first, tt.last, tt.ok)
		}
	}
}

func TestCivil_AgreesWithPackageTime(t *testing.T) {
	t.Parallel()
	for d := dayNumber(1899, 1, 1); d < dayNumber(2401, 1, 1); d++ {
		want := time.Unix(d*day, 0).UTC()
		year, month, dom := civil(d)
		if year != want.Year() || month != int(want.Month()) || dom != want.Day() ||
			weekday(d) != int(want.Weekday()) || dayNumber(year, month, dom) != d {
			t.Fatalf("day %d is %d-%d-%d, want %s", d, year, month, dom, want)
		}
		if last := want.AddDate(0, 0, 1).Day() == 1; last != (dom == monthLen(year, month)) {
			t.Fatalf("%s: month has %d days", want, monthLen(year, month))
		}
	}
}

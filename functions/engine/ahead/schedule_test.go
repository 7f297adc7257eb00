package ahead

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"punctual/shared/calendar"
	"punctual/shared/schedule"
)

var noon = time.Date(2027, 3, 27, 12, 0, 0, 0, time.UTC)

// countedTimes counts a calendar with a share of the times.
func countedTimes(t interface{ Fatal(...any) }, spec calendar.Spec, share int) (*Load, int) {
	l := newLoad(noon)
	c := counter{load: l, now: noon, share: share, late: func() bool { return false },
		of: schedule.Schedule{Key: schedule.Key{Tenant: "acme", Name: "s"}, CreatedAt: noon, Spec: spec}}
	read, err := c.count([]int64{-1})
	if err != nil {
		t.Fatal(err)
	}
	return l, read
}

// exact counts the same by listing all times.
func exact(t interface{ Fatal(...any) }, spec calendar.Spec) *Load {
	l := newLoad(noon)
	c, err := calendar.Parse(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	for after := noon.Add(-time.Hour); ; {
		o, ok := c.For("acme#s", noon).Next(after)
		if !ok || !o.NominalAt.Before(l.end()) {
			return l
		}
		if !o.DueAt.Before(noon) && (o.DueAt.After(noon) || o.NominalAt.After(noon)) {
			l.add(o.DueAt, 1)
		}
		after = o.NominalAt
	}
}

func TestCounter_CountsExactlyWithinItsShare(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule := fmt.Sprintf("%s %s * * %s",
			rapid.SampledFrom([]string{"*", "*/5", "7", "1-9/4", "59"}).Draw(t, "minute"),
			rapid.SampledFrom([]string{"*", "2", "9-17", "*/3"}).Draw(t, "hour"),
			rapid.SampledFrom([]string{"*", "1-5", "0"}).Draw(t, "day"))
		zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "Asia/Kathmandu"}).Draw(t, "zone")
		spec := calendar.Spec{Cron: &rule, Timezone: &zone}
		if rapid.Bool().Draw(t, "spread") {
			spec.Spread = new("45s")
		}
		l, _ := countedTimes(t, spec, 1_000_000)
		if !slices.Equal(l.minutes, exact(t, spec).minutes) {
			t.Fatalf("%s in %s is counted wrongly", rule, zone)
		}
	})
}

func TestCounter_CountsBoundedBeyondItsShare(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec calendar.Spec
		same bool // as the exact count
	}{
		"each minute":                   {calendar.Spec{Cron: new("* * * * *")}, true},
		"each second":                   {calendar.Spec{Cron: new("* * * * * *")}, true},
		"each 10 s in some hours":       {calendar.Spec{Cron: new("*/10 * 9-17 * * 1-5")}, true},
		"until tomorrow":                {calendar.Spec{Every: new("1s"), EndAt: new("2027-03-28T12:00:00Z")}, true},
		"at no fixed minute":            {calendar.Spec{Every: new("7s")}, false},
		"in the first half of an hour":  {calendar.Spec{Cron: new("0-29 * * * *")}, true},
		"each hour, as it has no share": {calendar.Spec{Cron: new("20 * * * *")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, read := countedTimes(t, c.spec, 5)
			want := exact(t, c.spec)
			if most := 2*3600 + 3*9*24; read > most {
				t.Errorf("%d times were read, want at most %d", read, most)
			}
			if same := slices.Equal(l.minutes, want.minutes); c.same && !same {
				t.Error("the minutes differ from the exact count")
			}
			sum := func(l *Load) (n int) {
				for _, m := range l.minutes {
					n += int(m)
				}
				return n
			}
			if got, want := sum(l), sum(want); got < want*98/100 || got > want*102/100 {
				t.Errorf("counted %d, want about %d", got, want)
			}
		})
	}
}

func TestCounter_EndsWhenTheTimeIsUp(t *testing.T) {
	t.Parallel()
	asked := 0
	c := counter{load: newLoad(noon), now: noon, share: 1_000_000, late: func() bool { asked++; return asked > 100 },
		of: schedule.Schedule{Key: schedule.Key{Tenant: "acme", Name: "s"}, CreatedAt: noon,
			Spec: calendar.Spec{Cron: new("* * * * * *")}}}
	if read, err := c.count([]int64{-1}); err != nil || read != 101 {
		t.Errorf("read %d times, %v; want 101", read, err)
	}
}

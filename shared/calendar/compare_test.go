package calendar

import (
	"fmt"
	"math"
	"testing"
	"time"
)

var march = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

func cronIn(t *testing.T, expression, zone string) Calendar {
	t.Helper()
	c, err := Parse(Spec{Cron: &expression, Timezone: &zone}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.For("s", march)
}

func TestCompare_ListsAddedLostAndMovedTimes(t *testing.T) {
	t.Parallel()
	const none = math.MaxInt
	nominals := func(times []Occurrence) (list []string) {
		for _, o := range times {
			list = append(list, o.NominalAt.Format("01-02 15:04"))
		}
		return list
	}
	for name, c := range map[string]struct {
		before, after Calendar
		runs          int
		want          string
	}{
		"nothing": {cronIn(t, "0 10 * * *", "UTC"), cronIn(t, "0 10 * * *", "UTC"), none,
			"0 added [], 0 lost [], 0 moved"},
		"another hour": {cronIn(t, "0 10 * * *", "UTC"), cronIn(t, "0 15 * * *", "UTC"), none,
			"1 added [03-01 15:00], 1 lost [03-31 10:00], 29 moved 03-02 10:00>03-02 15:00"},
		"another zone": {cronIn(t, "0 10 * * *", "UTC"), cronIn(t, "0 10 * * *", "Asia/Tokyo"), none,
			"0 added [], 0 lost [], 30 moved 03-02 10:00>03-02 01:00"},
		"one day less": {cronIn(t, "0 10 * * *", "UTC"), cronIn(t, "0 10 * * 1-6", "UTC"), none,
			"0 added [], 4 lost [03-07 10:00 03-14 10:00 03-21 10:00 03-28 10:00], 0 moved"},
		"one more a day": {cronIn(t, "0 10 1-3 * *", "UTC"), cronIn(t, "0 10,12 1-3 * *", "UTC"), none,
			"2 added [03-02 12:00 03-03 12:00], 0 lost [], 0 moved"},
		"a run that ends": {cronIn(t, "0 10 * * *", "UTC"), cronIn(t, "0 10 * * *", "UTC"), 28,
			"0 added [], 2 lost [03-30 10:00 03-31 10:00], 0 moved"},
	} {
		d := Compare(Unite(c.before), Unite(c.after), none, c.runs, march)
		moved := ""
		if len(d.Moved) > 0 {
			moved = " " + d.Moved[0].From.Format("01-02 15:04") + ">" + d.Moved[0].To.Format("01-02 15:04")
		}
		got := fmt.Sprintf("%d added %v, %d lost %v, %d moved%s", len(d.Added), nominals(d.Added), len(d.Lost),
			nominals(d.Lost), len(d.Moved), moved)
		if got != c.want || d.Cut || !d.Through.Equal(march.Add(30*24*time.Hour)) {
			t.Errorf("%s: %s through %v, cut %v; want %s", name, got, d.Through, d.Cut, c.want)
		}
	}
}

// A schedule that has made its last run has no coming times, nor has one that is not there.
//
//proof:of F54
func TestCompare_TakesScheduleWithoutTimes(t *testing.T) {
	t.Parallel()
	daily := cronIn(t, "0 10 * * *", "UTC")
	for _, c := range []struct{ before, after, added, lost int }{{0, math.MaxInt, 30, 0}, {0, 0, 0, 0}, {2, 0, 0, 2}} {
		d := Compare(Unite(daily), Unite(daily), c.before, c.after, march)
		if len(d.Added) != c.added || len(d.Lost) != c.lost || d.Cut || !d.Through.Equal(march.Add(30*24*time.Hour)) {
			t.Errorf("%d runs, then %d: %d added, %d lost, cut %v through %v", c.before, c.after, len(d.Added),
				len(d.Lost), d.Cut, d.Through)
		}
	}
}

func TestCompare_IsCutWhenThereIsTooMuchToCompare(t *testing.T) {
	t.Parallel()
	daily, often := cronIn(t, "0 10 * * *", "UTC"), cronIn(t, "* * * * * *", "UTC")
	d := Compare(Unite(daily), Unite(often), math.MaxInt, math.MaxInt, march)
	if len(d.Added) != 1000 || !d.Cut || !d.Through.Equal(march.Add(comparedTimes*time.Second)) || len(d.Lost) != 0 {
		t.Errorf("%d added, %d lost, cut %v, through %v", len(d.Added), len(d.Lost), d.Cut, d.Through)
	}
	// A calendar of every two minutes has more than 1000 times in 30 days. All of them are compared.
	d = Compare(Unite(cronIn(t, "1-59/2 * * * *", "UTC")), Unite(cronIn(t, "*/5 10-23 * * *", "UTC")), math.MaxInt,
		math.MaxInt, march)
	if len(d.Lost) != 1000 || !d.Cut || d.Through.After(march.Add(30*24*time.Hour)) {
		t.Errorf("%d lost, cut %v, through %v", len(d.Lost), d.Cut, d.Through)
	}
	for _, o := range d.Added {
		if o.NominalAt.Minute()%2 == 1 {
			t.Fatalf("%v runs before and after", o.NominalAt)
		}
	}
}

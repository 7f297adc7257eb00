package schedule

import (
	"testing"
	"time"

	"punctual/shared/calendar"
)

var march = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

func every(t *testing.T, expression string) calendar.Union {
	t.Helper()
	zone := "UTC"
	c, err := calendar.Parse(calendar.Spec{Cron: &expression, Timezone: &zone}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return calendar.Unite(c.For("s", march))
}

//proof:of S40
func TestQuota_CountsTheBusiestMinuteOfASchedule(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]int64{
		"0 10 * * *": 1, "* * * * *": 1, "*/5 * * * * *": 12, "* * * * * *": 60, "0,30 * * * * *": 2,
		"* 0 10 * * *": 60, "0-29 0 0 1 1 *": 30, "@every 1s": 60, "@every 7s": 9,
	} {
		for _, at := range []time.Time{march, march.Add(-2*time.Hour + 40*time.Second)} { // also within a busy minute
			if got := busiest(every(t, expression), at, weighed); got != want {
				t.Errorf("%s weighs %d at %v, want %d", expression, got, at, want)
			}
		}
	}
	ended := calendar.Spec{Dates: []string{"2027-02-01T00:00:00Z"}}
	c, err := calendar.Parse(ended, nil)
	if n := busiest(calendar.Unite(c), march, weighed); err != nil || n != 1 {
		t.Errorf("what has ended weighs %d, %v", n, err)
	}
}

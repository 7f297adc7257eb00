package operation

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func backfill(change ...func(*Operation)) Operation {
	o := Operation{
		Key: Key{Tenant: "acme", ID: "01KD000000000000000000000A"}, Action: Backfill, Status: Running, By: "ann",
		Reason: "the source was down", CreatedAt: noon, Version: 1, Schedule: "nightly", Since: noon.Add(-time.Hour),
		Epoch: 3, From: noon.Add(-24 * time.Hour), To: noon, Order: Oldest, Most: 2, Matched: 24,
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func TestOperation_IsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	full := backfill(func(o *Operation) {
		o.Status, o.Why, o.EndedAt = Failed, job.Reason{Code: CodeDeleted, Message: "gone"}, noon.Add(time.Minute)
		o.Repeat, o.Cursor, o.Open = true, noon.Add(-time.Hour), []job.ID{"A", "B"}
		o.Done, o.Skipped, o.Failed, o.Errors = 1, 2, 3, []Error{{"C", "handler", "no"}}
		o.NoteEnd()
	})
	for name, o := range map[string]Operation{"new": backfill(), "ended": full} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is, err := Parse(o.Item(), o.Tenant)
			if err != nil || !reflect.DeepEqual(is, o) {
				t.Errorf("%v\nread    %+v\nwritten %+v", err, is, o)
			}
			if _, expires := o.Item()[contract.AttrExpiresAt]; expires != o.Status.Over() {
				t.Errorf("expires: %v", expires)
			}
		})
	}
	if _, err := Parse(item.Item{"body": "{"}, "acme"); err == nil {
		t.Error("an unreadable one was read")
	}
}

func TestOperation_ChangesOnlyAsItWasRead(t *testing.T) {
	t.Parallel()
	o := backfill()
	w := o.Become(o)
	if !item.Any(w.When, o.Item()) || w.Put.Int("version") != 2 {
		t.Errorf("%+v", w)
	}
	if item.Any(w.When, w.Put) || item.Any(w.When, nil) || item.Any(o.Create().When, o.Item()) {
		t.Error("written over another version")
	}
}

func TestOperation_CountsEachEndOnce(t *testing.T) {
	t.Parallel()
	o := backfill(func(o *Operation) { o.Open = []job.ID{"A", "B", "C", "D"} })
	read := o
	o.End("A", &job.Row{Status: job.Succeeded})
	o.End("A", &job.Row{Status: job.Succeeded})
	o.End("B", &job.Row{Status: job.Dead, Reason: job.Reason{Code: "handler", Message: "no"}})
	o.End("C", nil)
	o.End("X", &job.Row{Status: job.Dead})
	if o.Done != 1 || o.Failed != 2 || !reflect.DeepEqual(o.Open, []job.ID{"D"}) || len(o.Errors) != 2 {
		t.Errorf("%+v", o)
	}
	if len(read.Open) != 4 || read.Open[0] != "A" {
		t.Errorf("what was read has changed: %v", read.Open)
	}
	for range 2 * MaxErrors {
		o.Refuse(Error{Code: CodeTooMany, Detail: fmt.Sprint(make([]int, 1000))})
	}
	if len(o.Errors) != MaxErrors || o.Failed != 2+2*MaxErrors || len(o.Errors[2].Detail) > maxDetail {
		t.Errorf("%d errors of %d failures", len(o.Errors), o.Failed)
	}
}

func TestOperation_FailsIfAllOfItFailed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		done, skipped, failed int
		want                  Status
	}{
		"nothing matched": {0, 0, 0, Succeeded}, "all done": {2, 0, 0, Succeeded},
		"one of two failed": {1, 0, 1, Succeeded},
		"all failed":        {0, 0, 2, Failed}, "all left out": {0, 2, 0, Succeeded},
		"one left out": {0, 1, 1, Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := backfill(func(o *Operation) { o.Done, o.Skipped, o.Failed = c.done, c.skipped, c.failed })
			o.Finish(noon)
			if o.Status != c.want || o.Matched != c.done+c.skipped+c.failed || !o.EndedAt.Equal(noon) {
				t.Errorf("%+v", o)
			}
		})
	}
}

func TestOperation_ChangesItsStatusByTheRules(t *testing.T) {
	t.Parallel()
	verbs := map[string]func(Operation) (Operation, error){
		"pause": Operation.Pause, "resume": Operation.Resume,
		"proceed": func(o Operation) (Operation, error) { return o.Proceed(noon) },
		"stop":    func(o Operation) (Operation, error) { return o.Stop(noon) },
	}
	for verb, want := range map[string]map[Status]Status{
		"pause":   {Running: Paused, Paused: Paused},
		"resume":  {Running: Running, Paused: Running},
		"stop":    {Running: Stopped, Paused: Stopped, Stopped: Stopped},
		"proceed": {},
	} {
		for _, from := range []Status{Running, Paused, Succeeded, Failed, Stopped} {
			t.Run(verb+" of "+string(from), func(t *testing.T) {
				t.Parallel()
				after, err := verbs[verb](backfill(func(o *Operation) { o.Status = from }))
				to, may := want[from]
				if (err == nil) != may || may && after.Status != to || !may && after.Status != from {
					t.Errorf("%s, %v", after.Status, err)
				}
			})
		}
	}
}

// Whatever the order and however many are asked for at once, a backfill comes to each time once, in its order.
func TestOperation_ComesToEachTimeOnce(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	for name, specs := range map[string][]calendar.Spec{
		"hourly":           {{Cron: text("0 * * * *")}},
		"workdays":         {{Cron: text("0 9 * * 1-5"), Timezone: text("Europe/Berlin")}},
		"every 90 minutes": {{Every: text("90m"), StartAt: text("2026-10-01T00:00:00Z")}},
		"yearly":           {{Cron: text("0 0 1 1 *")}},
		"two calendars":    {{Cron: text("0 9 * * *")}, {Cron: text("0 */3 * * *"), Timezone: text("Asia/Tokyo")}},
	} {
		cal, err := calendar.ParseAll(specs, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, order := range Orders {
			t.Run(name+", "+string(order)+" first", func(t *testing.T) {
				t.Parallel()
				o := backfill(func(o *Operation) { o.From, o.Order = noon.AddDate(0, -2, 0), order })
				want, _ := firstFrom(cal, o.From, o.To, MaxTimes)
				if n, more := o.Left(cal, MaxTimes); n != len(want) || more {
					t.Errorf("%d are left of %d", n, len(want))
				}
				var got []time.Time
				for most := 1; ; most++ {
					times, end := o.Next(cal, most)
					if len(times) > most || !end && len(times) < most {
						t.Fatalf("%d times of %d, end: %v", len(times), most, end)
					}
					got = append(got, times...)
					if len(times) > 0 {
						o.Cursor = times[len(times)-1]
					}
					if n, _ := o.Left(cal, MaxTimes); n != len(want)-len(got) {
						t.Fatalf("%d are left of %d after %d", n, len(want), len(got))
					}
					if end {
						break
					}
				}
				for n := range got {
					at := n
					if order == Newest {
						at = len(want) - 1 - n
					}
					if len(got) != len(want) || !got[n].Equal(want[at]) {
						t.Fatalf("%d times of %d; time %d is %v", len(got), len(want), n, got[n])
					}
				}
			})
		}
	}
}

func TestOperation_EndsInARangeOfThousandsOfYears(t *testing.T) {
	t.Parallel()
	for _, cron := range []string{"0 0 1 1 *", "0 0 29 2 *"} {
		cal, err := calendar.ParseAll([]calendar.Spec{{Cron: &cron}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, order := range Orders {
			o := backfill(func(o *Operation) { o.From, o.Order = time.Time{}, order })
			want, more := o.Left(cal, MaxTimes)
			n := 0
			for end := false; !end && n <= want; {
				var times []time.Time
				if times, end = o.Next(cal, 50); len(times) > 0 {
					o.Cursor = times[len(times)-1]
				}
				n += len(times)
			}
			if n != want || more || n == 0 {
				t.Errorf("%s, %s first: %d times of %d", cron, order, n, want)
			}
		}
	}
}

func TestOperation_TakesInTheBeginningAndNotTheEnd(t *testing.T) {
	t.Parallel()
	hourly := "0 * * * *"
	cal, err := calendar.ParseAll([]calendar.Spec{{Cron: &hourly}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, order := range Orders {
		o := backfill(func(o *Operation) { o.From, o.To, o.Order = noon.Add(-2*time.Hour), noon, order })
		times, end := o.Next(cal, 10)
		if len(times) != 2 || !end || times[0].Equal(noon) || times[1].Equal(noon) {
			t.Errorf("%s first: %v, end: %v", order, times, end)
		}
		if n, more := o.Left(cal, 1); n != 1 || !more {
			t.Errorf("%d of more than one; more: %v", n, more)
		}
	}
}

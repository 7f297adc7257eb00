package load

import (
	"context"
	"fmt"
	"testing"
	"time"

	"punctual/functions/engine/recur"
	"punctual/functions/engine/scan"
	"punctual/functions/promoter"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/process"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// setClock is a clock that the test sets.
type setClock struct{ at time.Time }

func (c *setClock) Now() time.Time { return c.at }

// nowhere drops messages.
type nowhere struct{}

func (nowhere) Send(context.Context, string, ...message.Outgoing) error { return nil }

func withoutStream() []contract.Schema {
	schemas := contract.Schemas()
	for n := range schemas {
		schemas[n].Stream = false
	}
	return schemas
}

// putSchedules puts n schedules with that cron expression, for a hundred tenants.
func putSchedules(b *testing.B, s *store.Store, n int, cron string, now time.Time) {
	b.Helper()
	for i := range n {
		k := schedule.Key{Tenant: tenant.ID(fmt.Sprintf("t%d", i%100)), Name: fmt.Sprintf("s%d", i)}
		_, w, err := schedule.Create(nil, schedule.Schedule{
			Key: k, Spec: calendar.Spec{Cron: &cron}, CatchUp: schedule.DefaultCatchUp,
			Shard: horizon.ShardOf(k.ID(), contract.DefaultShards),
			Template: schedule.Template{Settings: job.Settings{Task: "echo", Executor: job.ExecutorEcho, Pool: "short",
				Priority: job.Normal,
				Timeout:  time.Minute, Retry: job.DefaultRetry}, Payload: `{"n":1}`, PayloadSize: 7},
		}, now)
		if err == nil {
			err = s.Put(context.Background(), w)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPromotionOf100000InOneMinute measures one pass of the promoter over 100,000 schedules.
func BenchmarkPromotionOf100000InOneMinute(b *testing.B) {
	const schedules = 100_000
	for b.Loop() {
		b.StopTimer()
		c := &setClock{time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)}
		w := memory.New(memory.Options{Clock: c, Schemas: withoutStream()})
		s := store.New(w.Table(), w.Blobs())
		putSchedules(b, s, schedules, "0 9 * * *", c.at)
		p := promoter.New(promoter.Deps{Store: s, Queue: nowhere{}, Base: process.Base{Clock: c}})
		if _, err := p.Handle(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
		c.at = c.at.Add(31 * time.Minute)
		b.StartTimer()
		began := time.Now()
		sum, err := p.Handle(b.Context(), nil)
		took := time.Since(began)
		if err != nil || sum.Came["promoted"] != schedules {
			b.Fatalf("%+v, %v", sum, err)
		}
		b.StopTimer()
		w.Close()
		note("schedules promoted, 100,000 in one minute", "%.1f s, %.0f/s", took.Seconds(), schedules/took.Seconds())
		b.StartTimer()
	}
}

// BenchmarkCostOfASchedule measures what a schedule costs in a month, without its jobs.
func BenchmarkCostOfASchedule(b *testing.B) {
	// List prices of us-east-1 on demand, in dollars for a million units.
	const write, read = 0.625, 0.125
	for b.Loop() {
		for _, every := range []struct{ name, cron string }{{"daily", "0 9 * * *"}, {"hourly", "0 * * * *"},
			{"minutely", "* * * * *"}} {
			c := &setClock{time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)}
			w := memory.New(memory.Options{Clock: c, Schemas: withoutStream()})
			s := store.New(w.Table(), w.Blobs())
			putSchedules(b, s, 1, every.cron, c.at)
			r := recur.New(recur.Deps{Store: s, Queue: nowhere{}, Base: process.Base{Clock: c}})
			k := schedule.Key{Tenant: "t0", Name: "s0"}
			days := 2
			before := w.Counts()
			runs := 0
			for end := c.at.Add(time.Duration(days) * 24 * time.Hour); c.at.Before(end); c.at = c.at.Add(time.Minute) {
				now, err := s.Schedule(context.Background(), k)
				if err != nil {
					b.Fatal(err)
				}
				var came scan.Counter
				if now.WakeAt.Before(schedule.Bound(c.at)) {
					if err := r.Slice(context.Background(), now.Slice(), time.Time{}, &came); err != nil {
						b.Fatal(err)
					}
					runs++
				}
			}
			units := w.Counts().Tables[contract.Schedules]
			was := before.Tables[contract.Schedules]
			writes := units.Write + units.IndexWrite - was.Write - was.IndexWrite
			note("units of a "+every.name+" schedule for each promotion", "%.1f write (with its index)",
				writes/float64(runs))
			note("cost of a "+every.name+" schedule for a month, its jobs apart", "$%.4f",
				(writes*write+float64(runs)*2*read)/1e6*30/float64(days))
			w.Close()
		}
	}
}

// BenchmarkNextTimes measures how fast calendars return times.
func BenchmarkNextTimes(b *testing.B) {
	zone := "Europe/Berlin"
	for _, cron := range []string{"*/5 * * * * *", "0 9 * * 1-5", "0 9 L * ?"} {
		b.Run(cron, func(b *testing.B) {
			cal, err := calendar.Parse(calendar.Spec{Cron: &cron, Timezone: &zone}, nil)
			if err != nil {
				b.Fatal(err)
			}
			const times = 100_000
			for b.Loop() {
				at := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
				began := time.Now()
				for range times {
					o, ok := cal.Next(at)
					if !ok {
						at = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
						continue
					}
					at = o.NominalAt
				}
				note("next times of "+cron, "%.0f/s", times/time.Since(began).Seconds())
			}
		})
	}
}

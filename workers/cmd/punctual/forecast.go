package main

import (
	"time"

	"punctual/shared/client/rest"
	"punctual/shared/span"
)

type forecasts struct {
	Show showForecast `cmd:"" default:"withargs" help:"Show the starts that are expected in each step of a period."`
	Calm listCalm     `cmd:"" help:"List the minutes with the fewest expected starts."`
}

type showForecast struct {
	From typedTime `help:"Start of the period; default: now."`
	To   typedTime `help:"End of the period, up to 7 days ahead; default: a day after the start."`
	Step string    `help:"Length of a step: whole minutes that divide a day, from 1m to 1d; default: 1h."`
}

// expectedStarts is one step of a forecast.
type expectedStarts struct {
	at     time.Time
	starts int64
	peak   bool
}

// Run shows the steps, and marks the one with the most starts.
func (c showForecast) Run(s *shell) error {
	from, err := s.coming("--from", c.From)
	if err != nil {
		return err
	}
	to, err := s.coming("--to", c.To)
	if err != nil {
		return err
	}
	f, err := s.client.ForecastBy(s.ctx, rest.GetForecastParams{From: from, To: to, Step: ptr(c.Step)})
	if err != nil {
		return err
	}
	if s.output == "json" || s.output == "yaml" {
		return s.encode(f)
	}
	step, err := span.Parse(f.Step)
	if err != nil {
		return err
	}
	steps := func(yield func(expectedStarts, error) bool) {
		for n, starts := range f.Starts {
			at := f.From.Add(time.Duration(n) * step)
			if !yield(expectedStarts{at, starts, starts > 0 && at.Equal(f.Peak.At)}, nil) {
				return
			}
		}
	}
	at := func(e expectedStarts) string { return instant(&e.at) }
	return list(s, steps, 0, at,
		column[expectedStarts]{"FROM", at},
		column[expectedStarts]{"STARTS", func(e expectedStarts) string { return count(e.starts) }},
		column[expectedStarts]{"PEAK", func(e expectedStarts) string {
			if e.peak {
				return "most"
			}
			return ""
		}})
}

type listCalm struct {
	Between  string `help:"Stretch of the local day, such as 01:00-05:00 or 22:30-02:00; default: the whole day."`
	Timezone string `help:"Name of the time zone, such as Europe/Berlin; default: UTC."`
	Count    int    `short:"n" default:"5" help:"Number of minutes to list, up to 100."`
}

// Run lists the minutes.
func (c listCalm) Run(s *shell) error {
	found, err := s.client.CalmMinutes(s.ctx, rest.ListCalmMinutesParams{
		Between: ptr(c.Between), Timezone: ptr(c.Timezone), Count: &c.Count})
	if err != nil {
		return err
	}
	at := func(m rest.CalmView) string { return instant(&m.At) }
	return list(s, given(found), 0, at,
		column[rest.CalmView]{"AT", at},
		column[rest.CalmView]{"LOCAL", func(m rest.CalmView) string { return m.Local }},
		column[rest.CalmView]{"LOAD", func(m rest.CalmView) string { return count(m.Load) }})
}

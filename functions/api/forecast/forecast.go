package forecast

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/ahead"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/span"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

const (
	// Points is how many steps a forecast has at most.
	Points = 1500
	// CalmMost is how many calm minutes are listed at most.
	CalmMost = 100
	// CalmDefault is how many are listed without a count.
	CalmDefault = 5

	// MinStep is the shortest step of a forecast.
	MinStep = time.Minute
	// MaxStep is the longest step of a forecast.
	MaxStep = 24 * time.Hour
	// BetweenPattern is the form of a stretch of the day.
	BetweenPattern = `^[0-2][0-9]:[0-5][0-9]-[0-2][0-9]:[0-5][0-9]$`

	defaultStep  = time.Hour
	defaultRange = 24 * time.Hour
)

// Handler serves forecasts.
type Handler struct {
	*spec.Core
}

// New registers the routes of forecasts.
func New(core *spec.Core) *Handler {
	h := &Handler{core}
	on := rest.Resource{Router: core.Router, Tag: spec.TagForecast, Path: "/v1/forecast"}
	rest.Get(on, "", "getForecast", "Forecast the starts of jobs", h.forecast, rest.Route{
		About: "Counts the starts that are expected in each step of a period, up to {=forecast_days} days ahead: at " +
			"the times of the schedules, where a run of a dag is one start, and of the jobs that wait. Left out are " +
			"times under a pause, jobs that wait for other jobs, and retries that no failure has caused yet. A job " +
			"that is due counts as starting now. Of the jobs, the newest {=forecast_rows} are read. The times of " +
			"schedules are exact up to {=forecast_times} in the next eight days; beyond that, an hour of a frequent " +
			"schedule counts like the hour before it. A forecast that is expensive to make is kept for a minute."})
	rest.Get(on, "/calm", "listCalmMinutes", "List the minutes with the least load", h.calm, rest.Route{
		About: "Lists minutes of the next {=forecast_days} days with the fewest expected starts, fewest first. Of " +
			"minutes with the same load, that comes first which has fewer starts in the minutes around it, and then " +
			"the earlier one. Counts like the forecast."})
	return h
}

type forecastInput struct {
	From string `query:"from" format:"date-time" doc:"Start of the period; default: now"`
	To   string `query:"to" format:"date-time" doc:"End of the period, itself excluded; default: a day after from, or as far ahead as a forecast goes"`
	Step string `query:"step" doc:"Length of a step: whole minutes that divide a day, from 1m to 1d; default: 1h. The period is widened to whole steps, which begin at multiples of the step after midnight, UTC." example:"1h"`

	period rest.Period
	step   time.Duration
}

type peakView struct {
	At     rest.Instant `json:"at" doc:"Start of the first step with the most expected starts"`
	Starts int          `json:"starts" doc:"Number of expected starts in that step"`
}

type forecastView struct {
	Step   string       `json:"step" doc:"Length of a step"`
	From   rest.Instant `json:"from" doc:"Start of the first step"`
	Starts []int        `json:"starts" doc:"Number of expected starts in each step. Of a step that has begun, the part that is past counts nothing."`
	Peak   peakView     `json:"peak" doc:"Step with the most expected starts"`
}

// read reads the period, whose steps it makes whole.
func (in *forecastInput) read(now time.Time) error {
	var wrong fault.Violations
	add := func(parameter, code, allowed, detail string) {
		wrong = append(wrong, fault.Field{Pointer: parameter, Code: code, Detail: detail, Allowed: allowed})
	}
	p := rest.ReadPeriod(&wrong, in.From, in.To)
	last := now.Add(ahead.Span)
	until := fmt.Sprintf("at most %s days ahead", spec.Days(ahead.Span))
	in.readStep(add)
	if len(wrong) > 0 {
		return wrong.Err()
	}
	if p.From.IsZero() {
		p.From = now
	}
	if p.To.IsZero() {
		p.To = p.From.Add(defaultRange)
		if p.To.After(last) {
			p.To = last
		}
	}
	switch {
	case p.From.Before(now.Add(-contract.PastAllowed)):
		add("from", rest.CodeInThePast, "at most "+text.InUnits(contract.PastAllowed, time.Second, "s")+" ago",
			"a forecast begins now or later; it is "+now.Format(text.InstantLayout)+" now")
	case !p.From.Before(last):
		add("from", rest.CodeOutOfRange, until, "from is too far ahead")
	default:
		p.NotEmpty(&wrong)
	}
	if p.To.After(last) {
		add("to", rest.CodeOutOfRange, until, "to is too far ahead")
	}
	p.From, p.To = p.From.Truncate(in.step), p.To.Add(in.step-1).Truncate(in.step)
	if len(wrong) == 0 {
		p.Steps(&wrong, int(p.To.Sub(p.From)/in.step), Points, "a longer step")
	}
	in.period = p
	return wrong.Err()
}

// readStep reads the length of a step.
func (in *forecastInput) readStep(add func(parameter, code, allowed, detail string)) {
	const allowed = "whole minutes that divide a day, from 1m to 1d, such as 5m, 1h and 1d"
	if in.step = defaultStep; in.Step == "" {
		return
	}
	var err error
	switch in.step, err = span.Parse(in.Step); {
	case err != nil:
		in.step = defaultStep
		add("step", rest.CodeInvalidValue, allowed, "step is not a length of time")
	case in.step < MinStep || in.step > MaxStep || in.step%MinStep != 0 || MaxStep%in.step != 0:
		in.step = defaultStep
		add("step", rest.CodeOutOfRange, allowed, "a step has whole minutes, and whole steps make a day")
	}
}

func (s *Handler) forecast(
	ctx context.Context, who tenant.Identity, in *forecastInput,
) (*rest.Answer[forecastView], error) {
	if err := in.read(s.Now()); err != nil {
		return nil, err
	}
	load, err := s.Ahead.Load(ctx, who.Tenant)
	if err != nil {
		return nil, err
	}
	v := forecastView{Step: span.Format(in.step), From: rest.At(in.period.From),
		Starts: load.Starts(in.period.From, in.period.To, in.step), Peak: peakView{At: rest.At(in.period.From)}}
	for n, starts := range v.Starts {
		if starts > v.Peak.Starts {
			v.Peak = peakView{rest.At(in.period.From.Add(time.Duration(n) * in.step)), starts}
		}
	}
	return &rest.Answer[forecastView]{Body: v}, nil
}

type calmInput struct {
	Between  string `query:"between" doc:"Stretch of the local day in which the minutes begin, its end excluded; it passes midnight if its end is before its start; default: the whole day" example:"01:00-05:00"`
	Timezone string `query:"timezone" doc:"Name of the IANA time zone of between and local; default: UTC" example:"Europe/Berlin"`
	Count    string `query:"count" doc:"Number of minutes to list, up to {=calm_most}; default: {=calm_default}"`

	between ahead.TimeOfDay
	zone    *time.Location
	count   int
}

type calmView struct {
	At    rest.Instant `json:"at" doc:"Start of the minute"`
	Local string       `json:"local" doc:"Start of the minute in the time zone"`
	Load  int          `json:"load" doc:"Number of expected starts in the minute"`
}

type calmAnswer struct {
	Body struct {
		Items []calmView `json:"items" doc:"Minutes with the fewest expected starts, fewest first"`
	}
}

// Prepare reads the parameters.
func (in *calmInput) Prepare(context.Context, tenant.Identity) (err error) {
	if in.count, err = rest.ReadNumber("count", in.Count, CalmDefault, CalmMost); err != nil {
		return err
	}
	if in.zone = time.UTC; in.Timezone != "" {
		if in.zone, err = calendar.Location(in.Timezone); err != nil {
			if wrong := new(calendar.Error); errors.As(err, &wrong) {
				return rest.OneViolation("timezone", wrong.Code, wrong.Allowed, wrong.Detail)
			}
			return err
		}
	}
	if in.Between == "" {
		return nil
	}
	from, to, ok := strings.Cut(in.Between, "-")
	var fine [2]bool
	in.between.From, fine[0] = minuteOfDay(from)
	in.between.To, fine[1] = minuteOfDay(to)
	if !ok || !fine[0] || !fine[1] || in.between.From == in.between.To || in.between.From == minutesOfDay {
		return rest.OneViolation("between", rest.CodeInvalidValue, "two different times of day, such as 01:00-05:00 "+
			"or 22:30-02:00", "between is not a stretch of the day")
	}
	return nil
}

const minutesOfDay = 24 * 60

// minuteOfDay reads a time of day, from 00:00 to 24:00.
func minuteOfDay(s string) (int, bool) {
	hours, minutes, ok := strings.Cut(s, ":")
	h, err := strconv.ParseUint(hours, 10, 8)
	m, err2 := strconv.ParseUint(minutes, 10, 8)
	at := int(h)*60 + int(m)
	return at, ok && err == nil && err2 == nil && len(hours) == 2 && len(minutes) == 2 && m < 60 && at <= minutesOfDay
}

func (s *Handler) calm(ctx context.Context, who tenant.Identity, in *calmInput) (*calmAnswer, error) {
	load, err := s.Ahead.Load(ctx, who.Tenant)
	if err != nil {
		return nil, err
	}
	out := &calmAnswer{}
	out.Body.Items = []calmView{}
	for _, c := range load.Calmest(in.between, in.zone, s.Now(), in.count) {
		out.Body.Items = append(out.Body.Items, calmView{rest.At(c.At), c.Local.Format(time.RFC3339), c.Load})
	}
	return out, nil
}

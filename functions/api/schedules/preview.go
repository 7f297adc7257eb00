package schedules

import (
	"context"
	"slices"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/ahead"
	"punctual/functions/engine/amend"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

// Fields of a preview.
var (
	previewName  = spec.Name("name", "Name of the schedule that the calendar is for; the spread is computed from it")
	previewAfter = spec.Instant("after", "Time after which the nominal times are listed; default: now. @every without "+
		"start_at is counted from it.")
	previewCount = field.Whole("count", "Number of times to list; default: {=preview_count}", 1, calendar.MaxPreview)

	previewRequest = field.NewObject("PreviewRequest", "Calendar to preview.",
		calendarField.About("Calendar whose times are listed"),
		calendarsField.About("List of calendars instead of calendar, of which all times are listed"),
		previewName, previewAfter, previewCount).Excluding("calendar", "calendars")
)

type occurrenceTime struct {
	NominalAt rest.Instant `json:"nominal_at" doc:"Nominal time, as the calendar gives it"`
	DueAt     rest.Instant `json:"due_at" doc:"Nominal time with the delay by the spread"`
	Local     string       `json:"local" doc:"Nominal time in the time zone of the calendar"`
	Flags     []string     `json:"flags" doc:"Peculiarities of the time. change_over_day: the clock changes on this local day; missing_hour: the time replaces a wall time that the clock skips; repeated_hour: the clock shows this wall time twice; moved_later, moved_earlier: the time was moved from an excluded day."`
	Load      *int         `json:"load,omitempty" doc:"Number of starts that the forecast expects in the minute of due_at, those of a schedule that exists included; only in previews, and absent for a time that is past or more than {=forecast_days} days ahead"`
}

// skippedTime shows a time at which the calendar runs nothing.
type skippedTime struct {
	NominalAt rest.Instant `json:"nominal_at" doc:"Nominal time that is skipped"`
	Local     string       `json:"local" doc:"Nominal time in the time zone of the calendar"`
	Reason    string       `json:"reason" enum:"excluded,missing_hour" doc:"Reason code for skipping the time"`
	Exclusion string       `json:"exclusion,omitempty" doc:"Name of the exclusion"`
	Why       string       `json:"why" doc:"Reason in words"`
}

type previewAnswer struct {
	Body struct {
		Items   []occurrenceTime `json:"items" doc:"Times of the calendar, in order; fewer than count if the calendar ends"`
		Skipped []skippedTime    `json:"skipped,omitempty" doc:"First {=preview_skipped} times in the listed period at which nothing runs"`
		Notes   []string         `json:"notes,omitempty" doc:"Notes about details of the calendar that are easily misread"`
	}
}

// Limits of the skipped times in a preview: how many are shown, and how many are read for them.
const (
	PreviewSkipped = 100
	previewScanned = 5000
)

func (s *Handler) previewDraft(ctx context.Context, who tenant.Identity, _ *rest.NoInput) (*previewAnswer, error) {
	r, f, err := spec.ReadBody(ctx, previewRequest, "a calendar")
	if err != nil {
		return nil, err
	}
	after, count, name := s.Now(), contract.PreviewDefault, ""
	previewAfter.Into(r, f, &after)
	previewCount.Into(r, f, &count)
	previewName.Into(r, f, &name)
	var p amend.Planned
	if hasCalendar(f) {
		if p, _, err = s.readCalendars(ctx, r, f, who.Tenant); err != nil {
			return nil, err
		}
	} else if f != nil {
		r.Missing("", "calendar")
	}
	if len(r.Wrong) > 0 {
		return nil, r.Wrong
	}
	out := preview(p.Calendar.For(schedule.Key{Tenant: who.Tenant, Name: name}.ID(), after), after, count)
	if err := s.withLoads(ctx, who.Tenant, out.Body.Items); err != nil {
		return nil, err
	}
	if now := s.Now(); p.Calendar.Check(now) != nil {
		out.Body.Notes = append(slices.Clip(out.Body.Notes), "The calendar has no time after now, "+
			now.UTC().Format(time.RFC3339)+"; a schedule with it is refused.")
	}
	return out, nil
}

type previewInput struct {
	rest.Named
	After string `query:"after" format:"date-time" doc:"Time after which the nominal times are listed; default: now"`
	Count string `query:"count" doc:"Number of times to list"`
}

func (s *Handler) previewSchedule(ctx context.Context, who tenant.Identity, in *previewInput) (*previewAnswer, error) {
	after := s.Now()
	if in.After != "" {
		t, ok := rest.ParseInstant(in.After)
		if !ok {
			return nil, rest.OneViolation("after", rest.CodeInvalidValue, rest.InstantAllowed+" (in a URL + is "+
				"written %2B)", "the value is not a time with a time zone: %s", calendar.WhyNoInstant(in.After))
		}
		after = t
	}
	count, err := rest.ReadNumber("count", in.Count, contract.PreviewDefault, calendar.MaxPreview)
	if err != nil {
		return nil, err
	}
	found, err := s.schedule(ctx, schedule.Key{Tenant: who.Tenant, Name: in.Name})
	if err != nil {
		return nil, err
	}
	c, err := found.Coming()
	if err != nil {
		return nil, asProblem(err)
	}
	out := preview(c, after, min(count, found.RunsLeft()))
	if err := s.withLoads(ctx, who.Tenant, out.Body.Items); err != nil {
		return nil, err
	}
	if p := found.Paused; p != nil && !p.Over(s.Now()) {
		out.Body.Notes = append(slices.Clip(out.Body.Notes), "The schedule is paused: it does not run at these times "+
			"before the pause ends.")
	}
	return out, nil
}

func preview(c calendar.Union, after time.Time, count int) *previewAnswer {
	out := &previewAnswer{}
	times := c.PreviewRuns(after, count)
	out.Body.Items = viewTimes(times)
	out.Body.Notes = c.Notes()
	if len(times) == 0 {
		return out
	}
	skips, _ := c.Skipped(after, times[len(times)-1].NominalAt, previewScanned)
	for _, skip := range skips[:min(len(skips), PreviewSkipped)] {
		out.Body.Skipped = append(out.Body.Skipped,
			skippedTime{rest.At(skip.NominalAt), skip.Local, skip.Reason, skip.Exclusion, skip.Why})
	}
	return out
}

// withLoads adds to the times what the forecast expects then. It makes no forecast that none of them is in.
func (s *Handler) withLoads(ctx context.Context, t tenant.ID, times []occurrenceTime) error {
	now := s.Now()
	if !slices.ContainsFunc(times, func(v occurrenceTime) bool { return ahead.Covers(v.DueAt.Time, now) }) {
		return nil
	}
	load, err := s.Ahead.Load(ctx, t)
	if err != nil {
		return err
	}
	for n, v := range times {
		if starts, ok := load.At(v.DueAt.Time, now); ok {
			times[n].Load = &starts
		}
	}
	return nil
}

func viewTimes(times []calendar.Occurrence) []occurrenceTime {
	views := make([]occurrenceTime, len(times))
	for i, o := range times {
		views[i] = occurrenceTime{NominalAt: rest.At(o.NominalAt), DueAt: rest.At(o.DueAt), Local: o.Local,
			Flags: append([]string{}, o.Flags...)}
	}
	return views
}

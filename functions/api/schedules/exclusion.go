package schedules

import (
	"context"
	"errors"
	"net/http"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/amend"
	"punctual/shared/audit"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/store"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

func (s *Handler) exclusionRoutes() {
	on := rest.Resource{Router: s.Router, Tag: spec.TagExclusions, Path: "/v1/exclusions"}
	rest.Put(on, "/{name}", "putExclusion", "Create or replace an exclusion", s.putExclusion, rest.Route{
		Action: audit.ExclusionPut,
		Body:   exclusionRequest, Errors: []int{http.StatusTooManyRequests},
		About: "An exclusion is a set of days and ranges of time on which nothing runs. Answers 201 if it is new. " +
			"Schedules that name it follow, as if each had been edited; if one of them would never run any more, the " +
			"exclusion is refused. Safe to repeat.",
	})
	rest.Get(on, "/{name}", "getExclusion", "Get an exclusion", s.getExclusion)
	rest.Delete(on, "/{name}", "deleteExclusion", "Delete an exclusion", s.deleteExclusion,
		rest.Route{Action: audit.ExclusionDelete, Conflict: true,
			About: "An exclusion that a schedule names cannot be deleted."})
	rest.GetPage(on, "", "listExclusions", "List exclusions", s.listExclusions)
}

// Fields of an exclusion, which must exclude something. Package calendar checks what they say.
var (
	excludedDates = calendarTexts("dates", "Whole days that are excluded", 0, calendar.MaxDates,
		field.Formatted("date", datePattern, len(time.DateOnly))).Example([]string{"2027-12-25"})
	excludedRanges = field.List("ranges", "Ranges of whole days, both ends included, or of instants, without the "+
		"second end", 0, calendar.MaxRanges, field.Nested("", "", exclusionRangeRequest, readDayRange))
	excludedYearly = calendarTexts("yearly", "Days of every year that are excluded, as month and day", 0, maxYearly,
		field.Matching(yearlyPattern, len("12-25"))).Example([]string{"12-25"})
	excludedWeekly = calendarTexts("weekly", "Days of every week that are excluded, mon to sun; at most "+
		"{=idle_weekdays}", 0, MaxWeekly, field.Matching(field.AnyCase(calendar.Weekdays), 3)).
		Example([]string{"sat", "sun"})
	excludedZone = spec.Zone("timezone", "Time zone of the days, an IANA name; default: that of the calendar")
	excludedMove = field.Word[string]("move", "Treatment of a nominal time on an excluded day: drop (default), or the "+
		"same time on the next or previous day that is not excluded, within {=move_days} days", rest.CodeInvalidValue,
		moveWords)
	rangeFrom = calendarText("from", "First day, such as 2027-12-24, or first instant, such as 2027-12-24T12:00:00Z",
		dayForm).Required()
	rangeTo = calendarText("to", "Last day, or instant after the range; of the same kind as from", dayForm).Required()

	exclusionRangeRequest = field.NewObject("ExclusionRangeRequest", "Range of days or of instants", rangeFrom, rangeTo)
	exclusionRequest      = field.NewObject("ExclusionRequest", "Days and ranges on which nothing runs. At least "+
		"one of dates, ranges, yearly and weekly is not empty.", excludedDates, excludedRanges, excludedYearly,
		excludedWeekly, excludedZone, excludedMove)
)

// dayForm is the form of a day or an instant.
var dayForm = field.Matching(datePattern+"|"+rest.InstantPattern.String(), spec.MaxTimeText)

const (
	datePattern   = `^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$`
	yearlyPattern = `^(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$`
)

var moveWords = []string{"drop", "next", "previous"}

// Every day of a leap year, and every weekday. Package calendar refuses an exclusion of all seven.
const (
	maxYearly = 366
	MaxWeekly = 7
)

type exclusionAnswer = rest.StatusAnswer[exclusionView]

type exclusionView struct {
	Name     string           `json:"name" doc:"Name of the exclusion"`
	Dates    []string         `json:"dates,omitempty" doc:"Whole days that are excluded"`
	Ranges   []calendar.Range `json:"ranges,omitempty" doc:"Ranges of whole days, both ends included, or of instants, without the second end"`
	Yearly   []string         `json:"yearly,omitempty" doc:"Days of every year that are excluded, as month and day"`
	Weekly   []string         `json:"weekly,omitempty" doc:"Days of every week that are excluded"`
	Timezone *string          `json:"timezone,omitempty" doc:"Time zone of the days; absent if it is that of the calendar"`
	Move     string           `json:"move" enum:"drop,next,previous" doc:"Treatment of a nominal time on an excluded day: drop, or the same time on the next or previous day that is not excluded"`
	Version  int64            `json:"version" doc:"Version, which grows with every change"`
}

func viewExclusion(e store.Exclusion) exclusionView {
	v := exclusionView{Name: e.Name, Dates: e.Dates, Ranges: e.Ranges, Yearly: e.Yearly, Weekly: e.Weekly,
		Timezone: e.Timezone, Move: "drop", Version: e.Version}
	if e.Move != nil {
		v.Move = *e.Move
	}
	return v
}

func (s *Handler) putExclusion(ctx context.Context, who tenant.Identity, in *rest.Named) (*exclusionAnswer, error) {
	if err := rest.CheckName(in.Name, "an exclusion"); err != nil {
		return nil, err
	}
	wanted, err := readExclusion(ctx)
	if err != nil {
		return nil, err
	}
	after, created, err := s.Editor.PutExclusion(ctx, who.Tenant, in.Name, wanted)
	var unfit *amend.Unfit
	switch {
	case errors.As(err, &unfit):
		return nil, rest.OneViolation("", unfit.Why.Code, "", "%s", unfit.Error())
	case errors.Is(err, amend.ErrExclusions):
		return nil, rest.NewProblem(rest.CodeRateLimited, "%s", err.Error())
	case err != nil:
		return nil, asProblem(err)
	}
	return rest.Created(created, viewExclusion(after)), nil
}

func readExclusion(ctx context.Context) (calendar.Exclusion, error) {
	var e calendar.Exclusion
	doc, err := rest.NeededBody(ctx, contract.MaxBody, "an object", "an exclusion is needed in the body")
	if err != nil {
		return e, err
	}
	r := spec.NewReader(doc)
	r.NoSecrets(rest.Value{}, nil) // before an error can repeat a value
	f := exclusionRequest.Body(r)
	excludedDates.Into(r, f, &e.Dates)
	excludedYearly.Into(r, f, &e.Yearly)
	excludedWeekly.Into(r, f, &e.Weekly)
	excludedRanges.Into(r, f, &e.Ranges)
	excludedZone.Pointer(r, f, &e.Timezone)
	move := "drop"
	if excludedMove.Into(r, f, &move); move != "drop" {
		e.Move = &move
	}
	if bad := (*calendar.Error)(nil); f != nil && len(r.Wrong) == 0 && errors.As(e.Check(), &bad) {
		refusedAt(r, "/"+bad.Field, bad)
	}
	return e, r.Wrong.Err()
}

func readDayRange(r *rest.Reader, v rest.Value) (calendar.Range, bool) {
	f := exclusionRangeRequest.Read(r, v)
	end := func(of field.Field[*string]) string {
		s := new(string)
		if !of.Into(r, f, &s) && f != nil {
			r.Missing(v.Pointer, of.Name())
		}
		return *s
	}
	return calendar.Range{From: end(rangeFrom), To: end(rangeTo)}, true
}

func (s *Handler) getExclusion(ctx context.Context, who tenant.Identity, in *rest.Named) (*exclusionAnswer, error) {
	e, err := s.Store.Exclusion(ctx, who.Tenant, in.Name)
	return &exclusionAnswer{Status: http.StatusOK, Body: viewExclusion(e)}, rest.Absent(err, "exclusion")
}

func (s *Handler) deleteExclusion(ctx context.Context, who tenant.Identity, in *rest.Named) (*rest.NoContent, error) {
	names, err := s.Editor.DeleteExclusion(ctx, who.Tenant, in.Name)
	if len(names) > 0 {
		return nil, rest.NewProblem(spec.CodeWrongState, "schedules name this exclusion: %s", text.SomeNames(names))
	}
	return &rest.NoContent{}, rest.Absent(err, "exclusion")
}

func (s *Handler) listExclusions(
	ctx context.Context, who tenant.Identity, _ *rest.PageInput, after string, limit int,
) (rest.Found[exclusionView], error) {
	exclusions, more, err := s.Store.Exclusions(ctx, who.Tenant, after, limit)
	return rest.FoundRows(exclusions, more, viewExclusion, func(e store.Exclusion) string { return e.Name }), err
}

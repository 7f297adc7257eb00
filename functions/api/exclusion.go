package api

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"punctual/functions/api/wire"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

func (s *stage) exclusionRoutes() {
	wire.Register(s.router, wire.Route{
		Method: http.MethodPut, Path: "/v1/exclusions/{name}", ID: "putExclusion", Tag: tagSchedules, Scope: mayWrite,
		Body:    exclusionRequest{},
		Summary: "Create or replace an exclusion", Errors: []int{http.StatusTooManyRequests},
		About: "Days and stretches of time on which nothing runs. 201 when it is new. Schedules that name it " +
			"follow, as if each had been edited; one that would never fire any more is a reason to refuse. Safe to " +
			"repeat.",
	}, s.putExclusion)
	wire.Register(s.router, wire.Route{
		Method: http.MethodGet, Path: "/v1/exclusions/{name}", ID: "getExclusion", Tag: tagSchedules, Scope: mayRead,
		Summary: "Get an exclusion", Errors: []int{http.StatusNotFound},
	}, s.getExclusion)
	wire.Register(s.router, wire.Route{
		Method: http.MethodDelete, Path: "/v1/exclusions/{name}", ID: "deleteExclusion", Tag: tagSchedules,
		Scope:   mayWrite,
		Summary: "Delete an exclusion", About: "One that no schedule names.",
		Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, s.deleteExclusion)
	wire.Register(s.router, wire.Route{
		Method: http.MethodGet, Path: "/v1/exclusions", ID: "listExclusions", Tag: tagSchedules, Scope: mayRead,
		Summary: "List exclusions",
	}, s.listExclusions)
}

// exclusionRequest documents an exclusion. It must exclude something.
type exclusionRequest struct {
	Dates    []string                `json:"dates,omitempty" doc:"Whole days" example:"[\"2027-12-25\"]"`
	Ranges   []exclusionRangeRequest `json:"ranges,omitempty" doc:"Of whole days, both included, or of instants, to not included"`
	Yearly   []string                `json:"yearly,omitempty" doc:"Days of every year" example:"[\"12-25\"]"`
	Weekly   []string                `json:"weekly,omitempty" doc:"mon to sun; at most {=idle_weekdays} of them" example:"[\"sat\",\"sun\"]"`
	Timezone string                  `json:"timezone,omitempty" doc:"Whose days these are, an IANA name; default: the calendar's"`
	Move     string                  `json:"move,omitempty" doc:"What becomes of a time that it excludes: nothing, or the same time on the next or previous day that is open, within {=move_days} days. Default drop"`
}

type exclusionRangeRequest struct {
	From string `json:"from" doc:"2027-12-24, or 2027-12-24T12:00:00Z"`
	To   string `json:"to" doc:"Of the same kind"`
}

var moveWords = []string{"drop", "next", "previous"}

// Every day of a leap year, and every weekday. Package calendar refuses an exclusion of all seven.
const (
	maxYearly = 366
	maxWeekly = 7
)

type exclusionView struct {
	Name     string           `json:"name"`
	Dates    []string         `json:"dates,omitempty"`
	Ranges   []calendar.Range `json:"ranges,omitempty"`
	Yearly   []string         `json:"yearly,omitempty"`
	Weekly   []string         `json:"weekly,omitempty"`
	Timezone *string          `json:"timezone,omitempty"`
	Move     string           `json:"move" enum:"drop,next,previous"`
	Version  int64            `json:"version" doc:"Grows with every change"`
}

func viewExclusion(e store.Exclusion) exclusionView {
	v := exclusionView{Name: e.Name, Dates: e.Dates, Ranges: e.Ranges, Yearly: e.Yearly, Weekly: e.Weekly,
		Timezone: e.Timezone, Move: "drop", Version: e.Version}
	if e.Move != nil {
		v.Move = *e.Move
	}
	return v
}

func (s *stage) putExclusion(
	ctx context.Context, who tenant.Identity, in *namedInput,
) (*statusAnswer[exclusionView], error) {
	if err := checkName(in.Name, "an exclusion"); err != nil {
		return nil, err
	}
	wanted, err := readExclusion(ctx)
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	after, err := s.Store.UpdateExclusion(ctx, who.Tenant, in.Name,
		func(old *store.Exclusion) (store.Exclusion, error) {
			status = http.StatusOK
			if old == nil {
				status = http.StatusCreated
				if err := s.limitExclusions(ctx, who.Tenant); err != nil {
					return store.Exclusion{}, err
				}
			}
			return store.Exclusion{Name: in.Name, Exclusion: wanted}, s.judgeExclusion(ctx, who.Tenant, in.Name, wanted)
		})
	if err != nil {
		return nil, err
	}
	if err := s.follow(ctx, who, in.Name, wanted); err != nil {
		return nil, err
	}
	return &statusAnswer[exclusionView]{status, viewExclusion(after)}, nil
}

// naming lists a tenant's schedules whose calendar names an exclusion. Schedules that cannot be read are reported and
// left out.
func (s *stage) naming(ctx context.Context, t tenant.ID, name string) ([]schedule.Schedule, error) {
	var naming []schedule.Schedule
	for f, err := range s.allSchedules(ctx, t) {
		switch {
		case err != nil:
			return nil, err
		case f.Err != nil:
			s.unreadable(ctx, f)
		case slices.Contains(f.Spec.Exclude, name):
			naming = append(naming, f.Schedule)
		}
	}
	return naming, nil
}

// allSchedules iterates over a tenant's schedules, also those that cannot be read.
func (s *stage) allSchedules(ctx context.Context, t tenant.ID) iter.Seq2[store.FoundSchedule, error] {
	return func(yield func(store.FoundSchedule, error) bool) {
		for after, more := "", true; more; {
			var found []store.FoundSchedule
			var err error
			if found, more, err = s.Store.Schedules(ctx, t, after, contract.ListMax); err != nil {
				yield(store.FoundSchedule{}, err)
				return
			}
			for _, f := range found {
				if after = f.Name; !yield(f, nil) {
					return
				}
			}
		}
	}
}

// following returns the schedule with its copy of an exclusion replaced.
func following(c schedule.Schedule, name string, e calendar.Exclusion) schedule.Schedule {
	c.Exclusions = maps.Clone(c.Exclusions)
	if c.Exclusions == nil {
		c.Exclusions = calendar.Exclusions{}
	}
	c.Exclusions[name] = e
	return c
}

// judgeExclusion refuses an exclusion that makes the calendar of one of the schedules invalid.
func (s *stage) judgeExclusion(ctx context.Context, t tenant.ID, name string, e calendar.Exclusion) error {
	naming, err := s.naming(ctx, t, name)
	if err != nil {
		return err
	}
	now := s.now()
	for _, c := range naming {
		before, err := c.Calendar()
		if err != nil || before.Check(now) != nil {
			continue // its calendar is invalid as it is
		}
		after, err := following(c, name, e).Calendar()
		if err == nil {
			err = after.Check(now)
		}
		var bad *calendar.Error
		if errors.As(err, &bad) {
			return wire.OneMistake("", bad.Code, "", "schedule %s names this exclusion, and could not go on: %s",
				c.Name, bad.Detail)
		}
	}
	return nil
}

// follow edits each schedule that names an exclusion, unless its copy is the same already.
func (s *stage) follow(ctx context.Context, who tenant.Identity, name string, e calendar.Exclusion) error {
	naming, err := s.naming(ctx, who.Tenant, name)
	if err != nil {
		return err
	}
	var all errgroup.Group
	all.SetLimit(batchWriters)
	for _, c := range naming {
		all.Go(func() error { return s.followOne(ctx, who, c.Key, name, e) })
	}
	if err := all.Wait(); err != nil { // repeating the PUT continues from here
		return fmt.Errorf("editing schedules that name exclusion %q: %w", name, err)
	}
	return nil
}

func (s *stage) followOne(
	ctx context.Context, who tenant.Identity, k schedule.Key, name string, e calendar.Exclusion,
) error {
	if err := s.promoteFirst(ctx, k); err != nil {
		return err
	}
	after, changed, err := s.changeSchedule(ctx, k, 0,
		func(old schedule.Schedule, now time.Time) ([]item.Write, error) {
			wanted := following(old, name, e)
			if !slices.Contains(old.Spec.Exclude, name) || schedule.Unchanged(old, wanted) {
				return nil, nil
			}
			has, err := s.Store.HaveJobs(ctx, k, old.Leaves(now))
			if err != nil {
				return nil, err
			}
			after, writes, err := schedule.Edit(old, wanted, has, now)
			var bad *calendar.Error
			if errors.As(err, &bad) { // its calendar was invalid before
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			return s.scheduleWrites(ctx, who, 0, after, scheduleChange{}, writes)
		})
	if changed {
		s.promote(ctx, after.Key)
	}
	if isNotFound(err) || fault.KindOf(err) == fault.NotFound { // deleted in the meantime
		return nil
	}
	return err
}

// limitExclusions refuses an exclusion beyond contract.MaxExclusions. Two requests at once may exceed it by one; the
// limit only bounds how much a list reads.
func (s *stage) limitExclusions(ctx context.Context, t tenant.ID) error {
	_, more, err := s.Store.Exclusions(ctx, t, "", contract.MaxExclusions-1)
	if err != nil {
		return err
	}
	if more {
		return wire.NewProblem(wire.CodeRateLimited,
			"there are %d exclusions already, which is the limit; delete one first", contract.MaxExclusions)
	}
	return nil
}

func readExclusion(ctx context.Context) (calendar.Exclusion, error) {
	var e calendar.Exclusion
	doc, err := neededBody(ctx, contract.MaxBody, "an object", "an exclusion is needed in the body")
	if err != nil {
		return e, err
	}
	r := newReader(doc)
	r.NoSecrets(wire.Value{}, nil) // before a mistake can repeat a value
	f := r.Object(0, "", wire.NamesOf[exclusionRequest]())
	texts := func(name string, most int) (list []string) {
		if v, ok := f[name]; ok {
			for _, each := range r.List(v, most) {
				if s, ok := r.Text(each); ok {
					list = append(list, s)
				}
			}
		}
		return list
	}
	e.Dates, e.Yearly, e.Weekly = texts("dates", calendar.MaxDates), texts("yearly", maxYearly),
		texts("weekly", maxWeekly)
	if v, ok := f["ranges"]; ok {
		for _, each := range r.List(v, calendar.MaxRanges) {
			e.Ranges = append(e.Ranges, r.stretch(each))
		}
	}
	if v, ok := f["timezone"]; ok {
		if zone, ok := r.Text(v); ok {
			e.Timezone = &zone
		}
	}
	if v, ok := f["move"]; ok {
		if move, ok := r.OneOf(v, wire.CodeInvalidValue, moveWords); ok && move != "drop" {
			e.Move = &move
		}
	}
	if f != nil && len(r.Wrong) == 0 {
		r.refused("", e.Check())
	}
	return e, r.Wrong.Err()
}

// stretch reads one range of days or of instants.
func (r *reader) stretch(v wire.Value) calendar.Range {
	f := r.Object(v.Node, v.Pointer, wire.NamesOf[exclusionRangeRequest]())
	end := func(name string) (s string) {
		if at, ok := f[name]; ok {
			s, _ = r.Text(at)
		} else if f != nil {
			r.Missing(v.Pointer, name)
		}
		return s
	}
	return calendar.Range{From: end("from"), To: end("to")}
}

func (s *stage) getExclusion(
	ctx context.Context, who tenant.Identity, in *namedInput,
) (*statusAnswer[exclusionView], error) {
	e, err := s.Store.Exclusion(ctx, who.Tenant, in.Name)
	if err != nil {
		return nil, absent(err, "exclusion")
	}
	return &statusAnswer[exclusionView]{http.StatusOK, viewExclusion(e)}, nil
}

func (s *stage) deleteExclusion(ctx context.Context, who tenant.Identity, in *namedInput) (*empty, error) {
	naming, err := s.naming(ctx, who.Tenant, in.Name)
	if err != nil {
		return nil, err
	}
	if len(naming) > 0 {
		return nil, wire.NewProblem(codeWrongState, "%s", inUse(naming))
	}
	return &empty{}, absent(s.Store.DeleteExclusion(ctx, who.Tenant, in.Name), "exclusion")
}

func (s *stage) listExclusions(
	ctx context.Context, who tenant.Identity, in *pageInput,
) (*page[exclusionView], error) {
	l := wire.NewList(who.Tenant, "exclusions")
	limit, after, err := in.Page(l)
	if err != nil {
		return nil, err
	}
	exclusions, more, err := s.Store.Exclusions(ctx, who.Tenant, after, limit)
	if err != nil {
		return nil, err
	}
	return &page[exclusionView]{wire.PageOf(l, exclusions, more, viewExclusion,
		func(e store.Exclusion) string { return e.Name })}, nil
}

// inUse is the sentence that names the schedules with an exclusion.
func inUse(naming []schedule.Schedule) string {
	var names []string
	for _, c := range naming[:min(len(naming), namedMost)] {
		names = append(names, c.Name)
	}
	more := ""
	if len(naming) > namedMost {
		more = fmt.Sprintf(" and %d more", len(naming)-namedMost)
	}
	return "schedules name this exclusion: " + strings.Join(names, ", ") + more
}

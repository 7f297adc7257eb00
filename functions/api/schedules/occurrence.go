package schedules

import (
	"context"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/engine/show"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

// occurrenceView shows the outcome of a nominal time, or of several in a row.
type occurrenceView struct {
	NominalAt       rest.Instant `json:"nominal_at" doc:"Nominal time; the first of several, or the time of the request for a manual run"`
	DueAt           rest.Instant `json:"due_at,omitzero" doc:"Time at which the job is due"`
	Outcome         string       `json:"outcome" enum:"ran,pending,skipped,missed,superseded" doc:"Outcome of the nominal time; pending means that it has not ended"`
	Reason          string       `json:"reason,omitempty" doc:"Reason code. If the time did not run or is held: overlap, paused, excluded, missing_hour, outage, start_within, catch_up_cap, edited, deleted, max_runs or cancelled. If its run failed: the code of the error."`
	Why             string       `json:"why,omitempty" doc:"Reason in words"`
	Manual          bool         `json:"manual,omitempty" doc:"Whether the run was requested, and belongs to no time of the calendar"`
	Backfill        job.ID       `json:"backfill,omitempty" doc:"Identifier of the operation that made the job of this time afterwards"`
	JobID           job.ID       `json:"job_id,omitempty" doc:"Identifier of the job"`
	RunID           job.ID       `json:"run_id,omitempty" doc:"Identifier of the run of a dag, once it has begun. From then on outcome is ran, and status is the status of the run."`
	Status          string       `json:"status,omitempty" doc:"Status of the job or of the run"`
	StartLatenessMS *int64       `json:"start_lateness_ms,omitempty" doc:"Time from due_at, or from acceptance if that was later, to the start, in milliseconds"`
	Until           rest.Instant `json:"until,omitzero" doc:"Last of several nominal times"`
	Count           int          `json:"count,omitempty" doc:"Number of nominal times, if there are several; absent, although until is given, if they were too many to count"`
}

type occurrencesInput struct {
	rest.Named
	rest.Paging
	Outcome string `query:"outcome" doc:"Outcome of the occurrences to list; default: any"`
	After   string `query:"after" format:"date-time" doc:"Earliest nominal time to list; an item for several times that reaches beyond it is included"`
	Before  string `query:"before" format:"date-time" doc:"Nominal time before which occurrences are listed"`
}

func (s *Handler) listOccurrences(
	ctx context.Context, who tenant.Identity, in *occurrencesInput, after string, limit int,
) (page rest.Found[occurrenceView], err error) {
	var wrong fault.Violations
	rest.FilterWord(&wrong, "outcome", in.Outcome, show.Outcomes)
	f := show.OccurrenceFilter{Outcome: in.Outcome, Limit: limit}
	f.After, f.Before = rest.ReadRange(&wrong, "after", in.After, "before", in.Before)
	switch {
	case len(wrong) > 0:
		return page, wrong
	case !rest.IsName(in.Name):
		return page, errNoSchedule()
	}
	of, err := s.Store.Schedule(ctx, schedule.Key{Tenant: who.Tenant, Name: in.Name})
	if err != nil {
		return page, rest.Absent(err, "schedule")
	}
	read := s.Read.Occurrences
	if f.Outcome == schedule.Pending {
		read = s.Read.PendingOccurrences
	} else if f.Before.IsZero() {
		f.Before = s.Now().Add(time.Millisecond) // the coming ones are listed with outcome=pending
	}
	found, next, err := read(ctx, of, f, after)
	for _, o := range found {
		page.Items = append(page.Items, viewOccurrence(o))
	}
	page.Next = next
	return page, err
}

func viewOccurrence(o show.Occurrence) occurrenceView {
	return occurrenceView{rest.At(o.NominalAt), rest.At(o.DueAt), o.Outcome, o.Reason, o.Why, o.Manual, o.Backfill,
		o.JobID, o.RunID, o.Status, o.LatenessMS, rest.At(o.Until), o.Count}
}

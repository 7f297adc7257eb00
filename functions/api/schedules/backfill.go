package schedules

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/submit"
	"punctual/shared/audit"
	"punctual/shared/contract"
	"punctual/shared/document"
	"punctual/shared/operation"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Fields of a backfill.
var (
	backfillFrom = spec.Instant("from", "Earliest nominal time to make, with its time zone. It is at most "+
		"{=finished_days} days ago, because of older times it is not known whether they ran; earlier only if those "+
		"that ran are made, too.").Required()
	backfillTo = spec.Instant("to", "Time before which the nominal times to make are, with its time zone; at most "+
		"now").Required()
	backfillOrder = field.Word[operation.Order]("order", "Nominal times that are made first: oldest (default) or "+
		"newest", rest.CodeInvalidValue, operation.Orders)
	backfillRunning = field.Whole("max_running", "Maximum number of jobs, or runs, of the backfill that are open at a "+
		"time; default: 1", 1, operation.MaxOpen)
	backfillRepeat = field.Flag("again", "Whether nominal times that ran, or have not ended, are made too; default: "+
		"false")
	backfillDryRun = field.Flag("dry_run", "Whether to answer how many times match and are left out, and to write "+
		"nothing; default: false")
	backfillReason = spec.Reason.About("Reason for the backfill, shown with the operation")

	backfillRequest = field.NewObject("BackfillRequest", "Past times of a schedule that are to be made.", backfillFrom,
		backfillTo, backfillOrder, backfillRunning, backfillRepeat, backfillDryRun, backfillReason)
)

// DryRunTime bounds how long a dry run counts what is left out.
const DryRunTime = 20 * time.Second

func (s *Handler) backfillRoutes(on rest.Resource) {
	rest.Post(on, "/{name}/backfills", "createBackfill", "Make past times of a schedule", s.backfill, rest.Route{
		Action: audit.ScheduleBackfill,
		Status: http.StatusAccepted, Body: backfillRequest, Conflict: true, Also: []int{http.StatusOK},
		About: "Makes a job, or a run, of each nominal time from from up to to, exclusive, that did not run: at most " +
			"{=operation_times} times, with max_running of them open at a time. The answer is an operation, which " +
			"continues by itself. The jobs are due at once and have the nominal time; overlap, catch_up, max_runs " +
			"and pauses of the schedule do not apply to them, pauses of the task and of everything do. The times " +
			"are those of the calendar when they are made, so an edit of the schedule counts for what is not made " +
			"yet. With dry_run the answer is 200 and an operation without an id. Repeating a request with the same " +
			"Idempotency-Key answers the operation that the first one made, with Idempotency-Replayed: true.",
	})
}

type backfillInput struct {
	rest.Named
	spec.Keyed
}

func (s *Handler) backfill(
	ctx context.Context, who tenant.Identity, in *backfillInput,
) (*spec.OperationAnswer, error) {
	doc, err := rest.NeededBody(ctx, contract.MaxBody, "an object", "a backfill is needed in the body")
	if err != nil {
		return nil, err
	}
	dry, r := false, spec.NewReader(doc)
	backfillDryRun.Into(r, backfillRequest.Body(r), &dry) // what is wrong is said below
	k := schedule.Key{Tenant: who.Tenant, Name: in.Name}
	if dry {
		return s.dryBackfill(ctx, doc, k)
	}
	asked := submit.Request{Who: who, Key: in.IdempotencyKey, Hash: "backfill " + in.Name + " " + doc.Hash(0, "")}
	o, replayed, err := s.Submit.Backfill(ctx, asked, func(now time.Time) (operation.Operation, error) {
		_, o, err := s.readBackfill(ctx, doc, k, now)
		o.By = who.Subject
		return o, err
	})
	if err != nil {
		return nil, asProblem(spec.KeyProblem(err))
	}
	out := &spec.OperationAnswer{Status: http.StatusAccepted, Location: "/v1/operations/" + string(o.ID),
		Body: spec.ViewOperation(o, s.Now())}
	if replayed {
		out.Replayed = "true"
	}
	return out, nil
}

// dryBackfill answers what a backfill would make.
func (s *Handler) dryBackfill(
	ctx context.Context, doc *document.Document, k schedule.Key,
) (*spec.OperationAnswer, error) {
	now := s.Now()
	of, o, err := s.readBackfill(ctx, doc, k, now)
	if err != nil {
		return nil, asProblem(err)
	}
	ctx, cancel := context.WithTimeout(ctx, DryRunTime)
	defer cancel()
	matched, skipped, all, err := s.Engine.Backfills.Count(ctx, of, o)
	if err != nil {
		return nil, asProblem(err)
	}
	v := spec.ViewOperation(o, now)
	v.OperationID, v.Status, v.Skipped, v.Matched = "", "", skipped, &matched
	if !all {
		v.Matched, v.MatchedAtLeast = nil, &matched
	}
	return &spec.OperationAnswer{Status: http.StatusOK, Body: v}, nil
}

// readBackfill reads a backfill of a schedule.
func (s *Handler) readBackfill(
	ctx context.Context, doc *document.Document, k schedule.Key, now time.Time,
) (of schedule.Schedule, o operation.Operation, err error) {
	r := spec.NewReader(doc)
	f := backfillRequest.Body(r)
	o = operation.Operation{
		Key: operation.Key{Tenant: k.Tenant}, Action: operation.Backfill, Status: operation.Running, CreatedAt: now,
		Version: 1, Schedule: k.Name, Order: operation.Oldest, Most: 1,
	}
	for _, name := range []string{backfillFrom.Name(), backfillTo.Name()} {
		if _, ok := f[name]; f != nil && !ok {
			r.Missing("", name)
		}
	}
	backfillOrder.Into(r, f, &o.Order)
	backfillRunning.Into(r, f, &o.Most)
	backfillRepeat.Into(r, f, &o.Repeat)
	backfillReason.Into(r, f, &o.Reason)
	var dry bool
	backfillDryRun.Into(r, f, &dry)
	if backfillFrom.Into(r, f, &o.From) && backfillTo.Into(r, f, &o.To) && len(r.Wrong) == 0 {
		checkRange(r, o, now)
	}
	if len(r.Wrong) > 0 {
		return of, o, r.Wrong
	}
	if of, err = s.schedule(ctx, k); err != nil {
		return of, o, err
	}
	cal, err := of.Calendar()
	if err != nil {
		return of, o, err
	}
	matched, more := o.Left(cal, operation.MaxTimes)
	if more {
		return of, o, rest.OneViolation("/to", rest.CodeOutOfRange, fmt.Sprintf("at most %d times", operation.MaxTimes),
			fmt.Sprintf("the schedule has more than %d times from %s to %s", operation.MaxTimes, instant(o.From),
				instant(o.To)))
	}
	o.Matched, o.Since, o.Epoch = matched, of.CreatedAt, of.Epoch
	return of, o, nil
}

// checkRange reports a range that lies in no past that is known.
func checkRange(r *rest.Reader, o operation.Operation, now time.Time) {
	if !o.From.Before(o.To) {
		r.Violation("/to", rest.CodeOutOfRange, "a time after from", "to is %s, which is not after from, %s",
			instant(o.To), instant(o.From))
	}
	if o.To.After(now) {
		r.Violation("/to", rest.CodeOutOfRange, "at most now, "+instant(now), "to is %s, which has not passed yet",
			instant(o.To))
	}
	if known := now.Add(-schedule.LedgerKept); o.From.Before(known) && !o.Repeat {
		r.Violation("/from", rest.CodeOutOfRange, "at least "+instant(known)+", or any time with again",
			"from is %s; of times that long ago it is not known whether they ran", instant(o.From))
	}
}

func instant(t time.Time) string { return t.UTC().Format(text.InstantLayout) }

package operations

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/operate"
	"punctual/functions/engine/submit"
	"punctual/shared/contract"
	"punctual/shared/document"
	"punctual/shared/job"
	"punctual/shared/operation"
	"punctual/shared/run"
	"punctual/shared/search"
	"punctual/shared/tenant"
)

// Bounds of a request.
const (
	maxNamed = 1000
	// MaxPatch is how many bytes a patch of payloads has: each step of the operation writes it.
	MaxPatch     = 8 << 10
	maxRateCount = 100_000
	maxSpread    = 30 * 24 * time.Hour
	maxWithin    = 24 * time.Hour
	// DryRunTime bounds how long a dry run counts what matches.
	DryRunTime = 20 * time.Second
)

// Defaults of a canary.
const (
	defaultMinSucceeded = 0.9
	defaultWithin       = 10 * time.Minute
)

// Fields of an operation.
var (
	actionField = field.Word[operation.Action]("action", "Action on each job or run that matches. redrive, purge and "+
		"delete require the scope punctual:admin.", rest.CodeInvalidValue, operation.Actions).Required()
	filterField = field.Value("filter", "Filter of the jobs, of the dead letters (for redrive and purge) or of the "+
		"runs (for retry_runs and cancel_runs) that the operation works on; or their identifiers. Of those that "+
		"match, the operation works on the ones that the action can change.", filterRequest.Schema)
	allField  = field.Flag("all", "Whether an empty filter is meant, which matches everything; default: false")
	setField  = field.Value("set", "New values for each job", setRequest.Schema)
	rateField = field.Value("rate", "Maximum rate of the operation; default: as fast as it can", rateRequest.Schema)
	spread    = field.Duration("spread", "Time over which the due times of the jobs are dealt out evenly, for "+
		"redrive, run_now and reschedule. It excludes rate.", time.Second, maxSpread)
	canary = field.Value("canary", "First jobs or runs, the oldest, whose ends the others wait for; for redrive, "+
		"run_now and retry_runs", canaryRequest.Schema)
	dryRun = field.Flag("dry_run", "Whether to answer how many match, and to change nothing; default: false")
	reason = spec.Reason.About("Reason for the operation, shown with it")

	operationRequest = field.NewObject("OperationRequest", "Action on many jobs or runs.", actionField, filterField,
		allField, setField, rateField, spread, canary, dryRun, reason).Excluding("rate", "spread")

	payloadPatch = spec.PayloadPatch.About("Changes of the payload of each dead job, as a merge patch (RFC 7396), up " +
		"to {=operation_patch_kib} KiB. The changed payload is checked like that of a redrive of one job.")

	setRequest = field.NewObject("OperationSetRequest", "New values: priority for reprioritize and redrive, run_at or "+
		"delay for reschedule and redrive, payload_patch for redrive.", spec.Priority.About("Priority"), payloadPatch,
		spec.RunAt.About("Time at which the jobs are due, with its time zone"),
		spec.Delay.About("Time from when the operation comes to a job until the job is due")).
		Excluding("run_at", "delay")

	rateCount = field.Whole("count", "Number of jobs or runs", 1, maxRateCount).Required()
	ratePer   = field.Duration("per", "Time in which the operation works on so many", contract.MinRatePer,
		contract.MaxRatePer).Required()
	rateRequest = field.NewObject("OperationRateRequest", "Maximum rate of an operation.", rateCount, ratePer)

	canaryCount   = field.Whole("count", "Number of jobs or runs", 1, operation.MaxCanary).Required()
	minSucceeded  = field.Number("min_succeeded", "Share of them that has to succeed; default: 0.9", 0, 1)
	canaryWithin  = field.Duration("within", "Time in which they have to end; default: 10m", time.Second, maxWithin)
	canaryRequest = field.NewObject("CanaryRequest", "First jobs or runs of an operation.", canaryCount, minSucceeded,
		canaryWithin)
)

func (s *Handler) create(ctx context.Context, who tenant.Identity, in *spec.Keyed) (*spec.OperationAnswer, error) {
	doc, err := rest.NeededBody(ctx, contract.MaxBody, "an object", "an operation is needed in the body")
	if err != nil {
		return nil, err
	}
	o, named, dry, err := s.readOperation(doc, who, s.Now())
	if err != nil {
		return nil, err
	}
	if o.Action.Destroys() && !who.May(tenant.Admin) {
		return nil, rest.NewProblem(rest.CodeForbidden, "an operation with the action %s needs the scope %s, which "+
			"the token does not have", o.Action, tenant.Admin)
	}
	if dry {
		return s.dryRun(ctx, o, named)
	}
	asked := submit.Request{Who: who, Key: in.IdempotencyKey, Hash: "operation " + doc.Hash(0, "")}
	o, replayed, err := s.Submit.Operation(ctx, asked,
		func(now time.Time) (operation.Operation, []job.ID, error) {
			o, named, _, err := s.readOperation(doc, who, now)
			return o, named, err
		})
	if err != nil {
		return nil, problem(spec.KeyProblem(err))
	}
	out := &spec.OperationAnswer{Status: http.StatusAccepted, Location: "/v1/operations/" + string(o.ID),
		Body: spec.ViewOperation(o, s.Now())}
	if replayed {
		out.Replayed = "true"
	}
	return out, nil
}

// dryRun answers what an operation would work on.
func (s *Handler) dryRun(
	ctx context.Context, o operation.Operation, named []job.ID,
) (*spec.OperationAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, DryRunTime)
	defer cancel()
	matched, skipped, all, err := s.Bulk.DryRun(ctx, o, named)
	if err != nil {
		return nil, err
	}
	v := spec.ViewOperation(o, s.Now())
	v.Status, v.Skipped, v.Matched = "", skipped, &matched
	if !all {
		v.Matched, v.MatchedAtLeast = nil, &matched
	}
	return &spec.OperationAnswer{Status: http.StatusOK, Body: v}, nil
}

// readOperation reads an operation, without its id. named are the rows, newest first, if the request names them.
func (s *Handler) readOperation(
	doc *document.Document, who tenant.Identity, now time.Time,
) (o operation.Operation, named []job.ID, dry bool, err error) {
	r := spec.NewReader(doc)
	f := operationRequest.Body(r)
	o = operation.Operation{Key: operation.Key{Tenant: who.Tenant}, By: who.Subject, CreatedAt: now, Version: 1}
	if _, ok := f[actionField.Name()]; f != nil && !ok {
		r.Missing("", actionField.Name())
	}
	known := actionField.Into(r, f, &o.Action) && o.Action != ""
	named = s.readFilter(r, f, known, &o)
	s.readSet(r, f, known, &o, now)
	o.Bulk.Rate = readRate(r, f)
	spread.Into(r, f, (*time.Duration)(&o.Bulk.Spread))
	o.Bulk.Canary = readCanary(r, f)
	dryRun.Into(r, f, &dry)
	if reason.Into(r, f, &o.Reason) {
		r.NoSecrets(f[reason.Name()], nil)
	}
	if known {
		excludes(r, f, o)
	}
	if len(r.Wrong) > 0 {
		return o, nil, dry, r.Wrong
	}
	o.Bulk.Phase, o.Status = operation.Counting, operation.Counting
	if o.Bulk.Named = named != nil; o.Bulk.Named {
		o.Matched = len(named)
		o.Counted(now)
	}
	return o, named, dry, nil
}

// excludes reports fields that exclude each other, or the action.
func excludes(r *rest.Reader, f rest.Fields, o operation.Operation) {
	starting, timing := []operation.Action{}, []operation.Action{}
	for _, a := range operation.Actions {
		if a.Starts() {
			starting = append(starting, a)
		}
		if a.Times() {
			timing = append(timing, a)
		}
	}
	if v, ok := f[canary.Name()]; ok && !o.Action.Starts() {
		r.Violation(v.Pointer, rest.CodeConflictingFields, "a canary with "+words(starting),
			"%s starts nothing whose end a canary could wait for", o.Action)
	}
	v, ok := f[spread.Name()]
	switch _, rated := f[rateField.Name()]; {
	case ok && rated:
		r.Violation(v.Pointer, rest.CodeConflictingFields, "rate or spread", "rate and spread exclude each other")
	case ok && !o.Action.Times():
		r.Violation(v.Pointer, rest.CodeConflictingFields, "a spread with "+words(timing),
			"%s gives no due times that could be spread", o.Action)
	}
}

func words(actions []operation.Action) string {
	return strings.Join(rest.WordsOf(actions), ", ")
}

// settable are the fields of set that an action takes.
var settable = map[operation.Action][]string{
	operation.ReprioritizeJobs: {spec.Priority.Name()},
	operation.RescheduleJobs:   {spec.RunAt.Name(), spec.Delay.Name()},
	operation.RedriveJobs: {spec.Priority.Name(), spec.RunAt.Name(), spec.Delay.Name(),
		spec.PayloadPatch.Name()},
}

// readSet reads what the operation gives to its jobs.
func (s *Handler) readSet(r *rest.Reader, f rest.Fields, known bool, o *operation.Operation, now time.Time) {
	v, given := f[setField.Name()]
	set := rest.Fields{}
	if given {
		set = setRequest.Read(r, v)
	}
	var due time.Time
	if spec.Due(r, set, now, &due) {
		if _, ok := set[spec.RunAt.Name()]; ok {
			o.Bulk.Set.RunAt = due
		} else {
			o.Bulk.Set.Delay = new(operation.Span(due.Sub(now)))
		}
	}
	spec.Priority.Into(r, set, &o.Bulk.Set.Priority)
	o.Bulk.Set.Patch = readPatch(r, set)
	if !known {
		return
	}
	takes := settable[o.Action]
	for _, name := range setRequest.Names() {
		if at, ok := set[name]; ok && !slices.Contains(takes, name) {
			r.Violation(at.Pointer, rest.CodeConflictingFields, cmp.Or(strings.Join(takes, ", "), "no set"),
				"%s does not set %s", o.Action, name)
		}
	}
	_, spreads := f[spread.Name()]
	switch {
	case o.Action == operation.ReprioritizeJobs && !spec.HasAny(set, takes):
		r.Missing("/set", spec.Priority.Name())
	case o.Action == operation.RescheduleJobs && !spec.HasAny(set, takes) && !spreads:
		r.Violation("/set", rest.CodeMissingField, "run_at or delay", "reschedule needs a new time for the jobs")
	}
}

// readPatch reads the patch of payloads; nil for none.
func readPatch(r *rest.Reader, set rest.Fields) json.RawMessage {
	v, ok := set[payloadPatch.Name()]
	if !ok {
		return nil
	}
	r.AllDuplicates(v.Node)
	if spec.TooDeep(r, v, "the patch is") {
		return nil
	}
	patch := slices.Clone(r.Doc.Compact(v.Node))
	if len(patch) > MaxPatch {
		r.Violation(v.Pointer, rest.CodeTooLarge, fmt.Sprintf("at most %d bytes", MaxPatch), "the patch has %d bytes",
			len(patch))
		return nil
	}
	r.NoSecrets(v, nil)
	return patch
}

func readRate(r *rest.Reader, f rest.Fields) (rate operation.Rate) {
	v, ok := f[rateField.Name()]
	if !ok {
		return rate
	}
	of := rateRequest.Read(r, v)
	for _, name := range []string{rateCount.Name(), ratePer.Name()} {
		if _, ok := of[name]; of != nil && !ok {
			r.Missing(v.Pointer, name)
		}
	}
	rateCount.Into(r, of, &rate.Count)
	ratePer.Into(r, of, (*time.Duration)(&rate.Per))
	return rate
}

func readCanary(r *rest.Reader, f rest.Fields) (c operation.Canary) {
	v, ok := f[canary.Name()]
	if !ok {
		return c
	}
	c.MinSucceeded, c.Within = defaultMinSucceeded, operation.Span(defaultWithin)
	of := canaryRequest.Read(r, v)
	if _, ok := of[canaryCount.Name()]; of != nil && !ok {
		r.Missing(v.Pointer, canaryCount.Name())
	}
	canaryCount.Into(r, of, &c.Count)
	minSucceeded.Into(r, of, &c.MinSucceeded)
	canaryWithin.Into(r, of, (*time.Duration)(&c.Within))
	return c
}

// readFilter reads which rows the operation works on. named are their ids, newest first, if the request names them.
func (s *Handler) readFilter(
	r *rest.Reader, f rest.Fields, known bool, o *operation.Operation,
) (named []job.ID) {
	all := false
	allField.Into(r, f, &all)
	v, given := f[filterField.Name()]
	if !given {
		if f != nil && !all {
			r.Missing("", filterField.Name())
		}
		return nil
	}
	of := filterRequest.Read(r, v)
	if of == nil {
		return nil
	}
	for ids, onRuns := range map[string]bool{jobIDs.Name(): false, runIDs.Name(): true} {
		at, ok := of[ids]
		switch {
		case !ok:
			continue
		case len(of) > 1:
			r.Violation(at.Pointer, rest.CodeConflictingFields, ids+" alone, or other fields",
				"%s excludes the other fields of a filter", ids)
		case known && o.Action.OnRuns() != onRuns:
			r.Violation(at.Pointer, rest.CodeConflictingFields, "job_ids of jobs, run_ids of runs",
				"%s goes with other actions than %s", ids, o.Action)
		}
		return readIDs(r, at)
	}
	o.Bulk.Filter = readSearch(r, of, o.Action)
	if len(of) == 0 && !all {
		r.Violation(v.Pointer, rest.CodeMissingField, `a filter, or "all":true`,
			`an empty filter matches everything; confirm that by "all":true`)
	}
	if known && len(r.Wrong) == 0 && !s.Bulk.Takes(o.Action, o.Bulk.Filter) {
		s.notIndexed(r, of, o.Action)
	}
	return nil
}

// readIDs reads ids, and returns them newest first, each once.
func readIDs(r *rest.Reader, v rest.Value) (ids []job.ID) {
	for _, each := range r.List(v, maxNamed) {
		text, ok := r.Text(each)
		if !ok {
			continue
		}
		id, err := job.ParseID(text)
		if err != nil {
			r.Violation(each.Pointer, rest.CodeInvalidValue, fmt.Sprintf("an id: %d characters of a ULID",
				spec.JobIDLength), "this is not an id")
			continue
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 && len(r.Wrong) == 0 {
		r.Violation(v.Pointer, rest.CodeOutOfRange, fmt.Sprintf("1 to %d", maxNamed), "there are no ids")
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	slices.Reverse(ids)
	return ids
}

// statuses are those by which a filter can select what an action is about; "" is any action on jobs.
func statuses(a operation.Action) []string {
	switch operate.Kind(a) {
	case operate.Runs:
		return rest.WordsOf([]run.Status{run.Building, run.Running, run.Paused, run.Held, run.Succeeded, run.Failed,
			run.Cancelled})
	case operate.Letters:
		return []string{string(job.Dead)}
	}
	return rest.WordsOf([]job.Status{job.Blocked, job.Scheduled, job.Queued, job.Running, job.Succeeded, job.Dead,
		job.Expired, job.Cancelled, job.Skipped})
}

// readSearch reads the fields of a filter.
func readSearch(r *rest.Reader, of rest.Fields, a operation.Action) (f search.Filter) {
	if at, ok := of[status.Name()]; ok {
		word, _ := r.OneOf(at, rest.CodeInvalidValue, statuses(a))
		f.Status = job.Status(word)
	}
	task.Into(r, of, &f.Task)
	schedule.Into(r, of, &f.Schedule)
	dag.Into(r, of, &f.DAG)
	runID.Into(r, of, &f.RunID)
	spec.Pool.Into(r, of, &f.Pool)
	spec.Priority.Into(r, of, &f.Priority)
	code.Into(r, of, &f.Code)
	group.Into(r, of, &f.Group)
	idPrefix.Into(r, of, &f.IDPrefix)
	for _, each := range []struct {
		after, before field.Field[time.Time]
		from, to      *time.Time
	}{
		{createdAfter, createdBefore, &f.CreatedAfter, &f.CreatedBefore},
		{dueAfter, dueBefore, &f.DueAfter, &f.DueBefore},
		{finishedAfter, finishedBefore, &f.FinishedAfter, &f.FinishedBefore},
		{deadAfter, deadBefore, &f.DeadAfter, &f.DeadBefore},
	} {
		if each.after.Into(r, of, each.from) {
			*each.from = rest.SinceEpoch(*each.from)
		}
		if each.before.Into(r, of, each.to) {
			*each.to = rest.SinceEpoch(*each.to)
		}
		rest.CheckRange(&r.Wrong, of[each.before.Name()].Pointer, *each.from, *each.to)
	}
	tags.Into(r, of, &f.Tags)
	return f
}

// notIndexed reports the fields by which nothing is found without the index.
func (s *Handler) notIndexed(r *rest.Reader, of rest.Fields, a operation.Action) {
	by := s.listedBy(a)
	for _, name := range filterRequest.Names() {
		if at, ok := of[name]; ok && !slices.Contains(by, name) {
			r.Violation(at.Pointer, spec.CodeNotIndexed, strings.Join(by, ", "),
				"without the index of jobs, %s cannot be filtered by %s", kindOf(a), name)
		}
	}
}

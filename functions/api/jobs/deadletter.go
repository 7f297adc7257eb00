package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/show"
	"punctual/shared/audit"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

func (s *Handler) deadLetterRoutes() {
	on := rest.Resource{Router: s.Router, Tag: spec.TagDead, Path: "/v1/dead-letters"}
	rest.GetSearch(on, "", "listDeadLetters", "List dead letters", s.listDeadLetters,
		rest.Route{About: "Jobs that failed finally, newest first, with their newest attempts. All filters but task, " +
			"dead_after and dead_before need the index of jobs (search=yes)."})
	rest.GetSearch(on, "/groups", "listDeadLetterGroups", "List dead letters by cause", s.listGroups, rest.Route{
		About: "Groups of dead letters that died for the same cause, the largest first. Dead letters have the same " +
			"cause if task, code and message are the same but for numbers, identifiers, times, addresses and quoted " +
			"parts. A group is a filter of jobs and of dead letters. Needs the index of jobs (search=yes).",
	})
	rest.Post(on, "/redrive", "redriveDeadLetters", "Redrive dead letters", s.redriveLetters, rest.Route{
		Action: audit.DeadLettersRedrive,
		Scope:  tenant.Admin, Body: deadLettersRequest,
		About: "Each runs as a new job. A filter skips the ones that were redriven before; one that is named by its " +
			"identifier keeps its new_job_id. The request can be repeated safely.",
	})
	rest.Post(on, "/purge", "purgeDeadLetters", "Delete dead letters", s.purgeLetters, rest.Route{
		Action: audit.DeadLettersPurge,
		Scope:  tenant.Admin, Body: deadLettersRequest, About: "Each is deleted as by DELETE /v1/jobs/{id}.",
	})
}

// deadLetter is the view of a dead job, with its newest attempts.
type deadLetter struct {
	spec.JobView
	DeadAt   rest.Instant  `json:"dead_at" doc:"Time at which the job became DEAD"`
	Attempts []attemptView `json:"attempts" doc:"Newest {=dead_letter_attempts} attempts, oldest first; all are at /v1/jobs/{id}/attempts"`
}

// DeadLetterAttempts is how many attempts a dead letter shows.
const DeadLetterAttempts = 10

type deadLettersInput struct {
	rest.Paging
	Task       string `query:"task"`
	DeadAfter  string `query:"dead_after" format:"date-time" doc:"Filter: earliest dead_at"`
	DeadBefore string `query:"dead_before" format:"date-time" doc:"Filter: time before which dead_at lies"`
	Code       string `query:"code" doc:"Filter: code of the error"`
	Group      string `query:"group" doc:"Filter: group, as /v1/dead-letters/groups lists them"`
	Schedule   string `query:"schedule"`
	Dag        string `query:"dag" doc:"Filter: name of the dag of the run of which the job is a node"`
	rest.TagFilters
}

func (s *Handler) listDeadLetters(
	ctx context.Context, who tenant.Identity, in *deadLettersInput, after string, limit int,
) (found rest.Found[deadLetter], err error) {
	f, err := in.searchFilter()
	if err != nil {
		return found, err
	}
	rows, next, asOf, err := s.lettersOf(ctx, who, f, after, limit)
	if err != nil {
		return found, err
	}
	shown, err := s.Read.Listed(ctx, who.Tenant, rows)
	if err != nil {
		return found, err
	}
	found.Next, found.AsOf = next, asOf
	found.At = func(i int) string { return show.LetterPosition(rows[i].DeadAt, rows[i].ID) }
	for i, row := range rows {
		attempts, _, err := s.Store.Attempts(ctx, row, job.PositionAfter(max(row.Attempt-DeadLetterAttempts, 0)),
			contract.ListMax)
		if err != nil {
			return found, err
		}
		letter := deadLetter{JobView: spec.ViewJob(shown[i]), DeadAt: rest.At(row.DeadAt), Attempts: []attemptView{}}
		for _, a := range attempts[max(len(attempts)-DeadLetterAttempts, 0):] {
			letter.Attempts = append(letter.Attempts, viewAttempt(a))
		}
		found.Items = append(found.Items, letter)
	}
	return found, nil
}

func readLetterFilter(prefix, task, after, before string) (show.LetterFilter, error) {
	f := show.LetterFilter{Task: task}
	var wrong fault.Violations
	rest.FilterName(&wrong, prefix+"task", task)
	f.After, f.Before = rest.ReadRange(&wrong, prefix+"dead_after", after, prefix+"dead_before", before)
	return f, wrong.Err()
}

// Fields of a request about dead letters.
var (
	letterTask          = spec.Name("task", "Name of the task of the jobs.")
	deadAfter           = spec.Instant("dead_after", "Time from which on the jobs died.")
	deadBefore          = spec.Instant("dead_before", "Time before which the jobs died.")
	letterFilterRequest = field.NewObject("DeadLetterFilterRequest", "Filter of dead letters; `{}` matches everything.",
		letterTask, deadAfter, deadBefore)

	letterIDs = field.Value("job_ids", "Identifiers of the dead letters. It excludes filter.",
		field.ArrayOf(1, contract.RedriveMax, field.TextSchema(spec.IDForm)))
	letterFilterField = field.Value("filter", "Filter; `{}` matches everything. The newest dead letters come first.",
		letterFilterRequest.Schema)
	letterLimit = field.Whole("limit", "Maximum number of dead letters that match the filter; default "+
		"{=redrive_default}.",
		1, contract.RedriveMax)
	letterCursor = field.Text("cursor", "Cursor of the previous answer, to continue with the same filter.",
		// "" begins at the beginning
		field.All(field.Matching(`^$|`+rest.CursorPattern, rest.MaxCursor), field.Characters(0, rest.MaxCursor)),
		(*rest.Reader).Text)
	letterDryRun = field.Flag("dry_run", "Whether to list the dead letters only, and change nothing.")

	deadLettersRequest = field.OneOfTwo("DeadLettersRequest", "Choice of dead letters, by their identifiers or by a "+
		"filter.",
		field.NewObject("DeadLettersByIDRequest", "Dead letters by their identifiers.", letterIDs.Required(),
			letterDryRun),
		field.NewObject("DeadLettersByFilterRequest", "Dead letters that match a filter.",
			letterFilterField.Required(), letterLimit, letterDryRun, letterCursor))
)

// deadLetterOutcome is the outcome of the operation on one dead letter.
type deadLetterOutcome struct {
	JobID    job.ID        `json:"job_id"`
	NewJobID job.ID        `json:"new_job_id,omitempty" doc:"Identifier of the job that repeats it"`
	Problem  *rest.Problem `json:"problem,omitempty"`
}

type deadLetterOutcomesAnswer struct {
	Body struct {
		Matched    int                 `json:"matched" doc:"Number of the requested dead letters that exist"`
		Items      []deadLetterOutcome `json:"items" doc:"Outcome of each dead letter"`
		NextCursor *string             `json:"next_cursor" doc:"Cursor for the next request with the same filter; null at the end"`
	}
}

func (s *Handler) redriveLetters(
	ctx context.Context, who tenant.Identity, _ *rest.NoInput,
) (*deadLetterOutcomesAnswer, error) {
	return s.eachLetter(ctx, who, "redrive", func(k job.Key) deadLetterOutcome {
		by, err := s.Jobs.Redrive(ctx, k, nil)
		if err != nil && by == "" {
			return deadLetterOutcome{JobID: k.ID, Problem: s.Router.Refuse(ctx, spec.JobProblem(err))}
		}
		return deadLetterOutcome{JobID: k.ID, NewJobID: by}
	})
}

func (s *Handler) purgeLetters(
	ctx context.Context, who tenant.Identity, _ *rest.NoInput,
) (*deadLetterOutcomesAnswer, error) {
	return s.eachLetter(ctx, who, "purge", func(k job.Key) deadLetterOutcome {
		err := s.Jobs.Purge(ctx, k)
		if err != nil {
			return deadLetterOutcome{JobID: k.ID, Problem: s.Router.Refuse(ctx, spec.JobProblem(err))}
		}
		return deadLetterOutcome{JobID: k.ID}
	})
}

// eachLetter calls do for every dead letter that the body names, up to batchWriters at a time.
func (s *Handler) eachLetter(ctx context.Context, who tenant.Identity, name string,
	do func(job.Key) deadLetterOutcome,
) (*deadLetterOutcomesAnswer, error) {
	out := &deadLetterOutcomesAnswer{}
	choice, err := readLetters(ctx)
	if err != nil {
		return nil, err
	}
	var items []deadLetterOutcome
	if items, err = s.named(ctx, who.Tenant, choice.ids); err != nil {
		return nil, err
	}
	if choice.filtered {
		l := rest.NewList(who.Tenant, "dead-letters "+name, choice.filter.Task, choice.filter.After.String(),
			choice.filter.Before.String())
		choice.filter.Waiting = name == "redrive"
		after, err := l.Position(choice.cursor)
		if err != nil {
			return nil, err
		}
		rows, next, err := s.Read.DeadLetters(ctx, who.Tenant, choice.filter, after, choice.limit)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			items = append(items, deadLetterOutcome{JobID: row.ID, NewJobID: row.RedrivenBy})
		}
		out.Body.NextCursor = l.Cursor(next)
	}
	matched := 0
	for _, one := range items {
		if one.Problem == nil {
			matched++
		}
	}
	if !choice.dryRun {
		if err := s.Limit.WeighJobs(ctx, who.Tenant, matched, choice.size); err != nil {
			return nil, spec.Limited(err)
		}
		var all errgroup.Group
		all.SetLimit(spec.BatchWriters)
		for i := range items {
			if items[i].Problem != nil { // not a dead letter
				continue
			}
			one := func() error {
				items[i] = do(job.Key{Tenant: who.Tenant, ID: items[i].JobID})
				return nil
			}
			if !audit.From(ctx).IsWritten() { // the first that changes takes the entry along
				_ = one()
				continue
			}
			all.Go(one)
		}
		_ = all.Wait() // each item has its own problem
	}
	out.Body.Matched, out.Body.Items = matched, items
	return out, nil
}

// named looks up the dead letters of these ids. An id of anything else gets a problem.
func (s *Handler) named(ctx context.Context, t tenant.ID, ids []job.ID) ([]deadLetterOutcome, error) {
	items := make([]deadLetterOutcome, 0, len(ids))
	for lot := range slices.Chunk(ids, store.ReadAtOnce) {
		keys := make([]job.Key, len(lot))
		for i, id := range lot {
			keys[i] = job.Key{Tenant: t, ID: id}
		}
		rows, there, err := s.Read.Rows(ctx, keys)
		if err != nil {
			return nil, err
		}
		for i, row := range rows {
			one := deadLetterOutcome{JobID: lot[i], NewJobID: row.RedrivenBy}
			switch {
			case !there[i]:
				one.Problem = s.Router.Refuse(ctx, rest.NoSuch("job"))
			case !row.Status.Final():
				one.Problem = s.Router.Refuse(ctx,
					rest.NewProblem(spec.CodeNotFinished, "only a DEAD job is a dead letter; this one has not ended"))
			case row.Status != job.Dead:
				one.Problem = s.Router.Refuse(ctx, rest.NewProblem(spec.CodeWrongState,
					"only a DEAD job is a dead letter; this one is %s", row.Status))
			}
			items = append(items, one)
		}
	}
	return items, nil
}

// letterPick is a deadLettersRequest after reading.
type letterPick struct {
	ids      []job.ID
	filtered bool
	filter   show.LetterFilter
	cursor   string
	limit    int
	dryRun   bool
	size     int // of the body
}

func readLetters(ctx context.Context) (letterPick, error) {
	pick := letterPick{limit: contract.RedriveDefault}
	doc, err := rest.NeededBody(ctx, contract.MaxBody, "job_ids or filter", "the dead letters must be named in the "+
		"body")
	if err != nil {
		return pick, err
	}
	r := spec.NewReader(doc)
	pick.size = doc.Size()
	f := deadLettersRequest.Body(r)
	ids, isIDs := f["job_ids"]
	filter, isFilter := f["filter"]
	switch {
	case isIDs && isFilter:
		r.Violation(filter.Pointer, rest.CodeConflictingFields, "job_ids or filter",
			"job_ids and filter exclude each other")
	case !isIDs && !isFilter && f != nil:
		r.Violation("", rest.CodeMissingField, "job_ids or filter",
			"the dead letters must be named; an empty filter names all")
	case isIDs:
		pick.ids = jobIDs(r, ids)
		for _, name := range []string{"limit", "cursor"} {
			if v, ok := f[name]; ok {
				r.Violation(v.Pointer, rest.CodeConflictingFields, "", "%s goes with filter only", name)
			}
		}
	case isFilter:
		pick.filtered = true
		pick.filter = readFilterOf(r, filter)
	}
	letterLimit.Into(r, f, &pick.limit)
	letterCursor.Into(r, f, &pick.cursor)
	letterDryRun.Into(r, f, &pick.dryRun)
	return pick, r.Wrong.Err()
}

func readFilterOf(r *rest.Reader, v rest.Value) show.LetterFilter {
	f := letterFilterRequest.Read(r, v)
	text := func(name string) string {
		at, ok := f[name]
		if !ok {
			return ""
		}
		s, ok := r.Text(at)
		if ok && s == "" {
			r.Violation(at.Pointer, rest.CodeInvalidValue, "", "%s has no value; leave it out instead", name)
		}
		return s
	}
	filter, err := readLetterFilter(v.Pointer+"/", text("task"), text("dead_after"), text("dead_before"))
	var wrong fault.Violations
	if errors.As(err, &wrong) {
		r.Wrong = append(r.Wrong, wrong...)
	}
	return filter
}

// jobIDs reads a list of ids without repetitions.
func jobIDs(r *rest.Reader, v rest.Value) []job.ID {
	var ids []job.ID
	seen := map[job.ID]bool{}
	for _, each := range r.List(v, contract.RedriveMax) {
		s, ok := r.Text(each)
		if !ok {
			continue
		}
		id, err := job.ParseID(s)
		if err != nil {
			r.Violation(each.Pointer, rest.CodeInvalidValue,
				fmt.Sprintf("a job's id: %d characters of a ULID", spec.JobIDLength), "this is not a job's id")
			continue
		}
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 && len(r.Wrong) == 0 {
		r.Violation(v.Pointer, rest.CodeOutOfRange, fmt.Sprintf("1 to %d", contract.RedriveMax), "there are no ids")
	}
	return ids
}

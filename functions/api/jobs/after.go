package jobs

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/accept"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/document"
	"punctual/shared/job"
)

// parentPattern is how a job of a batch names a job that it comes after: by id, or as #n.
const parentPattern = spec.JobIDPattern + `|` + earlierForm

const earlierForm = `^#(0|[1-9][0-9]?)$`

var earlierPattern = regexp.MustCompile(earlierForm)

// earlierOf reads #n, which names job n of a batch. It is false for anything else.
func earlierOf(s string) (n int, ok bool) {
	if !earlierPattern.MatchString(s) {
		return 0, false
	}
	n, err := strconv.Atoi(s[1:])
	return n, err == nil
}

// earlierJobs returns the id of job n of a batch, if it comes before the job that is read and was accepted. It is nil
// where there is no batch.
type earlierJobs func(n int) (job.ID, bool)

// parent returns the id of the job that s names.
func (earlier earlierJobs) parent(s string) (job.ID, bool) {
	if n, ok := earlierOf(s); ok && earlier != nil {
		return earlier(n)
	}
	id, err := job.ParseID(s)
	return id, err == nil
}

// readAfter reads which jobs the draft comes after, and what they have done so far. A job that is named twice counts
// once.
func (s *Handler) readAfter(
	ctx context.Context, r *rest.Reader, f rest.Fields, pointer string, d *accept.Draft, earlier earlierJobs,
	now time.Time,
) error {
	rule := dag.AllSucceeded
	v, given := f[after.Name()]
	if runIf.Into(r, f, &rule) && !given {
		r.Missing(pointer, "after") // run_if is about them
	}
	if !given {
		return nil
	}
	var keys []job.Key
	var at []rest.Value
	for _, each := range r.List(v, contract.MaxAfter) {
		text, ok := r.Text(each)
		if !ok {
			continue
		}
		id, ok := earlier.parent(text)
		if !ok {
			earlier.unknownJob(r, each)
			continue
		}
		k := job.Key{Tenant: d.Row.Tenant, ID: id}
		if !slices.Contains(keys, k) {
			keys, at = append(keys, k), append(at, each)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	rows, err := s.Store.Nodes(ctx, keys)
	if err != nil {
		return err
	}
	wanted := dag.After{Rule: rule}
	for i, row := range rows {
		if row.Status == "" || row.StartsRun() { // the row of a schedule's run is not a job
			earlier.unknownJob(r, at[i])
		}
		wanted.Parents = append(wanted.Parents, dag.Parent{ID: keys[i].ID})
	}
	wanted = wanted.Learn(rows...)
	setTime(&wanted, f, d.Row.DueAt, now)
	d.After, d.Row.DueAt = &wanted, now
	return nil
}

// whenOf is the time that a request asks for.
func whenOf(r *rest.Reader, f rest.Fields, now time.Time) (w accept.When) {
	due := now
	if !spec.Due(rest.NewReader(r.Doc), f, now, &due) { // its violations are reported by ReadJob
		return w
	}
	if _, ok := f[spec.RunAt.Name()]; ok {
		w.NotBefore = due
	} else {
		w.Delay = due.Sub(now)
	}
	return w
}

// setTime sets when the job is due, from a run_at or a delay that was read as at.
func setTime(a *dag.After, f rest.Fields, at, now time.Time) {
	a.NotBefore, a.Delay = time.Time{}, 0
	if _, ok := f["run_at"]; ok {
		a.NotBefore = at
	} else {
		a.Delay = at.Sub(now)
	}
}

func (earlier earlierJobs) unknownJob(r *rest.Reader, v rest.Value) {
	allowed := "the id of a job"
	if earlier != nil {
		allowed += ", or #n for an earlier job of the batch that was accepted, from #0"
	}
	r.Violation(v.Pointer, spec.CodeUnknownJob, allowed, "there is no such job")
}

// wavesOf returns the order in which the jobs of a batch are submitted. The jobs of one wave are submitted at the same
// time. A job comes in a later wave than the jobs that it names as #n, and than an earlier job with the same key of
// either kind, so that the first one gets the key.
func wavesOf(doc *document.Document, jobs []rest.Value) (waves [][]int) {
	wave := make([]int, len(jobs))
	keys, unique := map[string]int{}, map[string]int{}
	follow := func(i int, key string, last map[string]int) {
		if before, ok := last[key]; ok && key != "" {
			wave[i] = max(wave[i], wave[before]+1)
		}
		last[key] = i
	}
	for i, v := range jobs {
		for name, n := range doc.Members(v.Node) {
			switch {
			case name == "idempotency_key" && doc.Kind(n) == document.KindString:
				follow(i, doc.Text(n), keys)
			case name == "unique" && doc.Kind(n) == document.KindObject:
				for inner, key := range doc.Members(n) {
					if inner == "key" && doc.Kind(key) == document.KindString {
						follow(i, doc.Text(key), unique)
					}
				}
			case name == "after" && doc.Kind(n) == document.KindArray:
				for _, e := range doc.Elements(n) {
					if doc.Kind(e) != document.KindString {
						continue
					}
					if named, ok := earlierOf(doc.Text(e)); ok && named < i {
						wave[i] = max(wave[i], wave[named]+1)
					}
				}
			}
		}
		for len(waves) <= wave[i] {
			waves = append(waves, nil)
		}
		waves[wave[i]] = append(waves[wave[i]], i)
	}
	return waves
}

// Fields of a job alone.
var (
	after = field.List("after", "Identifiers of the jobs that must end first. The job is BLOCKED until they have, "+
		"then SCHEDULED if their outcomes match run_if, else CANCELLED or SKIPPED. A delay counts from their end; a "+
		"run_at applies if it is later. In a batch, #n is the job at index n, from 0, if it is an earlier one.", 0,
		contract.MaxAfter, field.Text("", "", spec.IDForm, (*rest.Reader).Text))
	runIf = spec.RunIf("Rule that the outcomes of the jobs in after must match; default: all_succeeded. " +
		"always is all_done.")
	batchKey = field.Text("idempotency_key", "Idempotency key of this job, printable ASCII; it shares one key space "+
		"with the header Idempotency-Key.", spec.KeyForm, readBatchKey)
)

// readBatchKey reads the key of a job in a batch.
func readBatchKey(r *rest.Reader, v rest.Value) (string, bool) {
	s, ok := r.Text(v)
	if ok && !spec.ValidKey(s) {
		r.Violation(v.Pointer, rest.CodeInvalidValue, spec.KeyAllowed, "this is not an idempotency key")
	}
	return s, ok
}

package dags

import (
	"context"
	"net/http"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/runs"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/document"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Fields of a new run.
var (
	runVersion = field.Whole("version", "Version of the dag; default: the newest", 1, spec.MaxVersion)
	runDag     = field.Value("dag", "Definition of the dag, for this run only", dagRequest.Schema).Required()
	runParams  = spec.Params.About("Values of the dag's params by name; params that are left out have the dag's " +
		"defaults, and unknown names are refused")

	dagRunRequest = field.NewObject("DagRunRequest", "Run of a dag", runVersion).With(runOptions...).
			Excluding("run_at", "delay")
	runRequest = field.NewObject("RunRequest", "Run of a definition that is not kept under a name", runDag).
			With(runOptions...).Excluding("run_at", "delay")
	runOptions = []field.Property{runParams,
		spec.RunAt.About("Time before which no node starts; excludes delay"),
		spec.Delay.About("Time from now during which no node starts; excludes run_at"),
		spec.RunPriority, spec.RunExpireAfter, spec.RunTags,
		spec.AllowLiterals.About("JSON pointers of strings in params and tags that look like secrets and are not"),
	}
)

type createDagRunInput struct {
	rest.Named
	spec.Keyed
}

type createdRunAnswer struct {
	Status   int
	Location string `header:"Location" doc:"Path of the run"`
	Replayed string `header:"Idempotency-Replayed" doc:"Value true if an earlier request with the same key made the run; absent otherwise"`
	Body     spec.RunView
}

func (s *Handler) createDagRun(
	ctx context.Context, who tenant.Identity, in *createDagRunInput,
) (*createdRunAnswer, error) {
	doc, err := rest.ReadBody(ctx, contract.MaxBody)
	if err == nil && doc == nil {
		doc, err = document.Read([]byte("{}"))
	}
	if err != nil {
		return nil, err
	}
	return s.createRun(ctx, who, doc, in.IdempotencyKey, "dag "+in.Name, func(
		r *rest.Reader, n *runs.Request,
	) (rest.Fields, *dag.Graph, error) {
		f := dagRunRequest.Body(r)
		version := 0
		runVersion.Into(r, f, &version)
		if len(r.Wrong) > 0 {
			return f, nil, nil
		}
		d, g, err := s.Dag(ctx, who.Tenant, in.Name, int64(version))
		n.Dag, n.Version = d.Name, d.Version
		return f, g, err
	})
}

func (s *Handler) createInlineRun(
	ctx context.Context, who tenant.Identity, in *spec.Keyed,
) (*createdRunAnswer, error) {
	doc, err := rest.NeededBody(ctx, contract.MaxBody, "an object", "a run is needed in the body")
	if err != nil {
		return nil, err
	}
	return s.createRun(ctx, who, doc, in.IdempotencyKey, "run", func(
		r *rest.Reader, _ *runs.Request,
	) (rest.Fields, *dag.Graph, error) {
		f := runRequest.Body(r)
		v, ok := f[runDag.Name()]
		switch {
		case f == nil:
			return f, nil, nil
		case !ok:
			r.Missing("", "dag")
			return f, nil, nil
		case len(doc.Raw(v.Node)) > dag.MaxDefinition:
			return f, nil, rest.NewProblem(rest.CodeTooLarge, "a definition is at most %d bytes", dag.MaxDefinition)
		}
		g, err := s.readDefinition(ctx, r, v, who.Tenant)
		return f, g, err
	})
}

// createRun makes the run that a body describes. As for jobs, the idempotency key is checked first.
func (s *Handler) createRun(
	ctx context.Context, who tenant.Identity, doc *document.Document, key, of string,
	definition func(*rest.Reader, *runs.Request) (rest.Fields, *dag.Graph, error),
) (*createdRunAnswer, error) {
	now, hash, gone := s.Now(), of+" "+doc.Hash(0, ""), job.ID("")
	if key != "" {
		out, freed, err := s.replayRun(ctx, who.Tenant, key, hash, now)
		if out != nil || err != nil {
			return out, err
		}
		gone = freed
	}
	r := spec.NewReader(doc)
	n := runs.Request{By: runs.By{Who: who.Subject}}
	f, g, err := definition(r, &n)
	if err != nil {
		return nil, err
	}
	allowed := s.readRunOptions(r, f, now, &n)
	if g != nil && len(r.Wrong) == 0 {
		n.Definition = g.Definition
		if _, n.Params, err = s.MergedParams(ctx, r, f[runParams.Name()], "", allowed, g); err != nil {
			return nil, err
		}
	}
	if len(r.Wrong) > 0 {
		return nil, r.Wrong
	}
	random, err := s.Entropy.Next()
	if err != nil {
		return nil, err
	}
	n.Key = run.Key{Tenant: who.Tenant, ID: job.NewID(now, random)}
	if key != "" {
		n.With = append(n.With, s.rememberRun(n, key, hash, gone, now))
	}
	return s.beginRun(ctx, n, key, hash, now)
}

// rememberRun returns the write of the idempotency key, which is in one transaction with the run.
func (s *Handler) rememberRun(n runs.Request, key, hash string, gone job.ID, now time.Time) item.Write {
	answer := spec.RunView{
		RunID: n.Key.ID, Status: run.Building, CreatedAt: rest.At(now),
		DueAt: rest.At(n.DueAt), Params: n.Params,
	}
	if n.DueAt.IsZero() {
		answer.DueAt = rest.At(now)
	}
	if n.Dag != "" {
		answer.Dag, answer.DagVersion = &n.Dag, &n.Version
	}
	if len(answer.Params) > run.MaxInlineParams {
		answer.Params = nil
	}
	return store.Remember(n.Tenant, key, store.Remembered{
		IdempotencyKey: job.IdempotencyKey{JobID: n.ID, BodyHash: hash, ExpiresAt: now.Add(contract.IdempotencyKept)},
		Answer:         string(text.MustJSON(answer)),
	}, gone, now)
}

func (s *Handler) beginRun(
	ctx context.Context, n runs.Request, key, hash string, now time.Time,
) (*createdRunAnswer, error) {
	_, created, err := s.Runs.Create(ctx, n)
	switch {
	case created && err != nil: // the run exists, and its wake-up continues it
		s.Log.WarnContext(ctx, "a new run waits for its wake-up", telemetry.Tenant, n.Tenant, telemetry.RunID, n.ID,
			telemetry.Err, err)
	case key != "" && fault.KindOf(err) == fault.NotFound: // another request has the key
		out, _, err := s.replayRun(ctx, n.Tenant, key, hash, now)
		if out == nil && err == nil {
			err = fault.New(fault.Conflict, nil, "making a run under a key that has just expired")
		}
		return out, err
	case err != nil:
		return nil, err
	}
	v, err := s.ShowRun(ctx, n.Key)
	return &createdRunAnswer{Status: http.StatusAccepted, Location: "/v1/runs/" + string(n.ID), Body: v}, err
}

// replayRun returns the run that an idempotency key names, as it is now; nil if it names none. A deleted run
// frees its key: gone is its id then.
func (s *Handler) replayRun(
	ctx context.Context, t tenant.ID, key, hash string, now time.Time,
) (_ *createdRunAnswer, gone job.ID, err error) {
	out := &createdRunAnswer{Status: http.StatusAccepted, Replayed: "true"}
	ok, gone, err := s.Replay(ctx, t, key, hash, now, func(id job.ID) (err error) {
		k := run.Key{Tenant: t, ID: id}
		out.Location = "/v1/runs/" + string(id)
		out.Body, err = s.ShowRun(ctx, k)
		if err == nil && out.Body.Status == run.Building {
			// The process that made the run may have ended before it brought the run on.
			if err := s.Runs.Reconcile(ctx, k); err != nil {
				s.Log.WarnContext(ctx, "a repeated run waits for its wake-up", telemetry.Tenant, t, telemetry.RunID,
					k.ID, telemetry.Err, err)
			}
			out.Body, err = s.ShowRun(ctx, k)
		}
		return err
	})
	if !ok {
		return nil, gone, err
	}
	return out, "", nil
}

// readRunOptions reads the options of a run, except params. It returns the pointers in allow_literals.
func (s *Handler) readRunOptions(
	r *rest.Reader, f rest.Fields, now time.Time, n *runs.Request,
) (allowed []string) {
	spec.AllowLiterals.Into(r, f, &allowed)
	due := now
	if spec.Due(r, f, now, &due) {
		n.DueAt = due
	}
	spec.RunPriority.Into(r, f, &n.Priority)
	var after time.Duration
	if spec.RunExpireAfter.Into(r, f, &after) {
		n.ExpireAt = func(due time.Time) time.Time { return due.Add(after) }
	}
	if v, ok := f[spec.RunTags.Name()]; ok {
		r.NoSecrets(v, allowed)
		spec.RunTags.Into(r, f, &n.Tags)
	}
	return allowed
}

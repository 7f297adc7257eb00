package dags

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/runs"
	"punctual/functions/engine/submit"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/document"
	"punctual/shared/run"
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

// createRun makes the run that a body describes, or answers with the run of an earlier request with the same key.
func (s *Handler) createRun(
	ctx context.Context, who tenant.Identity, doc *document.Document, key, of string,
	definition func(*rest.Reader, *runs.Request) (rest.Fields, *dag.Graph, error),
) (*createdRunAnswer, error) {
	asked := submit.Request{Who: who, Key: key, Hash: of + " " + doc.Hash(0, "")}
	k, replayed, err := s.Submit.Run(ctx, asked, func(now time.Time) (runs.Request, error) {
		r, n := spec.NewReader(doc), runs.Request{By: runs.By{Who: who.Subject}}
		f, g, err := definition(r, &n)
		if err != nil {
			return n, err
		}
		allowed := s.readRunOptions(r, f, now, &n)
		if g != nil && len(r.Wrong) == 0 {
			n.Definition = g.Definition
			_, n.Params, err = s.MergedParams(ctx, r, f[runParams.Name()], "", allowed, g)
		}
		return n, cmp.Or(err, r.Wrong.Err())
	}, keptRun)
	if err != nil {
		return nil, spec.KeyProblem(err)
	}
	out := &createdRunAnswer{Status: http.StatusAccepted, Location: "/v1/runs/" + string(k.ID)}
	if replayed {
		out.Replayed = "true"
	}
	out.Body, err = s.ShowRun(ctx, k)
	return out, err
}

// keptRun returns the view of a new run that is kept with its idempotency key.
func keptRun(n runs.Request, now time.Time) []byte {
	v := spec.RunView{
		RunID: n.ID, Status: run.Building, CreatedAt: rest.At(now), DueAt: rest.At(n.DueAt), Params: n.Params,
	}
	if n.DueAt.IsZero() {
		v.DueAt = rest.At(now)
	}
	if n.Dag != "" {
		v.Dag, v.DagVersion = &n.Dag, &n.Version
	}
	if len(v.Params) > run.MaxInlineParams {
		v.Params = nil
	}
	return text.MustJSON(v)
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

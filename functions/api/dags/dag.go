package dags

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/runs"
	"punctual/shared/audit"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// Schedules knows which schedules make runs of a dag.
type Schedules interface {
	// UnusedDag returns a problem that lists the schedules which make runs of a dag; nil if there are none.
	UnusedDag(ctx context.Context, t tenant.ID, name string) error
}

// Handler serves dags and runs.
type Handler struct {
	*spec.Core
	schedules Schedules
}

// New registers the routes of dags and runs.
func New(core *spec.Core, schedules Schedules) *Handler {
	h := &Handler{core, schedules}
	h.dagRoutes()
	h.runRoutes()
	return h
}

func errNoRun() error {
	return rest.NewProblem(rest.CodeNotFound, "there is no such run, or the run has no such node")
}

// ByID is the input of a route about one run.
type ByID struct {
	ID  string `path:"id"`
	key run.Key
}

// Prepare makes the key of the run. A text that is no id is a run that does not exist.
func (in *ByID) Prepare(_ context.Context, who tenant.Identity) error {
	id, err := job.ParseID(in.ID)
	if err != nil {
		return errNoRun()
	}
	in.key = run.Key{Tenant: who.Tenant, ID: id}
	return nil
}

// ByNode is the input of a route about one node of a run.
type ByNode struct {
	ByID
	Node string `path:"node"`
}

// asRunProblem turns an error of Runs into a problem.
func asRunProblem(err error) error {
	var wrong *runs.WrongState
	switch {
	case errors.As(err, &wrong):
		p := rest.NewProblem(spec.CodeWrongState, "%s", wrong.Error())
		p.Allowed = wrong.Allowed
		return p
	case fault.KindOf(err) == fault.NotFound:
		return errNoRun()
	}
	return err
}

func (s *Handler) dagRoutes() {
	on := rest.Resource{Router: s.Router, Tag: spec.TagDags, Path: "/v1/dags"}
	rest.Put(on, "/{name}", "putDag", "Create a dag, or a new version of it", s.putDag, rest.Route{
		Action: audit.DagPut,
		Body:   dagRequest,
		About: "Answers 201 if the dag is new. Repeating the same definition makes no new version. Runs keep the " +
			"version that they began with.",
	})
	rest.Get(on, "/{name}", "getDag", "Get a dag", s.getDag,
		rest.Route{About: "Answers the newest version, or the one that version names."})
	rest.Delete(on, "/{name}", "deleteDag", "Delete a dag", s.deleteDag, rest.Route{
		Action:   audit.DagDelete,
		Conflict: true, About: "Runs of the dag continue. A dag that is put under the same name later continues the " +
			"version numbers.",
	})
	rest.GetPage(on, "", "listDags", "List dags", s.listDags, rest.Route{About: "Lists dags by name."})
	rest.GetPage(on, "/{name}/versions", "listDagVersions", "List the versions of a dag", s.listDagVersions,
		rest.Route{Cursor: "dag versions", About: "Lists the versions, newest first."})
	rest.Post(on, "/validate", "validateDag", "Validate a draft of a dag", s.validateDag, rest.Route{
		Scope: tenant.Read, Body: dagRequest, About: "Returns the same errors as PUT and writes nothing.",
	})
}

type dagAnswer = rest.StatusAnswer[dagView]

type getDagInput struct {
	rest.Named
	Version string `query:"version" doc:"Version of the dag; default: the newest"`
}

// dagBody reads the definition in the body of a request.
func (s *Handler) dagBody(ctx context.Context, t tenant.ID) (*dag.Graph, error) {
	doc, err := rest.NeededBody(ctx, dag.MaxDefinition, "an object", "a dag is needed in the body")
	if err != nil {
		return nil, err
	}
	r := spec.NewReader(doc)
	g, err := s.readDefinition(ctx, r, rest.Value{}, t)
	return g, cmp.Or(err, r.Wrong.Err())
}

func (s *Handler) putDag(ctx context.Context, who tenant.Identity, in *rest.Named) (*dagAnswer, error) {
	if err := rest.CheckName(in.Name, "a dag"); err != nil {
		return nil, err
	}
	g, err := s.dagBody(ctx, who.Tenant)
	if err != nil {
		return nil, err
	}
	hash := g.Hash()
	if err := s.Store.PutDefinition(ctx, who.Tenant, hash, g.Encode()); err != nil {
		return nil, err
	}
	d, created, err := s.Store.PutDag(ctx, who.Tenant, in.Name, hash, s.Now(), func(old store.Dag, created bool) error {
		return s.noteChange(ctx, who.Tenant, old, created, g)
	})
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return &dagAnswer{Status: status, Body: s.viewDag(d, g.Definition)}, nil
}

// noteChange notes for the audit what a new definition changes of a dag.
func (s *Handler) noteChange(
	ctx context.Context, t tenant.ID, old store.Dag, created bool, after *dag.Graph,
) error {
	var was any
	if !created {
		before, err := s.Runs.Compiled(ctx, t, old.Definition)
		switch {
		case err == nil:
			was = s.viewDag(store.Dag{}, before.Definition)
		case fault.Retryable(err):
			return err
		} // else it cannot be read, and the change repairs that
	}
	audit.From(ctx).Changed(was, s.viewDag(store.Dag{}, after.Definition))
	return nil
}

func (s *Handler) getDag(ctx context.Context, who tenant.Identity, in *getDagInput) (*dagAnswer, error) {
	version, err := rest.ReadNumber("version", in.Version, 0, spec.MaxVersion)
	if err != nil {
		return nil, err
	}
	d, g, err := s.Dag(ctx, who.Tenant, in.Name, int64(version))
	if err != nil {
		return nil, err
	}
	return &dagAnswer{Status: http.StatusOK, Body: s.viewDag(d, g.Definition)}, nil
}

func (s *Handler) deleteDag(ctx context.Context, who tenant.Identity, in *rest.Named) (*rest.NoContent, error) {
	err := s.Store.DeleteDag(ctx, who.Tenant, in.Name, s.Now(), func() error {
		return s.schedules.UnusedDag(ctx, who.Tenant, in.Name)
	})
	return &rest.NoContent{}, spec.AbsentDag(err)
}

func (s *Handler) listDags(
	ctx context.Context, who tenant.Identity, _ *rest.PageInput, after string, limit int,
) (rest.Found[dagItemView], error) {
	dags, more, err := s.Store.Dags(ctx, who.Tenant, after, limit)
	return rest.FoundRows(dags, more, viewDagItem, func(d store.Dag) string { return d.Name }), err
}

type listDagVersionsInput struct {
	rest.Named
	rest.Paging
}

func (s *Handler) listDagVersions(
	ctx context.Context, who tenant.Identity, in *listDagVersionsInput, after string, limit int,
) (found rest.Found[dagItemView], err error) {
	d, err := s.Store.Dag(ctx, who.Tenant, in.Name)
	if err != nil {
		return found, spec.AbsentDag(err)
	}
	versions, more, err := s.Store.DagVersions(ctx, who.Tenant, in.Name, rest.CursorNumber(after), limit)
	for i := range versions {
		versions[i].CreatedAt = d.CreatedAt
	}
	return rest.FoundRows(versions, more, viewDagItem,
		func(d store.Dag) string { return strconv.Itoa(int(d.Version)) }), err
}

type validateAnswer struct {
	Body struct {
		Levels [][]string `json:"levels" doc:"Names of the nodes by level, which is the length of the longest chain before a node; nodes of a level may run at the same time"`
		Nodes  int        `json:"nodes" doc:"Number of nodes"`
		Edges  int        `json:"edges" doc:"Number of dependencies between nodes"`
		Notes  []string   `json:"notes,omitempty" doc:"Notes about formats that params_schema names and that are not checked"`
	}
}

func (s *Handler) validateDag(ctx context.Context, who tenant.Identity, _ *rest.NoInput) (*validateAnswer, error) {
	g, err := s.dagBody(ctx, who.Tenant)
	if err != nil {
		return nil, err
	}
	out := &validateAnswer{}
	out.Body.Levels, out.Body.Nodes, out.Body.Edges = g.Levels(), len(g.Names()), g.Edges()
	out.Body.Notes = s.Schemas.Notes(g.ParamsSchema)
	return out, nil
}

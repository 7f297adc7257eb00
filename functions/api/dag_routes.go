package api

import (
	"context"
	"net/http"
	"strconv"

	"punctual/functions/api/wire"
	"punctual/shared/dag"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

func (s *stage) dagRoutes() {
	wire.Register(s.router, wire.Route{
		Method: http.MethodPut, Path: "/v1/dags/{name}", ID: "putDag", Tag: tagDags, Scope: mayWrite,
		Body:    dagRequest,
		Summary: "Create a dag, or a new version of it",
		About: "201 when it is new. The same definition again makes no new version. Runs keep the version " +
			"that they began with.",
	}, s.putDag)
	wire.Register(s.router, wire.Route{
		Method: http.MethodGet, Path: "/v1/dags/{name}", ID: "getDag", Tag: tagDags, Scope: mayRead,
		Summary: "Get a dag", Errors: []int{http.StatusNotFound}, About: "Its newest version, or the one asked for.",
	}, s.getDag)
	wire.Register(s.router, wire.Route{
		Method: http.MethodDelete, Path: "/v1/dags/{name}", ID: "deleteDag", Tag: tagDags, Scope: mayWrite,
		Summary: "Delete a dag", Errors: []int{http.StatusNotFound, http.StatusConflict},
		About: "Its runs go on. A dag that is put again under the name goes on counting versions.",
	}, s.deleteDag)
	wire.Register(s.router, wire.Route{
		Method: http.MethodGet, Path: "/v1/dags", ID: "listDags", Tag: tagDags, Scope: mayRead,
		Summary: "List dags", About: "By name.",
	}, s.listDags)
	wire.Register(s.router, wire.Route{
		Method: http.MethodGet, Path: "/v1/dags/{name}/versions", ID: "listDagVersions", Tag: tagDags, Scope: mayRead,
		Summary: "List the versions of a dag", Errors: []int{http.StatusNotFound}, About: "Newest first.",
	}, s.listDagVersions)
	wire.Register(s.router, wire.Route{
		Method: http.MethodPost, Path: "/v1/dags/validate", ID: "validateDag", Tag: tagDags, Scope: mayRead,
		Body:    dagRequest,
		Summary: "Check a draft of a dag", About: "Answers what PUT would refuse, and changes nothing.",
	}, s.validateDag)
}

type getDagInput struct {
	Name    string `path:"name"`
	Version string `query:"version" doc:"Default: the newest"`
}

// dagBody reads the definition in the body of a request.
func (s *stage) dagBody(ctx context.Context, t tenant.ID) (*dag.Graph, error) {
	doc, err := neededBody(ctx, dag.MaxDefinition, "an object", "a dag is needed in the body")
	if err != nil {
		return nil, err
	}
	r := newReader(doc)
	g, err := s.readDefinition(ctx, r, wire.Value{}, t)
	if err == nil {
		err = r.Wrong.Err()
	}
	return g, err
}

func (s *stage) putDag(ctx context.Context, who tenant.Identity, in *namedInput) (*statusAnswer[DagView], error) {
	if err := checkName(in.Name, "a dag"); err != nil {
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
	d, created, err := s.Store.PutDag(ctx, who.Tenant, in.Name, hash, s.now())
	if err != nil {
		return nil, err
	}
	out := &statusAnswer[DagView]{http.StatusOK, s.viewDag(d, g.Definition)}
	if created {
		out.Status = http.StatusCreated
	}
	return out, nil
}

func absentDag(err error) error { return absent(err, "dag, or no such version of it") }

// dag reads the newest version of a dag, or the given one if version is not 0, with its graph.
func (s *stage) dag(ctx context.Context, t tenant.ID, name string, version int64) (store.Dag, *dag.Graph, error) {
	read := func() (store.Dag, error) {
		if version > 0 {
			return s.Store.DagVersion(ctx, t, name, version)
		}
		return s.Store.Dag(ctx, t, name)
	}
	d, err := read()
	if err != nil {
		return d, nil, absentDag(err)
	}
	g, err := s.Runs.Compiled(ctx, t, d.Definition)
	return d, g, err
}

func (s *stage) getDag(ctx context.Context, who tenant.Identity, in *getDagInput) (*statusAnswer[DagView], error) {
	version, err := wire.ReadNumber("version", in.Version, 0, maxVersion)
	if err != nil {
		return nil, err
	}
	d, g, err := s.dag(ctx, who.Tenant, in.Name, int64(version))
	if err != nil {
		return nil, err
	}
	return &statusAnswer[DagView]{http.StatusOK, s.viewDag(d, g.Definition)}, nil
}

// maxVersion is the highest version that a request may name.
const maxVersion = 999_999_999

func (s *stage) deleteDag(ctx context.Context, who tenant.Identity, in *namedInput) (*empty, error) {
	err := s.Store.DeleteDag(ctx, who.Tenant, in.Name, s.now(), func() error {
		return s.unusedDag(ctx, who.Tenant, in.Name)
	})
	return &empty{}, absentDag(err)
}

func (s *stage) listDags(ctx context.Context, who tenant.Identity, in *pageInput) (*page[dagItemView], error) {
	l := wire.NewList(who.Tenant, "dags")
	limit, after, err := in.Page(l)
	if err != nil {
		return nil, err
	}
	dags, more, err := s.Store.Dags(ctx, who.Tenant, after, limit)
	if err != nil {
		return nil, err
	}
	return &page[dagItemView]{wire.PageOf(l, dags, more, viewDagItem, func(d store.Dag) string { return d.Name })}, nil
}

type listDagVersionsInput struct {
	Name string `path:"name"`
	wire.Paging
}

func (s *stage) listDagVersions(
	ctx context.Context, who tenant.Identity, in *listDagVersionsInput,
) (*page[dagItemView], error) {
	l := wire.NewList(who.Tenant, "dag versions", in.Name)
	limit, position, err := in.Page(l)
	if err != nil {
		return nil, err
	}
	d, err := s.Store.Dag(ctx, who.Tenant, in.Name)
	if err != nil {
		return nil, absentDag(err)
	}
	versions, more, err := s.Store.DagVersions(ctx, who.Tenant, in.Name, number(position), limit)
	if err != nil {
		return nil, err
	}
	for i := range versions {
		versions[i].CreatedAt = d.CreatedAt
	}
	return &page[dagItemView]{wire.PageOf(l, versions, more, viewDagItem,
		func(d store.Dag) string { return strconv.Itoa(int(d.Version)) })}, nil
}

type validateAnswer struct {
	Body struct {
		Levels [][]string `json:"levels" doc:"Nodes by the longest chain before each; those of a level may run at the same time"`
		Nodes  int        `json:"nodes"`
		Edges  int        `json:"edges"`
		Notes  []string   `json:"notes,omitempty" doc:"Sentences about formats that the params_schema names and that are not checked"`
	}
}

func (s *stage) validateDag(ctx context.Context, who tenant.Identity, _ *nothing) (*validateAnswer, error) {
	g, err := s.dagBody(ctx, who.Tenant)
	if err != nil {
		return nil, err
	}
	out := &validateAnswer{}
	out.Body.Levels, out.Body.Nodes, out.Body.Edges = g.Levels(), len(g.Names()), g.Edges()
	out.Body.Notes = s.schemas.Notes(g.ParamsSchema)
	return out, nil
}

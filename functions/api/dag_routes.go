package api

import (
	"context"
	"net/http"
	"strconv"

	"punctual/functions/api/wire"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

func (s *stage) dagRoutes() {
	wire.Register(s.router, wire.Route{
		Method: http.MethodPut, Path: "/v1/dags/{name}", ID: "putDag", Tag: tagDags, Scope: mayWrite,
		Body:    dagRequest{},
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
		Body:    dagRequest{},
		Summary: "Check a draft of a dag", About: "Answers what PUT would refuse, and changes nothing.",
	}, s.validateDag)
}

type dagInput struct {
	Name string `path:"name"`
}

type getDagInput struct {
	Name    string `path:"name"`
	Version string `query:"version" doc:"Default: the newest"`
}

type dagAnswer struct {
	Status int
	Body   DagView
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

func (s *stage) putDag(ctx context.Context, who tenant.Identity, in *dagInput) (*dagAnswer, error) {
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
	out := &dagAnswer{http.StatusOK, viewDag(d, g.Definition)}
	if created {
		out.Status = http.StatusCreated
	}
	return out, nil
}

func errNoDag() error {
	return wire.NewProblem(wire.CodeNotFound, "there is no such dag, or no such version of it")
}

// dag reads the newest version of a dag, or the given one if version is not 0, with its definition.
func (s *stage) dag(ctx context.Context, t tenant.ID, name string, version int64) (store.Dag, dag.Definition, error) {
	read := func() (store.Dag, error) {
		if version > 0 {
			return s.Store.DagVersion(ctx, t, name, version)
		}
		return s.Store.Dag(ctx, t, name)
	}
	d, err := read()
	if fault.KindOf(err) == fault.NotFound {
		return d, dag.Definition{}, errNoDag()
	}
	if err != nil {
		return d, dag.Definition{}, err
	}
	body, err := s.Store.Definition(ctx, t, d.Definition)
	if err != nil {
		return d, dag.Definition{}, err
	}
	is, err := dag.ParseDefinition(body)
	return d, is, err
}

func (s *stage) getDag(ctx context.Context, who tenant.Identity, in *getDagInput) (*dagAnswer, error) {
	version, err := wire.ReadNumber("version", in.Version, 0, maxVersion)
	if err != nil {
		return nil, err
	}
	d, is, err := s.dag(ctx, who.Tenant, in.Name, int64(version))
	if err != nil {
		return nil, err
	}
	return &dagAnswer{http.StatusOK, viewDag(d, is)}, nil
}

// maxVersion is the highest version that a request may name.
const maxVersion = 999_999_999

func (s *stage) deleteDag(ctx context.Context, who tenant.Identity, in *dagInput) (*empty, error) {
	err := s.Store.DeleteDag(ctx, who.Tenant, in.Name, s.now(), func() error {
		return s.unusedDag(ctx, who.Tenant, in.Name)
	})
	if fault.KindOf(err) == fault.NotFound {
		err = errNoDag()
	}
	return &empty{}, err
}

type listDagsInput struct{ wire.Paging }

type dagsAnswer struct{ Body wire.Page[dagItemView] }

func (s *stage) listDags(ctx context.Context, who tenant.Identity, in *listDagsInput) (*dagsAnswer, error) {
	limit, err := in.PageSize()
	if err != nil {
		return nil, err
	}
	l := wire.NewList(who.Tenant, "dags")
	after, err := l.Position(in.Cursor)
	if err != nil {
		return nil, err
	}
	dags, more, err := s.Store.Dags(ctx, who.Tenant, after, limit)
	if err != nil {
		return nil, err
	}
	return pageOfDags(dags, more, func(d store.Dag) *string { return l.Cursor(d.Name) }), nil
}

func pageOfDags(dags []store.Dag, more bool, cursor func(store.Dag) *string) *dagsAnswer {
	out := &dagsAnswer{Body: wire.Page[dagItemView]{Items: []dagItemView{}}}
	for _, d := range dags {
		out.Body.Items = append(out.Body.Items, viewDagItem(d))
	}
	if more {
		out.Body.NextCursor = cursor(dags[len(dags)-1])
	}
	return out
}

type listDagVersionsInput struct {
	Name string `path:"name"`
	wire.Paging
}

func (s *stage) listDagVersions(
	ctx context.Context, who tenant.Identity, in *listDagVersionsInput,
) (*dagsAnswer, error) {
	limit, err := in.PageSize()
	if err != nil {
		return nil, err
	}
	l := wire.NewList(who.Tenant, "dag versions", in.Name)
	position, err := l.Position(in.Cursor)
	if err != nil {
		return nil, err
	}
	d, err := s.Store.Dag(ctx, who.Tenant, in.Name)
	if fault.KindOf(err) == fault.NotFound {
		return nil, errNoDag()
	}
	if err != nil {
		return nil, err
	}
	versions, more, err := s.Store.DagVersions(ctx, who.Tenant, in.Name, number(position), limit)
	if err != nil {
		return nil, err
	}
	for i := range versions {
		versions[i].CreatedAt = d.CreatedAt
	}
	return pageOfDags(versions, more,
		func(d store.Dag) *string { return l.Cursor(strconv.FormatInt(d.Version, 10)) }), nil
}

type validateAnswer struct {
	Body struct {
		Levels [][]string `json:"levels" doc:"Nodes by the longest chain before each; those of a level may run at the same time"`
		Nodes  int        `json:"nodes"`
		Edges  int        `json:"edges"`
	}
}

func (s *stage) validateDag(ctx context.Context, who tenant.Identity, _ *nothing) (*validateAnswer, error) {
	g, err := s.dagBody(ctx, who.Tenant)
	if err != nil {
		return nil, err
	}
	out := &validateAnswer{}
	out.Body.Levels, out.Body.Nodes, out.Body.Edges = g.Levels(), len(g.Names()), g.Edges()
	return out, nil
}

package dags

import (
	"context"
	"mime"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"punctual/functions/api/rest"
	"punctual/shared/dag"
	"punctual/shared/job"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// The formats of a run's graph.
const (
	graphMermaid = "mermaid"
	graphSVG     = "svg"
	graphJSON    = "json"
)

// GraphForms are the formats, with the default first; graphTypes are their media types.
var (
	GraphForms = []string{graphMermaid, graphSVG, graphJSON}
	graphTypes = map[string]string{
		graphMermaid: "text/plain; charset=utf-8", graphSVG: "image/svg+xml", graphJSON: "application/json",
	}
)

type runGraphInput struct {
	ByID
	Format string `query:"format" doc:"Format of the graph; default: the one that Accept prefers, or else mermaid"`
}

type runGraphAnswer struct {
	ContentType string `header:"Content-Type" doc:"Media type of the graph"`
	Vary        string `header:"Vary" doc:"Name of the request header on which the format depends"`
	Body        []byte
}

// documentGraph documents the media types of the graph.
func (s *Handler) documentGraph() {
	content := map[string]*huma.MediaType{}
	for form, kind := range graphTypes {
		kind, _, _ = strings.Cut(kind, ";")
		content[kind] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
		if form == graphJSON {
			content[kind].Schema = s.Router.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[graphView](), true, "")
		}
	}
	s.Router.OpenAPI().Paths["/v1/runs/{id}/graph"].Get.Responses["200"].Content = content
}

// graphView is a run's graph as data, for a page that draws it.
type graphView struct {
	Levels [][]string      `json:"levels" doc:"Names of the nodes by level, which is the length of the longest chain before a node"`
	Nodes  []graphNodeView `json:"nodes" doc:"Nodes of the graph"`
	Edges  [][2]string     `json:"edges" doc:"Dependencies as pairs of names: a node, and a node that depends on it"`
}

type graphNodeView struct {
	Node   string     `json:"node" doc:"Name of the node"`
	Level  int        `json:"level" doc:"Index of the node's level, from 0"`
	Status job.Status `json:"status" doc:"Status of the node"`
}

func (s *Handler) getRunGraph(ctx context.Context, _ tenant.Identity, in *runGraphInput) (*runGraphAnswer, error) {
	form := in.Format
	if form == "" {
		form = acceptedForm(rest.HeaderOf(ctx).Values("Accept"))
	}
	if !slices.Contains(GraphForms, form) {
		return nil, rest.OneViolation("format", rest.CodeInvalidValue, strings.Join(GraphForms, ", "),
			"this is not a format of a graph")
	}
	f, err := s.Read.Snapshot(ctx, in.key)
	if err != nil {
		return nil, asRunProblem(err)
	}
	out := &runGraphAnswer{ContentType: graphTypes[form], Vary: "Accept"}
	switch form {
	case graphSVG:
		out.Body = []byte(f.Graph.SVG(f.Title(), f.Appearances()))
	case graphJSON:
		out.Body, err = text.JSON(viewGraph(f))
	default:
		out.Body = []byte(f.Graph.Mermaid(f.Appearances()))
	}
	return out, err
}

// acceptedForm returns the format that an Accept header prefers; the default if it names none.
func acceptedForm(accept []string) string {
	best, form := 0.0, GraphForms[0]
	for _, one := range strings.Split(strings.Join(accept, ","), ",") {
		kind, params, err := mime.ParseMediaType(one)
		if err != nil {
			continue
		}
		q := 1.0
		if given, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(given, 64); err != nil {
				continue
			}
		}
		for _, f := range GraphForms {
			of, _, _ := strings.Cut(graphTypes[f], ";")
			family, _, _ := strings.Cut(of, "/")
			if (kind == of || kind == family+"/*") && q > best {
				best, form = q, f
			}
		}
	}
	return form
}

func viewGraph(f *dag.Snapshot) graphView {
	v := graphView{Levels: f.Graph.Levels(), Nodes: []graphNodeView{}, Edges: [][2]string{}}
	for n, level := range f.Graph.Levels() {
		for _, name := range level {
			v.Nodes = append(v.Nodes, graphNodeView{name, n, f.Status(f.Rows[name])})
			for _, p := range f.Graph.Parents(name) {
				v.Edges = append(v.Edges, [2]string{p, name})
			}
		}
	}
	return v
}

package schedules

import (
	"context"
	"encoding/json"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/accept"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/document"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Fields of a schedule's dag.
var (
	templateDag     = spec.Name("name", "Name of the dag").Required()
	templateVersion = field.Whole("version", "Version of the dag; default: the newest at each nominal time", 1,
		spec.MaxVersion)
	templateParams = spec.Params.About("Params as in POST /v1/dags/{name}/runs")
	templateStart  = spec.StartWithin.About("Maximum time from due_at to the beginning of the run, after which it is " +
		"missed; default: no limit")

	dagTemplateRequest = field.NewObject("DagTemplateRequest", "Dag of which each nominal time of a schedule makes a "+
		"run.", templateDag, templateVersion, templateParams, spec.RunPriority, templateStart, spec.RunExpireAfter,
		spec.RunTags,
		spec.AllowLiterals.About("JSON pointers below dag, such as /params/x, of strings that look like secrets and "+
			"are not"))
)

type dagTemplateView struct {
	Name        string       `json:"name" doc:"Name of the dag"`
	Version     int64        `json:"version,omitempty" doc:"Version of the dag; absent if it is the newest at each nominal time"`
	Priority    job.Priority `json:"priority,omitempty" doc:"Priority of the nodes that have none of their own; absent if it is that of the dag"`
	StartWithin string       `json:"start_within,omitempty" doc:"Maximum time from due_at to the beginning of the run; absent if there is no limit"`
	ExpireAfter string       `json:"expire_after,omitempty" doc:"Maximum time from due_at to the end of the run; absent if it is that of the dag"`
	spec.TagsView
	Literals []string        `json:"allow_literals,omitempty" doc:"JSON pointers of the strings that were declared not to be secrets"`
	Params   json.RawMessage `json:"params,omitempty" doc:"Params as given, without the dag's defaults; absent in lists, and if larger than {=item_kib} KB"`
}

// readDagTemplate reads the run that each nominal time makes, and checks its params by the dag as it is now.
func (s *Handler) readDagTemplate(
	ctx context.Context, r *rest.Reader, v rest.Value, t tenant.ID, now time.Time,
) (*accept.Draft, error) {
	f := dagTemplateRequest.Read(r, v)
	if f == nil {
		return nil, nil
	}
	d := &accept.Draft{Row: job.Row{
		Status: job.Scheduled, Version: 1, Attempt: 1, CreatedAt: now, DueAt: now,
		Settings: job.Settings{Pool: contract.RunPool},
	}}
	version := 0
	templateVersion.Into(r, f, &version)
	d.Row.DagVersion = int64(version)
	templateStart.Into(r, f, &d.Row.StartWithin)
	spec.RunExpireAfter.Into(r, f, &d.Row.ExpireAfter)
	spec.RunPriority.Into(r, f, &d.Row.Priority)
	spec.AllowLiterals.Into(r, f, &d.Literals)
	if at, ok := f[spec.RunTags.Name()]; ok {
		r.NoSecrets(at, spec.Under(v.Pointer, d.Literals))
		var tags map[string]string
		if spec.RunTags.Into(r, f, &tags); len(tags) > 0 {
			d.Labels.Tags = string(text.MustJSON(tags))
		}
	}
	g, err := s.dagOfTemplate(ctx, r, f, v.Pointer, t, d)
	if err != nil {
		return nil, err
	}
	given, _, err := s.MergedParams(ctx, r, f[templateParams.Name()], v.Pointer, spec.Under(v.Pointer, d.Literals), g)
	if given != nil {
		d.Payload = document.EncodeObject(given)
	}
	return d, err
}

// dagOfTemplate reads the dag that a template names; nil with a violation if there is none.
func (s *Handler) dagOfTemplate(
	ctx context.Context, r *rest.Reader, f rest.Fields, pointer string, t tenant.ID, d *accept.Draft,
) (*dag.Graph, error) {
	at, ok := f["name"]
	if !ok {
		r.Missing(pointer, "name")
		return nil, nil
	}
	if d.Row.Dag, ok = r.Name(at); !ok {
		return nil, nil
	}
	known, g, err := s.Dag(ctx, t, d.Row.Dag, d.Row.DagVersion)
	if rest.IsNotFound(err) && d.Row.DagVersion > 0 {
		if _, err := s.Store.Dag(ctx, t, d.Row.Dag); err == nil {
			r.Violation(pointer+"/version", spec.CodeUnknownDag, "", "the dag %s has no version %d",
				text.Quoted(d.Row.Dag), d.Row.DagVersion)
			return nil, nil
		}
	}
	if rest.IsNotFound(err) {
		r.Violation(at.Pointer, spec.CodeUnknownDag, "", "there is no dag %s", text.Quoted(d.Row.Dag))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d.Row.Dag = known.Name
	return g, nil
}

func viewDagTemplate(t schedule.Template) *dagTemplateView {
	v := &dagTemplateView{
		Name: t.Dag, Version: t.DagVersion, Priority: t.Priority, StartWithin: spec.SpanOf(t.StartWithin),
		ExpireAfter: spec.SpanOf(t.ExpireAfter), TagsView: spec.ViewLabels(t.Labels).TagsView,
	}
	if t.Literals != nil {
		v.Literals = t.Literals.Pointers
	}
	return v
}

// UnusedDag returns a problem that lists the schedules which make runs of a dag; nil if there are none.
func (s *Handler) UnusedDag(ctx context.Context, t tenant.ID, name string) error {
	_, names, err := s.Read.Selected(ctx, t, func(c schedule.Schedule) bool { return c.Template.Dag == name })
	if err != nil || len(names) == 0 {
		return err
	}
	return rest.NewProblem(spec.CodeWrongState, "schedules make runs of this dag: %s; change or delete them first",
		text.SomeNames(names))
}

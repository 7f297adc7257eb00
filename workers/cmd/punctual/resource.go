package main

import (
	"context"
	"iter"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

// resource is a kind of thing that has a name, and is listed, shown, put and deleted by it.
type resource struct {
	kind                string // the word for one of them, as in verbs and in files
	read, write, remove rest.Operation
	views               views

	// defaults are those of the fields of a put, as JSON, by which a view is compared; "" where try says what changes.
	defaults string
	// try has the API check a document. Without it, the schema that the API serves is all that is checked before a put.
	try func(*shell, document) (changes []string, err error)
}

// resources are all kinds, each after those that it may refer to.
var resources = []resource{{
	kind: "limit", read: rest.GetLimit, write: rest.PutLimit, remove: rest.DeleteLimit,
	views:    viewed[rest.LimitView, rest.LimitView]{(*client.Client).Limits, limitColumns, limitColumns},
	defaults: `{"when_full":"wait"}`,
}, {
	kind: "exclusion", read: rest.GetExclusion, write: rest.PutExclusion, remove: rest.DeleteExclusion,
	views: viewed[rest.ExclusionView, rest.ExclusionView]{
		(*client.Client).Exclusions, exclusionColumns, exclusionColumns},
	defaults: `{"move":"drop"}`,
}, {
	kind: "webhook", read: rest.GetWebhook, write: rest.PutWebhook, remove: rest.DeleteWebhook,
	views: viewed[rest.WebhookView, rest.WebhookView]{
		(*client.Client).Webhooks, webhookColumns, webhookColumns},
	defaults: `{"enabled":true}`,
}, {
	kind: "task", read: rest.GetTask, write: rest.PutTask, remove: rest.DeleteTask,
	views: viewed[rest.TaskView, rest.TaskView]{(*client.Client).Tasks, taskColumns, noted},
	defaults: `{"pool":"short","priority":"normal","timeout":"30s","max_result":"256KiB","on_large_result":"preview",
		"retry":{"max_attempts":6,"initial_delay":"1s","factor":2,"max_delay":"5m","jitter":0.3,
			"on_worker_lost":"rerun"}}`,
}, {
	kind: "dag", read: rest.GetDag, write: rest.PutDag, remove: rest.DeleteDag,
	views:    viewed[rest.DagItemView, rest.DagView]{(*client.Client).Dags, dagItemColumns, dagColumns},
	defaults: `{"on_failure":"cancel_downstream","nodes":{"*":{"run_if":"all_succeeded"}}}`,
	try:      tryDag,
}, {
	kind: "schedule", read: rest.GetSchedule, write: rest.PutSchedule, remove: rest.DeleteSchedule,
	views: viewed[rest.ScheduleView, rest.ScheduleView]{
		(*client.Client).Schedules, scheduleColumns, scheduleColumns},
	try: trySchedule,
}}

// views are the forms of a resource. They are those of one type of Go each, which the table of resources leaves out.
type views interface {
	list(s *shell) error
	show(s *shell, read rest.Operation, name string) error
	put(s *shell, write rest.Operation, docs []document) error
}

// viewed are the views of which a list has T and a single one is V. Their first column is the name.
type viewed[T, V any] struct {
	all     func(*client.Client, context.Context) iter.Seq2[T, error]
	listed  []column[T]
	columns []column[V]
}

func (t viewed[T, V]) list(s *shell) error {
	return list(s, t.all(s.client, s.ctx), 0, t.listed[0].cell, t.listed...)
}

func (t viewed[T, V]) show(s *shell, read rest.Operation, name string) error {
	v, err := client.Call[V](s.ctx, s.client, read, client.Request{Path: []string{name}})
	if err != nil {
		return err
	}
	return show(s, v, t.columns[0].cell, t.columns...)
}

func (t viewed[T, V]) put(s *shell, write rest.Operation, docs []document) error {
	return apply(s, docs, func(d document) (V, error) {
		return client.Call[V](s.ctx, s.client, write, d.request())
	}, t.columns[0].cell, t.columns...)
}

// ofVerb is the resource whose verb was chosen: the command above the verb is named like it.
func ofVerb(chosen *kong.Context) resource {
	kind := chosen.Selected().Parent.Name
	for _, r := range resources {
		if r.kind == kind {
			return r
		}
	}
	panic("no resource is named " + strconv.Quote(kind)) // a test chooses each verb
}

// common are the verbs that every resource has with the same help; kind is set where it is embedded. Each resource
// adds delete, whose help says what a deletion leaves.
type common struct {
	Ls  listNamed `cmd:"" help:"List the ${kind}s."`
	Get showNamed `cmd:"" aliases:"show" help:"Show a single ${kind}."`
}

type listNamed struct{}

// Run lists the resources by name.
func (c listNamed) Run(s *shell, chosen *kong.Context) error { return ofVerb(chosen).views.list(s) }

type showNamed struct {
	Name string `arg:"" help:"Name of the ${kind}."`
}

// Run shows the resource.
func (c showNamed) Run(s *shell, chosen *kong.Context) error {
	r := ofVerb(chosen)
	return r.views.show(s, r.read, c.Name)
}

type putNamed struct{ source }

// Run puts each document, and goes on after one that is refused: the API has no dry run of it.
func (c putNamed) Run(s *shell, chosen *kong.Context) error {
	docs, err := c.documents(s)
	if err != nil {
		return err
	}
	r := ofVerb(chosen)
	return r.views.put(s, r.write, docs)
}

type deleteNamed struct {
	Name []string `arg:"" help:"Names."`
}

// Run deletes each resource, and goes on after one that cannot be deleted.
func (c deleteNamed) Run(s *shell, chosen *kong.Context) error {
	r := ofVerb(chosen)
	return deleted(s, c.Name, func(ctx context.Context, name string) error {
		_, err := client.Call[struct{}](ctx, s.client, r.remove, client.Request{Path: []string{name}})
		return err
	})
}

type exclusions struct {
	common `set:"kind=exclusion"`
	Delete deleteNamed `cmd:"" aliases:"rm" help:"Delete exclusions that no schedule names."`
	Put    putNamed    `cmd:"" help:"Create or replace the exclusions of a YAML file."`
}

var exclusionColumns = []column[rest.ExclusionView]{
	{"EXCLUSION", func(e rest.ExclusionView) string { return e.Name }},
	{"DAYS", excludedDays},
	{"ZONE", func(e rest.ExclusionView) string { return of(e.Timezone) }},
	{"MOVE", func(e rest.ExclusionView) string { return string(e.Move) }},
	{"VERSION", func(e rest.ExclusionView) string { return count(e.Version) }},
}

// excludedDays are the days and ranges of an exclusion in the words of its fields.
func excludedDays(e rest.ExclusionView) string {
	var all []string
	for _, days := range []*[]string{e.Weekly, e.Yearly, e.Dates} {
		if days != nil {
			all = append(all, *days...)
		}
	}
	if e.Ranges != nil {
		for _, r := range *e.Ranges {
			all = append(all, r.From+" to "+r.To)
		}
	}
	return strings.Join(all, ", ")
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

type dags struct {
	common   `set:"kind=dag"`
	Delete   deleteNamed  `cmd:"" aliases:"rm" help:"Delete dags; their runs go on."`
	Apply    applyDags    `cmd:"" help:"Create dags, or new versions of them, from a YAML file."`
	Run      runDag       `cmd:"" help:"Start a run of a dag."`
	Runs     listRuns     `cmd:"" help:"List runs, newest first."`
	Status   statusRun    `cmd:"" help:"Show a run as it is now."`
	Watch    watchRun     `cmd:"" help:"Show the changes of a run until it ends, and exit with its exit code."`
	Graph    graphRun     `cmd:"" help:"Draw the graph of a run."`
	Events   listEvents   `cmd:"" help:"List the operations on a run: by whom, when and why."`
	Node     showNode     `cmd:"" help:"Show a node of a run, with its result, or its items."`
	Pause    pauseRun     `cmd:"" help:"Pause a run: no further node starts until it is resumed."`
	Resume   resumeRun    `cmd:"" help:"Resume a paused run."`
	Cancel   cancelRun    `cmd:"" help:"Cancel a run; a second cancel also stops its nodes with run_if always."`
	Retry    retryRun     `cmd:"" help:"Retry failed nodes and the downstream nodes they cancelled."`
	Skip     skipNode     `cmd:"" help:"Skip a blocked, waiting or failed node."`
	Complete completeNode `cmd:"" help:"Mark a blocked, waiting or failed node as succeeded."`

	DeleteRun deleteRuns `cmd:"" help:"Delete runs that have ended, with their jobs."`
}

var dagItemColumns = []column[rest.DagItemView]{
	{"DAG", func(d rest.DagItemView) string { return d.Name }},
	{"VERSION", func(d rest.DagItemView) string { return count(d.Version) }},
	{"CREATED", func(d rest.DagItemView) string { return instant(&d.CreatedAt) }},
	{"UPDATED", func(d rest.DagItemView) string { return instant(&d.UpdatedAt) }},
}

var dagColumns = []column[rest.DagView]{
	{"DAG", dagName},
	{"VERSION", func(d rest.DagView) string { return count(d.Version) }},
	{"NODES", func(d rest.DagView) string { return strings.Join(slices.Sorted(maps.Keys(d.Nodes)), ", ") }},
	{"CREATED", func(d rest.DagView) string { return instant(&d.CreatedAt) }},
	{"UPDATED", func(d rest.DagView) string { return instant(&d.UpdatedAt) }},
}

func dagName(d rest.DagView) string { return d.Name }

var runColumns = []column[rest.RunView]{
	{"RUN", runID},
	{"DAG", func(r rest.RunView) string { return of(r.Dag) }},
	{"STATUS", func(r rest.RunView) string { return string(r.Status) }},
	{"DONE", func(r rest.RunView) string {
		if r.Counts == nil {
			return ""
		}
		return count(r.Counts.Succeeded+r.Counts.Skipped) + "/" + count(r.Counts.Total)
	}},
	{"FAILED", func(r rest.RunView) string {
		if r.Counts == nil {
			return ""
		}
		return count(r.Counts.Failed)
	}},
	{"CREATED", func(r rest.RunView) string { return instant(&r.CreatedAt) }},
	{"STARTED", func(r rest.RunView) string { return instant(r.StartedAt) }},
	{"FINISHED", func(r rest.RunView) string { return instant(r.FinishedAt) }},
	{"WHY", func(r rest.RunView) string { return reason(r.StatusReason) }},
}

func runID(r rest.RunView) string { return r.RunID }

type applyDags struct {
	source
	DryRun bool `help:"Check the definitions without changing anything."`
}

// tryDag has the API check a definition. It does not say what would change.
func tryDag(s *shell, d document) ([]string, error) {
	_, err := client.Call[rest.ValidateAnswer](s.ctx, s.client, rest.ValidateDag, client.Request{
		Body: json.RawMessage(d.body)})
	return nil, err
}

// Run checks every document before it puts one, so that an error in one of them leaves all as it was.
func (c applyDags) Run(s *shell) error {
	docs, err := c.documents(s)
	if err != nil {
		return err
	}
	name := dagColumns[0]
	var good []document
	refused := s.check(docs, func(d document) error {
		_, err := client.Call[rest.ValidateAnswer](s.ctx, s.client, rest.ValidateDag,
			client.Request{Body: json.RawMessage(d.body)})
		if err == nil {
			good = append(good, d)
		}
		return err
	})
	if c.DryRun {
		err := apply(s, good, func(d document) (rest.DagView, error) { return rest.DagView{Name: d.name}, nil },
			name.cell, name, column[rest.DagView]{"CHECKED", func(rest.DagView) string { return "good" }})
		return errors.Join(err, refused)
	}
	if refused != nil {
		return refused
	}
	return apply(s, docs, func(d document) (rest.DagView, error) {
		return client.Call[rest.DagView](s.ctx, s.client, rest.PutDag, d.request())
	}, name.cell, name, column[rest.DagView]{"VERSION", func(v rest.DagView) string { return count(v.Version) }})
}

type listRuns struct {
	Name     string `arg:"" optional:"" help:"Name of the dag whose runs are listed; default: runs of every dag."`
	Status   string `help:"Status of the runs to list, such as RUNNING."`
	Schedule string `help:"Name of the schedule whose runs are listed."`
	Limit    int    `default:"20" help:"Maximum number of entries; 0 lists all."`
}

// Run lists the runs.
func (c listRuns) Run(s *shell) error {
	filter := &rest.ListRunsParams{Dag: ptr(c.Name), Schedule: ptr(c.Schedule),
		Status: ptr(rest.ListRunsParamsStatus(strings.ToUpper(c.Status)))}
	return list(s, s.client.Runs(s.ctx, filter), c.Limit, runID, runColumns...)
}

type runDag struct {
	Name   string `arg:"" help:"Name of the dag."`
	Params string `short:"p" help:"Parameters of the run: JSON, @file, or - for standard input."`
	In     string `help:"Delay from now until the start, such as 3s."`
	Key    string `help:"Idempotency key of the request; default: a random one."`
	Wait   bool   `short:"w" help:"Wait until the run ends, and exit with its exit code."`
}

// Run starts the run.
func (c runDag) Run(s *shell) error {
	request := rest.DagRunRequest{Delay: ptr(c.In)}
	var err error
	if request.Params, err = s.params(c.Params); err != nil {
		return err
	}
	run, err := s.client.RunDag(s.ctx, c.Key, c.Name, request)
	if err != nil {
		return err
	}
	return s.startedRun(run, c.Wait)
}

// params reads the object that --params gives; nil for none.
func (s *shell) params(given string) (*map[string]any, error) {
	text, err := s.value("--params", given)
	if err != nil || text == nil {
		return nil, err
	}
	params := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &params); err != nil {
		return nil, usage{errors.New("--params: want an object")}
	}
	values := map[string]any{}
	for name, v := range params {
		values[name] = v // numbers keep their digits
	}
	return &values, nil
}

func (s *shell) runGoesOn(err error, id string) error {
	return s.interrupted(err, "run "+id, "punctual dag watch "+id, "punctual dag cancel "+id)
}

type watchRun struct {
	ID    string        `arg:"" help:"Identifier of the run."`
	Every time.Duration `default:"500ms" help:"Interval between two queries of the API."`
}

// Run writes a line for each change of a node until the run has ended.
func (c watchRun) Run(s *shell) error {
	seen := map[string]string{}
	for {
		run, err := s.client.Run(s.ctx, c.ID)
		if err != nil {
			return s.runGoesOn(err, c.ID)
		}
		if run.Nodes != nil && s.output == "table" {
			for _, name := range slices.Sorted(maps.Keys(*run.Nodes)) {
				n := (*run.Nodes)[name]
				line := s.paint(fmt.Sprintf("%-10s", n.Status)) + " " + name
				if why := of(n.Why); why != "" {
					line += ": " + plain(why)
				}
				if seen[name] != line {
					seen[name] = line
					_, _ = fmt.Fprintln(s.out, line)
				}
			}
		}
		if client.Over(string(run.Status)) {
			if err := show(s, run, runID, runColumns...); err != nil {
				return err
			}
			return over(string(run.Status))
		}
		select {
		case <-s.ctx.Done():
			return s.runGoesOn(s.ctx.Err(), c.ID)
		case <-time.After(c.Every):
		}
	}
}

type graphRun struct {
	ID     string `arg:"" help:"Identifier of the run."`
	Format string `short:"f" enum:"mermaid,svg" default:"mermaid" help:"Format: mermaid source, or an svg picture."`
}

// Run writes the picture.
func (c graphRun) Run(s *shell) error {
	diagram, err := s.client.RunDiagram(s.ctx, c.ID, rest.GetRunGraphParamsFormat(c.Format))
	if err != nil {
		return err
	}
	if _, err := s.out.Write(diagram); err != nil {
		return err
	}
	if s.seen && c.Format == "mermaid" {
		_, _ = fmt.Fprintf(s.err, "That is Mermaid's source; a picture: punctual dag graph %s -f svg > run.svg\n", c.ID)
	}
	return nil
}

// because is what each operation on a run may say.
type because struct {
	Reason string `help:"Reason for the operation, kept in the run's events."`
}

type cancelRun struct {
	ID string `arg:"" help:"Identifier of the run."`
	because
}

// Run cancels the run.
func (c cancelRun) Run(s *shell) error {
	return s.changed(s.client.CancelRun(s.ctx, c.ID, rest.RunActRequest{Reason: ptr(c.Reason)}))
}

type retryRun struct {
	ID   string `arg:"" help:"Identifier of the run."`
	Node string `arg:"" optional:"" help:"Name of the failed node to retry; default: all failed nodes."`
	From string `help:"Name of a node to retry with all nodes downstream of it."`
	because
}

// Run retries the run or the node.
func (c retryRun) Run(s *shell) error {
	if c.Node != "" && c.From != "" {
		return usage{errors.New("NODE and --from are not given together")}
	}
	if c.Node != "" {
		return s.changed(s.client.RetryNode(s.ctx, c.ID, c.Node, rest.RunActRequest{Reason: ptr(c.Reason)}))
	}
	return s.changed(s.client.RetryRun(s.ctx, c.ID, rest.RunRetryRequest{From: ptr(c.From), Reason: ptr(c.Reason)}))
}

type skipNode struct {
	ID       string `arg:"" help:"Identifier of the run."`
	Node     string `arg:"" help:"Name of the node."`
	Children string `help:"Effect on the downstream nodes: run them, or skip them, too; default: run."`
	because
}

// Run skips the node.
func (c skipNode) Run(s *shell) error {
	return s.changed(s.client.SkipNode(s.ctx, c.ID, c.Node, rest.NodeSkipRequest{Reason: ptr(c.Reason),
		Children: ptr(rest.NodeSkipRequestChildren(c.Children))}))
}

type completeNode struct {
	ID     string `arg:"" help:"Identifier of the run."`
	Node   string `arg:"" help:"Name of the node."`
	Result string `help:"Result of the node: JSON, @file, or - for standard input; default: null."`
	because
}

// Run completes the node.
func (c completeNode) Run(s *shell) error {
	result, err := s.value("--result", c.Result)
	if err != nil {
		return err
	}
	request := rest.NodeCompleteRequest{Reason: ptr(c.Reason)}
	if result != nil {
		request.Result = result
	}
	return s.changed(s.client.CompleteNode(s.ctx, c.ID, c.Node, request))
}

func (s *shell) changed(run rest.RunView, err error) error {
	if err != nil {
		return err
	}
	return show(s, run, runID, runColumns...)
}

package dags

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/functions/engine/show"
	"punctual/shared/audit"
	"punctual/shared/dag"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

func (s *Handler) runRoutes() {
	ofDags := rest.Resource{Router: s.Router, Tag: spec.TagRuns, Path: "/v1/dags"}
	rest.Post(ofDags, "/{name}/runs", "createDagRun", "Run a dag", s.createDagRun, rest.Route{
		Status: http.StatusAccepted, Body: dagRunRequest, OptionalBody: true, Conflict: true,
		Errors: []int{http.StatusTooManyRequests},
		About: "Repeating a request with the same Idempotency-Key answers the run that the first request made, " +
			"with Idempotency-Replayed: true.",
	})
	on := rest.Resource{Router: s.Router, Tag: spec.TagRuns, Path: "/v1/runs"}
	rest.Post(on, "", "createRun", "Run a definition that is given in the request", s.createInlineRun, rest.Route{
		Status: http.StatusAccepted, Body: runRequest, Conflict: true, Errors: []int{http.StatusTooManyRequests},
		About: "Makes a run like that of a dag, without keeping the definition under a name.",
	})
	rest.GetSearch(on, "", "listRuns", "List runs", s.listRuns,
		rest.Route{About: "Lists runs, newest first, without their nodes. Filters are applied to the runs " +
			"themselves, some thousands a request: a page can be short, or empty, and have a cursor."})
	rest.Get(on, "/{id}", "getRun", "Get a run, and optionally wait for its end", s.getRun)
	rest.Delete(on, "/{id}", "deleteRun", "Delete a run that has ended", s.forgetRun,
		rest.Route{Action: audit.RunDelete, Conflict: true, About: "Deletes the run and its jobs."})
	rest.Get(on, "/{id}/nodes/{node}", "getRunNode", "Get a node of a run", s.getRunNode, rest.Route{
		About: "Answers the node with its payload as sent, its result and its error; for a node with for_each, with " +
			"a page of its items.",
	})
	rest.GetPage(on, "/{id}/events", "listRunEvents", "List the operations on a run", s.listRunEvents,
		rest.Route{Cursor: "run events", About: "Lists the operations, oldest first."})
	rest.Get(on, "/{id}/graph", "getRunGraph", "Draw a run", s.getRunGraph, rest.Route{
		About: "Answers Mermaid as text/plain, a picture as image/svg+xml, or nodes and edges as application/json.",
	})
	s.documentGraph()
	s.operationRoutes(on)
}

// operationRoutes registers an operator's operations on runs and nodes.
func (s *Handler) operationRoutes(on rest.Resource) {
	on.Path += "/{id}/"
	takes := func(a audit.Action, body rest.Body, about string) rest.Route {
		return rest.Route{Action: a, Body: body, OptionalBody: true, Conflict: true, About: about}
	}
	rest.Post(on, "pause", "pauseRun", "Pause a run", s.plainOperation(s.Runs.Pause),
		takes(audit.RunPause, operationRequest, "Nothing new starts; running jobs continue to their end."))
	rest.Post(on, "resume", "resumeRun", "Resume a run", s.plainOperation(s.Runs.Resume),
		takes(audit.RunResume, operationRequest, "Ends the pause of the run."))
	rest.Post(on, "cancel", "cancelRun", "Cancel a run", s.plainOperation(s.Runs.Cancel), takes(audit.RunCancel,
		operationRequest, "Jobs that have not started become CANCELLED, and running jobs are asked to stop. Nodes "+
			"with run_if always still run; a second cancel stops them, too."))
	rest.Post(on, "retry", "retryRun", "Retry a run", s.retryRun, takes(audit.RunRetry, runRetryRequest,
		"Retries failed nodes and the downstream nodes they cancelled; with from, that node and all downstream of it."))
	rest.Post(on, "nodes/{node}/retry", "retryRunNode", "Retry a failed node", s.retryRunNode,
		takes(audit.NodeRetry, operationRequest, "Retries the node and the downstream nodes it cancelled."))
	rest.Post(on, "nodes/{node}/skip", "skipRunNode", "Skip a node", s.skipRunNode,
		takes(audit.NodeSkip, nodeSkipRequest, "Skips a node that is blocked, waits or has failed."))
	rest.Post(on, "nodes/{node}/complete", "completeRunNode", "Complete a node by operator override",
		s.completeRunNode, takes(audit.NodeComplete, nodeCompleteRequest,
			"Sets a node that is blocked, waits or has failed to SUCCEEDED, with the given result."))
}

type getRunInput struct {
	ByID
	spec.Waits
}

func (s *Handler) getRun(ctx context.Context, _ tenant.Identity, in *getRunInput) (*waitedRun, error) {
	retryAfter := ""
	if in.Most > 0 {
		ended := func() (bool, error) {
			is, err := s.Store.Run(ctx, in.key)
			return is.Status.Final(), asRunProblem(err)
		}
		done, err := ended()
		if err == nil && !done {
			retryAfter, err = s.Await(ctx, in.key.Tenant, in.Most, ended)
		}
		if err != nil {
			return nil, err
		}
	}
	v, err := s.ShowRun(ctx, in.key)
	return &waitedRun{retryAfter, v}, err
}

// waitedRun answers a request that may have waited for the end of a run.
type waitedRun struct {
	RetryAfter string `header:"Retry-After" doc:"Seconds after which to repeat the request, which did not wait because too many requests of the tenant wait already"`
	Body       spec.RunView
}

type listRunsInput struct {
	Dag            string `query:"dag" doc:"Name of the dag whose runs are listed; default: any"`
	State          string `query:"status" doc:"Status of the runs to list; default: any"`
	Schedule       string `query:"schedule" doc:"Name of the schedule whose runs are listed; default: any"`
	CreatedAfter   string `query:"created_after" format:"date-time" doc:"Earliest created_at of the runs to list"`
	CreatedBefore  string `query:"created_before" format:"date-time" doc:"Time before which the runs to list were created"`
	FinishedAfter  string `query:"finished_after" format:"date-time" doc:"Earliest finished_at of the runs to list"`
	FinishedBefore string `query:"finished_before" format:"date-time" doc:"Time before which the runs to list finished"`
	rest.TagFilters
	rest.Paging
}

func (s *Handler) listRuns(
	ctx context.Context, who tenant.Identity, in *listRunsInput, after string, limit int,
) (found rest.Found[spec.RunView], err error) {
	q, f, err := readRunFilter(in)
	if err != nil {
		return found, err
	}
	q.Below = after
	if f.Tags != nil || in.FinishedAfter != "" || in.FinishedBefore != "" {
		found.AsOf = s.Now() // the runs themselves are read
	}
	page, next, err := s.Read.RunList(ctx, who.Tenant, q, f, limit)
	for _, r := range page {
		v := viewWhole(r)
		v.Nodes = nil
		found.Items = append(found.Items, v)
	}
	found.Next, found.At = next, func(i int) string { return page[i].Position }
	return found, err
}

func readRunFilter(in *listRunsInput) (store.RunQuery, show.RunFilter, error) {
	q := store.RunQuery{Dag: in.Dag, Schedule: in.Schedule}
	var wrong fault.Violations
	f := show.RunFilter{Status: in.State, Tags: spec.FilterTags(&wrong, in.Tags)}
	f.FinishedAfter, f.FinishedBefore = rest.ReadRange(&wrong, "finished_after", in.FinishedAfter, "finished_before",
		in.FinishedBefore)
	rest.FilterWord(&wrong, "status", in.State, dag.RunStatuses)
	rest.FilterName(&wrong, "dag", in.Dag)
	rest.FilterName(&wrong, "schedule", in.Schedule)
	q.From, q.Before = rest.ReadRange(&wrong, "created_after", in.CreatedAfter, "created_before", in.CreatedBefore)
	return q, f, wrong.Err()
}

type listRunEventsInput struct {
	ByID
	rest.Paging
}

type runEventView struct {
	At     rest.Instant `json:"at" doc:"Time of the operation"`
	By     string       `json:"by" doc:"Subject that requested the operation"`
	Action string       `json:"action" enum:"create,pause,resume,cancel,retry,skip,complete" doc:"Kind of the operation"`
	Node   string       `json:"node,omitempty" doc:"Name of the node, for an operation on a node"`
	Reason string       `json:"reason,omitempty" doc:"Reason that was given for the operation"`
	From   string       `json:"from,omitempty" doc:"Status of the run before the operation"`
	To     string       `json:"to,omitempty" doc:"Status of the run after the operation"`
}

func (s *Handler) listRunEvents(
	ctx context.Context, _ tenant.Identity, in *listRunEventsInput, after string, limit int,
) (found rest.Found[runEventView], err error) {
	if _, err := s.Store.Run(ctx, in.key); err != nil {
		return found, asRunProblem(err)
	}
	events, next, err := s.Store.Events(ctx, in.key, after, limit)
	found.Next = next
	for _, e := range events {
		found.Items = append(found.Items,
			runEventView{rest.At(e.At), e.By, e.Action, e.Node, e.Reason, e.From, e.To})
	}
	return found, err
}

type getRunNodeInput struct {
	ByNode
	rest.Paging
}

// runNodeDetail shows one node of a run with all its details.
type runNodeDetail struct {
	RunID job.ID `json:"run_id" doc:"Identifier of the run"`
	Node  string `json:"node" doc:"Name of the node"`
	spec.NodeState
	Payload   json.RawMessage `json:"payload,omitempty" doc:"Payload as sent; absent if larger than {=item_kib} KB"`
	Result    json.RawMessage `json:"result,omitempty" doc:"Result of the node's job. For a node with for_each that has ended: list of the results of its items in order, with null for an item that did not succeed; null with truncated; absent with a cursor."`
	Truncated bool            `json:"truncated,omitempty" doc:"Whether the result of a node with for_each is left out because the list is larger than {=max_result}: each item has its part"`
	Failure
	Items *rest.Page[runItemView] `json:"items,omitempty" doc:"Page of the items of a node with for_each"`
}

type runItemView struct {
	Item int `json:"item" doc:"Index of the item in the list, from 0"`
	spec.JobState
	Result json.RawMessage `json:"result,omitempty" doc:"Result of the job"`
	Failure
}

// Failure is the part of a node's or an item's view about errors.
type Failure struct {
	Partial string      `json:"result_partial,omitempty" enum:"result_too_large,result_lost" doc:"Code with which an expression that uses the result fails; absent if the result is complete"`
	Error   *job.Reason `json:"error,omitempty" doc:"Error of the newest attempt that failed"`
}

// failureOf returns the error of the newest attempt, and why the result of a row cannot be used.
func failureOf(row job.Row) Failure {
	f := Failure{Partial: spec.Partial(row.Partial)}
	if n := len(row.Attempts); n > 0 {
		f.Error = row.Attempts[n-1].Error
	}
	return f
}

func (s *Handler) getRunNode(
	ctx context.Context, who tenant.Identity, in *getRunNodeInput,
) (*rest.Answer[runNodeDetail], error) {
	if _, err := in.PageSize(); err != nil {
		return nil, err
	}
	f, err := s.Read.Snapshot(ctx, in.key)
	if err != nil {
		return nil, asRunProblem(err)
	}
	if !slices.Contains(f.Graph.Names(), in.Node) {
		return nil, errNoRun()
	}
	out := &rest.Answer[runNodeDetail]{Body: runNodeDetail{RunID: in.key.ID, Node: in.Node,
		NodeState: viewNode(f, in.Node, f.States())}}
	row, items := f.Rows[in.Node], f.Items[in.Node]
	if row.IsMapped() {
		l := rest.NewList(who.Tenant, "run items", in.ID, in.Node)
		page, err := rest.ReadPage(l, in.Paging, func(after string, limit int) (rest.Found[runItemView], error) {
			return s.pageOfItems(ctx, f, items, after, limit)
		})
		if err != nil {
			return nil, err
		}
		out.Body.Items = &page.Body
		if in.Cursor == "" && row.Status.Final() {
			result, partial, tooLarge, err := s.Read.ResultOfItems(ctx, items)
			if out.Body.Result, out.Body.Partial = result, spec.Partial(partial); tooLarge {
				out.Body.Result, out.Body.Truncated = json.RawMessage("null"), true
			}
			return out, err
		}
		return out, err
	}
	if in.Cursor != "" {
		return nil, rest.OneViolation("cursor", rest.CodeInvalidCursor, "", "the node has no items")
	}
	if err := s.nodeDetail(ctx, row, &out.Body); err != nil {
		return nil, err
	}
	if f.NoItems(in.Node) {
		out.Body.Result = json.RawMessage("[]")
	}
	return out, nil
}

// pageOfItems returns a page of a mapped node's items with their results. It ends early where these have many bytes.
func (s *Handler) pageOfItems(
	ctx context.Context, f *dag.Snapshot, items []job.Row, after string, limit int,
) (page rest.Found[runItemView], err error) {
	from, _ := strconv.Atoi(after) // 0 at the beginning
	from = min(from, len(items))
	results, err := s.Read.ItemResults(ctx, items[from:min(from+limit, len(items))])
	if err != nil {
		return page, err
	}
	for n, result := range results {
		page.Items = append(page.Items, viewItem(f, from+n, items[from+n], result))
	}
	if to := from + len(results); to < len(items) {
		page.Next = strconv.Itoa(to)
	}
	return page, nil
}

// nodeDetail adds the contents of a node's job.
func (s *Handler) nodeDetail(ctx context.Context, row job.Row, v *runNodeDetail) (err error) {
	if row.Status != "" {
		v.Failure = failureOf(row)
		v.Result, v.Payload, err = s.Read.Contents(ctx, row)
	}
	return err
}

// viewItem shows one item of a mapped node. An item that max_parallel keeps waiting has no job yet.
func viewItem(f *dag.Snapshot, index int, row job.Row, result json.RawMessage) runItemView {
	v := runItemView{Item: index, JobState: spec.JobState{Status: f.Status(row)}, Result: result,
		Failure: failureOf(row)}
	describe(f, row, &v.JobState)
	return v
}

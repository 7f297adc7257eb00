package main

import (
	"encoding/json"
	"fmt"

	"punctual/shared/client/rest"
)

// oneRun is the argument of a verb about a run.
type oneRun struct {
	ID string `arg:"" help:"Identifier of the run."`
}

type statusRun struct{ oneRun }

// Run shows the run as it is now.
func (c statusRun) Run(s *shell) error { return s.changed(s.client.Run(s.ctx, c.ID)) }

type pauseRun struct {
	oneRun
	because
}

// Run pauses the run.
func (c pauseRun) Run(s *shell) error {
	return s.changed(s.client.PauseRun(s.ctx, c.ID, rest.RunActRequest{Reason: ptr(c.Reason)}))
}

type resumeRun struct {
	oneRun
	because
}

// Run resumes the run.
func (c resumeRun) Run(s *shell) error {
	return s.changed(s.client.ResumeRun(s.ctx, c.ID, rest.RunActRequest{Reason: ptr(c.Reason)}))
}

type listEvents struct{ oneRun }

// Run lists what was done to the run, in the order in which the API has it.
func (c listEvents) Run(s *shell) error {
	at := func(e rest.RunEventView) string { return instant(&e.At) }
	return list(s, s.client.RunEvents(s.ctx, c.ID), 0, at,
		column[rest.RunEventView]{"AT", at},
		column[rest.RunEventView]{"ACTION", func(e rest.RunEventView) string { return string(e.Action) }},
		column[rest.RunEventView]{"NODE", func(e rest.RunEventView) string { return of(e.Node) }},
		column[rest.RunEventView]{"FROM", func(e rest.RunEventView) string { return of(e.From) }},
		column[rest.RunEventView]{"TO", func(e rest.RunEventView) string { return of(e.To) }},
		column[rest.RunEventView]{"BY", func(e rest.RunEventView) string { return e.By }},
		column[rest.RunEventView]{"REASON", func(e rest.RunEventView) string { return of(e.Reason) }})
}

type showNode struct {
	oneRun
	Node  string `arg:"" help:"Name of the node."`
	Items bool   `help:"List the items of a node with for_each, one a line."`
}

// Run shows the node or its items.
func (c showNode) Run(s *shell) error {
	if c.Items {
		item := func(v rest.RunItemView) string { return count(v.Item) }
		return list(s, s.client.NodeItems(s.ctx, c.ID, c.Node), 0, item,
			column[rest.RunItemView]{"ITEM", item},
			column[rest.RunItemView]{"STATUS", func(v rest.RunItemView) string { return string(v.Status) }},
			column[rest.RunItemView]{"JOB", func(v rest.RunItemView) string { return of(v.JobID) }},
			column[rest.RunItemView]{"ATTEMPT", func(v rest.RunItemView) string { return countOrNone(v.Attempt) }},
			column[rest.RunItemView]{"RESULT", func(v rest.RunItemView) string { return compact(v.Result) }},
			column[rest.RunItemView]{"WHY", func(v rest.RunItemView) string { return reason(v.StatusReason) }})
	}
	node, err := s.client.Node(s.ctx, c.ID, c.Node)
	if err != nil {
		return err
	}
	return show(s, node, func(n rest.RunNodeDetail) string { return n.Node },
		column[rest.RunNodeDetail]{"NODE", func(n rest.RunNodeDetail) string { return n.Node }},
		column[rest.RunNodeDetail]{"STATUS", func(n rest.RunNodeDetail) string { return string(n.Status) }},
		column[rest.RunNodeDetail]{"JOB", func(n rest.RunNodeDetail) string { return of(n.JobID) }},
		column[rest.RunNodeDetail]{"ATTEMPT", func(n rest.RunNodeDetail) string { return countOrNone(n.Attempt) }},
		column[rest.RunNodeDetail]{"PARENTS DONE", func(n rest.RunNodeDetail) string {
			return fmt.Sprintf("%d/%d", n.ParentsDone, n.Parents)
		}},
		column[rest.RunNodeDetail]{"FINISHED", func(n rest.RunNodeDetail) string { return instant(n.FinishedAt) }},
		column[rest.RunNodeDetail]{"RESULT", func(n rest.RunNodeDetail) string { return compact(n.Result) }},
		column[rest.RunNodeDetail]{"WHY", func(n rest.RunNodeDetail) string { return of(n.Why) }})
}

// cellLength is how many bytes of a result a table shows; -o json shows all.
const cellLength = 60

// compact is the beginning of a JSON value.
func compact(v json.RawMessage) string {
	if len(v) <= cellLength {
		return string(v)
	}
	return string(v[:cellLength]) + "…"
}

type deleteRuns struct {
	ID []string `arg:"" help:"Identifiers of runs that have ended."`
}

// Run deletes each run, and goes on after one that cannot be deleted.
func (c deleteRuns) Run(s *shell) error {
	return deleted(s, c.ID, s.client.DeleteRun)
}

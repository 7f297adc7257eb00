package dag

import (
	"fmt"
	"slices"
	"time"

	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/text"
)

// Snapshot is a run with the rows of its nodes, and what else decides about how it is shown.
type Snapshot struct {
	Run    run.Run
	Graph  *Graph
	Rows   map[string]job.Row   // of nodes; a BLOCKED one has none
	Items  map[string][]job.Row // of mapped nodes, in order
	Claims map[job.ID]job.Claim
	Pauses job.Pauses
	Now    time.Time
}

// Status returns the status to show for a job, or for a mapped node by its items.
func (s *Snapshot) Status(row job.Row) job.Status {
	switch {
	case row.Status == "":
		return job.Blocked
	case !row.IsMapped() || row.Status.Final():
		return job.ReadStatus(row, s.Claims[row.ID], s.Now)
	}
	waits := job.Status("")
	for _, item := range s.Items[row.Node] {
		switch is := s.Status(item); {
		case is == job.Running || is.Final():
			return job.Running
		case waits == "" && is != job.Blocked:
			waits = is
		}
	}
	if waits == "" {
		return job.Queued
	}
	return waits
}

// Times returns when a node started and ended. For a mapped node it is the start of its first item.
func (s *Snapshot) Times(row job.Row) (started, finished time.Time) {
	started, finished = job.StartedAt(row, s.Claims[row.ID], s.Now), row.FinishedAt
	if !row.IsMapped() {
		return started, finished
	}
	for _, item := range s.Items[row.Node] {
		at := job.StartedAt(item, s.Claims[item.ID], s.Now)
		if !at.IsZero() && (started.IsZero() || at.Before(started)) {
			started = at
		}
	}
	return started, finished
}

// Shown returns the run's status. It is HELD as soon as nothing can continue without an operator, even if its item
// does not say so yet.
func (s *Snapshot) Shown(states map[string]NodeState) run.Status {
	is := s.Run.Shown()
	if is == run.Running && s.Run.Operation == nil && s.Graph.Outcome(states, s.Run.Stop) == run.Held {
		return run.Held
	}
	return is
}

// States returns the states of the nodes for dag's rules.
func (s *Snapshot) States() map[string]NodeState {
	is := make(map[string]NodeState, len(s.Rows))
	for name, row := range s.Rows {
		state := StateOf(row)
		state.StartedAt, state.FinishedAt = s.Times(row)
		is[name] = state
	}
	return is
}

// Counts returns the numbers of a node's items by status; nil for a node without items.
func (s *Snapshot) Counts(name string) *RunCounts {
	if !s.Rows[name].IsMapped() {
		return nil
	}
	c := &RunCounts{}
	for _, item := range s.Items[name] {
		c.Add(s.Status(item))
	}
	return c
}

// Waits returns what a node that has this status waits for, as a word and as a sentence.
func (s *Snapshot) Waits(name string, row job.Row, is job.Status, states map[string]NodeState) (word, why string) {
	switch is {
	case job.Blocked:
		return s.blocked(name, states)
	case job.Scheduled, job.Queued:
	default:
		return "", ""
	}
	if s.Run.Shown() == run.Paused {
		return "pause", "the run is paused"
	}
	none := "it is due and waits for a free worker"
	if row.IsMapped() { // it waits for what the first of its items waits for
		none = fmt.Sprintf("none of its %d items has started", row.Items)
		if started, _ := s.Times(row); !started.IsZero() {
			none = "its items wait for a free worker"
		}
		first := slices.IndexFunc(s.Items[name], func(item job.Row) bool { return s.Status(item) == is })
		if first < 0 { // they are being released
			return "worker", none
		}
		row = s.Items[name][first]
	}
	_, paused := s.Pauses.Hold(row.Task, s.Now)
	switch word = job.WaitingFor(row, s.Claims[row.ID], paused, s.Now); word {
	case "pause":
		if row.IsPaused() {
			return word, "its job is paused"
		}
		return word, "a pause of its task, or of everything, holds it"
	case job.WaitsForLimit:
		l, _ := row.FullLimit()
		return word, "waits for " + l.String()
	case "due":
		return word, "due at " + row.DueAt.UTC().Format(text.InstantLayout)
	case job.WaitsForHandler:
		return "worker", fmt.Sprintf(job.NoHandler, row.Task)
	case "retry", "snooze":
		return "retry", fmt.Sprintf("attempt %d is due at %s", row.Attempt, row.DueAt.UTC().Format(text.InstantLayout))
	}
	return "worker", none
}

// blocked returns why a node has not been released.
func (s *Snapshot) blocked(name string, states map[string]NodeState) (word, why string) {
	switch v, _ := s.Graph.EvaluateNode(name, states); {
	case v == Held:
		return "operator", "an upstream node failed: retry, skip or complete that node or this one, or cancel the run"
	case v == Wait:
		return "parents", "waits for " + s.unended(name, states)
	case v == Run && s.Graph.AwaitsRead(name, states) != "":
		return "parents", "waits for " + s.Graph.AwaitsRead(name, states) + ", whose facts its expressions use"
	case s.Run.Shown() == run.Paused:
		return "pause", "the run is paused"
	case v == Run && s.Graph.MaxConcurrency > 0:
		if s.Graph.MaxConcurrency == 1 {
			return "limit", "another job of the run is active, and the max_concurrency of the run is 1"
		}
		return "limit", fmt.Sprintf("%d jobs of the run are active, which is the max_concurrency of the run",
			s.Graph.MaxConcurrency)
	case v == Run && s.Run.Generation(name) > 1: // it starts once what it ran before has stopped
		return "parents", "its parents have just ended, or its earlier job has not stopped yet"
	}
	return "parents", "its parents have just ended"
}

// unended lists the parents that have not ended, in words.
func (s *Snapshot) unended(name string, states map[string]NodeState) string {
	var open []string
	for _, p := range s.Graph.Parents(name) {
		if states[p].End() != NotEnded {
			continue
		}
		if c := s.Counts(p); c != nil {
			p += " (" + c.Ended() + ")"
		}
		open = append(open, p)
	}
	return text.SomeNames(open)
}

// FailedBy is why a run failed: by the nodes that did or, without any, by those that were cancelled and not for a
// parent.
func FailedBy(failed, cancelled []string) *job.Reason {
	why := job.Reason{Code: "node_failed"}
	switch {
	case len(failed) == 1:
		why.Message = "node " + failed[0] + " failed"
	case len(failed) > 1:
		why.Message = "nodes " + text.SomeNames(failed) + " failed"
	case len(cancelled) == 1:
		why.Message = "node " + cancelled[0] + " was cancelled"
	case len(cancelled) > 1:
		why.Message = "nodes " + text.SomeNames(cancelled) + " were cancelled"
	default:
		return nil
	}
	return &why
}

// NoItems reports whether a node has ended because its list is empty. Its result is the empty list.
func (s *Snapshot) NoItems(name string) bool {
	row := s.Rows[name]
	return s.Graph.Nodes[name].ForEach != "" && row.Status == job.Skipped && row.Reason.Code == ReasonEmpty
}

// Title is the title of a picture of the run.
func (s *Snapshot) Title() string {
	title := "run " + string(s.Run.ID)
	if s.Run.Dag != "" {
		title = fmt.Sprintf("%s v%d, %s", s.Run.Dag, s.Run.DagVersion, title)
	}
	return title + ": " + string(s.Shown(s.States()))
}

// Appearances returns how the nodes are drawn.
func (s *Snapshot) Appearances() map[string]NodeView {
	nodes := map[string]NodeView{}
	for _, name := range s.Graph.Names() {
		shown := NodeView{Status: s.Status(s.Rows[name])}
		if c := s.Counts(name); c != nil {
			shown.Note = c.Ended()
		}
		nodes[name] = shown
	}
	return nodes
}

// RunCounts counts the nodes of a run, or the items of a node, by status.
type RunCounts struct {
	Total     int `json:"total" doc:"Number of all"`
	Blocked   int `json:"blocked" doc:"Number that are BLOCKED"`
	Waiting   int `json:"waiting" doc:"Number that are SCHEDULED or QUEUED"`
	Running   int `json:"running" doc:"Number that are RUNNING"`
	Succeeded int `json:"succeeded" doc:"Number that have SUCCEEDED"`
	Failed    int `json:"failed" doc:"Number that are DEAD or EXPIRED"`
	Cancelled int `json:"cancelled" doc:"Number that are CANCELLED"`
	Skipped   int `json:"skipped" doc:"Number that are SKIPPED"`
}

// Ended says how many of the items have ended.
func (c *RunCounts) Ended() string {
	return fmt.Sprintf("%d of %d items", c.Total-c.Blocked-c.Waiting-c.Running, c.Total)
}

// Add counts one more with that status.
func (c *RunCounts) Add(s job.Status) {
	c.Total++
	switch s {
	case job.Scheduled, job.Queued:
		c.Waiting++
	case job.Running:
		c.Running++
	case job.Succeeded:
		c.Succeeded++
	case job.Dead, job.Expired:
		c.Failed++
	case job.Cancelled:
		c.Cancelled++
	case job.Skipped:
		c.Skipped++
	default:
		c.Blocked++
	}
}

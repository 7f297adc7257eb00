package search

import (
	"maps"
	"slices"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
)

// Bounds of a filter.
const (
	MaxTags     = contract.MaxSearchTags
	MinIDPrefix = 6 // characters of the beginning of an id
)

// WebhookTask is the built-in task whose jobs deliver events. They are found only by a filter that names the task.
const WebhookTask = "webhook"

// Filter selects jobs. Its zero value selects all of them but deliveries of webhooks; each field that is set narrows
// that. Ranges are after ≤ time < before. Its JSON form is that of requests, and of what is stored of them.
type Filter struct {
	Status         job.Status        `json:"status,omitempty"`
	Task           string            `json:"task,omitempty"`
	Schedule       string            `json:"schedule,omitempty"`
	DAG            string            `json:"dag,omitempty"`
	RunID          string            `json:"run_id,omitempty"`
	Pool           string            `json:"pool,omitempty"`
	Priority       job.Priority      `json:"priority,omitempty"`
	Code           string            `json:"code,omitempty"`
	Group          string            `json:"group,omitempty"`
	Tags           map[string]string `json:"tags,omitempty"` // MaxTags at most
	IDPrefix       string            `json:"id,omitempty"`
	CreatedAfter   time.Time         `json:"created_after,omitzero"`
	CreatedBefore  time.Time         `json:"created_before,omitzero"`
	DueAfter       time.Time         `json:"due_after,omitzero"`
	DueBefore      time.Time         `json:"due_before,omitzero"`
	FinishedAfter  time.Time         `json:"finished_after,omitzero"`
	FinishedBefore time.Time         `json:"finished_before,omitzero"`
	DeadAfter      time.Time         `json:"dead_after,omitzero"`
	DeadBefore     time.Time         `json:"dead_before,omitzero"`
}

// Empty reports whether the filter selects everything.
func (f Filter) Empty() bool { return len(f.Names()) == 0 }

// Names returns the names of the fields that are set, sorted; a tag is tag.NAME.
func (f Filter) Names() (names []string) {
	for name, set := range map[string]bool{
		"status": f.Status != "", "task": f.Task != "", "schedule": f.Schedule != "", "dag": f.DAG != "",
		"run_id": f.RunID != "", "pool": f.Pool != "", "priority": f.Priority != "", "code": f.Code != "",
		"group": f.Group != "", "id": f.IDPrefix != "",
		"created_after": !f.CreatedAfter.IsZero(), "created_before": !f.CreatedBefore.IsZero(),
		"due_after": !f.DueAfter.IsZero(), "due_before": !f.DueBefore.IsZero(),
		"finished_after": !f.FinishedAfter.IsZero(), "finished_before": !f.FinishedBefore.IsZero(),
		"dead_after": !f.DeadAfter.IsZero(), "dead_before": !f.DeadBefore.IsZero(),
	} {
		if set {
			names = append(names, name)
		}
	}
	for name := range f.Tags {
		names = append(names, "tag."+name)
	}
	slices.Sort(names)
	return names
}

// With returns the filter with a tag more.
func (f Filter) With(name, value string) Filter {
	tags := maps.Clone(f.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	tags[name] = value
	f.Tags = tags
	return f
}

// Matches reports whether a job with that entry may be selected. What an entry does not have, no filter on it matches.
// QUEUED is never stored: a filter with it matches SCHEDULED, and the reader of the row decides, as for every status.
func (f Filter) Matches(e Entry) bool {
	return f.matchesStatus(e.Status) &&
		matches(f.Task, e.Task) && (e.Task != WebhookTask || f.Task == WebhookTask) &&
		matches(f.Schedule, e.Schedule) && matches(f.DAG, e.DAG) && matches(f.RunID, e.RunID) &&
		matches(f.Pool, e.Pool) && matches(f.Priority, e.Priority) && matches(f.Code, e.Code) &&
		matches(f.Group, e.Group) && strings.HasPrefix(string(e.ID), f.IDPrefix) &&
		within(f.CreatedAfter, f.CreatedBefore, e.CreatedAt) && within(f.DueAfter, f.DueBefore, e.DueAt) &&
		within(f.FinishedAfter, f.FinishedBefore, e.FinishedAt) && within(f.DeadAfter, f.DeadBefore, e.DeadAt) &&
		f.matchesTags(e.Tags)
}

func (f Filter) matchesStatus(stored job.Status) bool {
	return f.Status == "" || f.Status == stored || f.Status == job.Queued && stored == job.Scheduled
}

func (f Filter) matchesTags(tags map[string]string) bool {
	for name, value := range f.Tags {
		if has, ok := tags[name]; !ok || has != value {
			return false
		}
	}
	return true
}

func matches[T ~string](want, has T) bool { return want == "" || want == has }

// within reports whether a time lies in a range, of which a zero end is open. The zero time lies in no range but the
// open one.
func within(after, before, at time.Time) bool {
	if after.IsZero() && before.IsZero() {
		return true
	}
	return !at.IsZero() && !at.Before(after) && (before.IsZero() || at.Before(before))
}

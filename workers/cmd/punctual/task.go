package main

import (
	"strings"

	"punctual/shared/client/rest"
)

type tasks struct {
	common `set:"kind=task"`
	Delete deleteNamed `cmd:"" aliases:"rm" help:"Delete tasks; their waiting jobs still run."`
	Put    putNamed    `cmd:"" help:"Create or replace the tasks of a YAML file."`
}

var taskColumns = []column[rest.TaskView]{
	{"TASK", taskName},
	{"EXECUTOR", func(t rest.TaskView) string { return string(t.Executor) }},
	{"POOL", func(t rest.TaskView) string { return string(t.Pool) }},
	{"PRIORITY", func(t rest.TaskView) string { return string(t.Priority) }},
	{"TIMEOUT", func(t rest.TaskView) string { return t.Timeout }},
	{"ATTEMPTS", func(t rest.TaskView) string { return count(t.Retry.MaxAttempts) }},
	{"MAX RESULT", func(t rest.TaskView) string { return t.MaxResult }},
	{"LARGER", func(t rest.TaskView) string { return string(t.OnLargeResult) }},
	{"VERSION", func(t rest.TaskView) string {
		if t.BuiltIn != nil && *t.BuiltIn {
			return "built in"
		}
		return count(t.Version)
	}},
}

// noted are the columns of a task that is shown with the notes about its schema, which lists leave out.
var noted = append(taskColumns[:len(taskColumns):len(taskColumns)],
	column[rest.TaskView]{"NOTES", func(t rest.TaskView) string {
		if t.Notes == nil {
			return ""
		}
		return strings.Join(*t.Notes, "; ")
	}})

func taskName(t rest.TaskView) string { return t.Name }

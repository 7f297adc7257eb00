package main

import (
	"strings"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

type tasks struct {
	Ls  listTasks   `cmd:"" help:"List tasks, the built-in ones included."`
	Get getTask     `cmd:"" help:"Show a task."`
	Put putTasks    `cmd:"" help:"Create or replace the tasks of a YAML file."`
	Rm  deleteTasks `cmd:"" help:"Delete tasks; their waiting jobs still run."`
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

type listTasks struct{}

// Run lists the tasks by name.
func (c listTasks) Run(s *shell) error {
	return list(s, s.client.Tasks(s.ctx), 0, taskName, taskColumns...)
}

type getTask struct {
	Name string `arg:"" help:"Name of the task."`
}

// Run shows the task.
func (c getTask) Run(s *shell) error {
	task, err := s.client.Task(s.ctx, c.Name)
	if err != nil {
		return err
	}
	return show(s, task, taskName, noted...)
}

type putTasks struct{ source }

// Run puts each document, and goes on after one that is refused: the API has no dry run of a task.
func (c putTasks) Run(s *shell) error {
	docs, err := c.documents(s)
	if err != nil {
		return err
	}
	return apply(s, docs, func(d document) (rest.TaskView, error) {
		return client.Call[rest.TaskView](s.ctx, s.client, rest.PutTask, d.request())
	}, taskName, noted...)
}

type deleteTasks struct {
	Name []string `arg:"" help:"Names of tasks."`
}

// Run deletes each task, and goes on after one that cannot be deleted.
func (c deleteTasks) Run(s *shell) error {
	return deleted(s, c.Name, s.client.DeleteTask)
}

package store

import (
	"context"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

// Task implements TaskReader.
func (s *Store) Task(ctx context.Context, t tenant.ID, name string) (job.Task, error) {
	for _, b := range builtIn {
		if b.Name == name {
			return b, nil
		}
	}
	i, err := s.table.Get(ctx, job.TaskRef(t, name))
	if err != nil {
		return job.Task{}, err
	}
	if i == nil {
		return job.Task{}, fault.New(fault.NotFound, nil, "reading task %q", name)
	}
	return job.ParseTask(i)
}

var builtIn = job.BuiltInTasks()

// Tasks implements Tasks.
func (s *Store) Tasks(
	ctx context.Context, t tenant.ID, after string, limit int,
) (tasks []job.Task, more bool, err error) {
	return byName(ctx, s.table, contract.Tasks, job.TasksKey(t), after, limit, func(i item.Item) (job.Task, bool) {
		task, err := job.ParseTask(i)
		return task, err == nil
	})
}

// DeleteTask implements Tasks.
func (s *Store) DeleteTask(ctx context.Context, t tenant.ID, name string) error {
	err := s.Put(ctx, item.Write{
		Ref: job.TaskRef(t, name), Name: WriteTaskDelete, Delete: true,
		When: []item.All{{{Attr: contract.AttrPK, Op: item.Exists}}},
	})
	if Refused(err) != nil {
		return fault.New(fault.NotFound, nil, "deleting task %q", name)
	}
	return err
}

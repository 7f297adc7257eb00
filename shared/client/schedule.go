package client

import (
	"context"
	"iter"

	"punctual/shared/client/rest"
)

// Schedules iterates over the schedules by name.
func (c *Client) Schedules(ctx context.Context) iter.Seq2[rest.ScheduleView, error] {
	return pages(func(cursor *string) (rest.SchedulePage, error) {
		return Read[rest.SchedulePage](c.rest.ListSchedules(ctx, &rest.ListSchedulesParams{Cursor: cursor}))
	}, func(p rest.SchedulePage) ([]rest.ScheduleView, *string) { return p.Items, p.NextCursor })
}

// Schedule returns a schedule, [NotFound] if there is none.
func (c *Client) Schedule(ctx context.Context, name string) (rest.ScheduleView, error) {
	return Read[rest.ScheduleView](c.rest.GetSchedule(ctx, name))
}

// PutSchedule creates a schedule, or replaces it whatever its version is.
func (c *Client) PutSchedule(
	ctx context.Context, name string, s rest.ScheduleRequest,
) (rest.ScheduleView, error) {
	return Read[rest.ScheduleView](c.rest.PutSchedule(ctx, name, nil, s))
}

// DeleteSchedule deletes a schedule; its waiting jobs become SKIPPED.
func (c *Client) DeleteSchedule(ctx context.Context, name string) error {
	_, err := Read[struct{}](c.rest.DeleteSchedule(ctx, name, nil))
	return err
}

// PauseSchedule holds every time of a schedule that falls due from now on.
func (c *Client) PauseSchedule(
	ctx context.Context, name string, p rest.PauseRequest,
) (rest.ScheduleView, error) {
	return Read[rest.ScheduleView](c.rest.PauseSchedule(ctx, name, nil, p))
}

// ResumeSchedule lifts the pause of a schedule.
func (c *Client) ResumeSchedule(
	ctx context.Context, name string, r rest.ResumeRequest,
) (rest.ScheduleView, error) {
	return Read[rest.ScheduleView](c.rest.ResumeSchedule(ctx, name, nil, r))
}

// PreviewSchedule returns the next count times of a schedule, 1 to 1,000.
func (c *Client) PreviewSchedule(ctx context.Context, name string, count int) (rest.PreviewAnswer, error) {
	return Read[rest.PreviewAnswer](c.rest.PreviewSchedule(ctx, name, &rest.PreviewScheduleParams{Count: &count}))
}

// PreviewCalendar returns the times of a calendar that no schedule has yet.
func (c *Client) PreviewCalendar(ctx context.Context, p rest.PreviewRequest) (rest.PreviewAnswer, error) {
	return Read[rest.PreviewAnswer](c.rest.PreviewCalendar(ctx, p))
}

// Occurrences iterates over the times of a schedule and what became of each: from now back, or forward
// with outcome pending.
func (c *Client) Occurrences(
	ctx context.Context, name string, filter *rest.ListOccurrencesParams,
) iter.Seq2[rest.OccurrenceView, error] {
	return pages(func(cursor *string) (rest.OccurrencePage, error) {
		p := deref(filter)
		p.Cursor = next(cursor, p.Cursor)
		return Read[rest.OccurrencePage](c.rest.ListOccurrences(ctx, name, &p))
	}, func(p rest.OccurrencePage) ([]rest.OccurrenceView, *string) { return p.Items, p.NextCursor })
}

// Pauses iterates over the pauses of tasks and of everything.
func (c *Client) Pauses(ctx context.Context) iter.Seq2[rest.PauseView, error] {
	return pages(func(cursor *string) (rest.PausePage, error) {
		return Read[rest.PausePage](c.rest.ListPauses(ctx, &rest.ListPausesParams{Cursor: cursor}))
	}, func(p rest.PausePage) ([]rest.PauseView, *string) { return p.Items, p.NextCursor })
}

// Pause holds a scope, all or task:NAME: what is due does not start until it is lifted.
func (c *Client) Pause(ctx context.Context, scope string, p rest.PauseRequest) (rest.PauseView, error) {
	return Read[rest.PauseView](c.rest.PutPause(ctx, scope, p))
}

// Resume lifts the pause of a scope.
func (c *Client) Resume(ctx context.Context, scope string) error {
	_, err := Read[struct{}](c.rest.DeletePause(ctx, scope))
	return err
}

// Tasks iterates over the tasks by name.
func (c *Client) Tasks(ctx context.Context) iter.Seq2[rest.TaskView, error] {
	return pages(func(cursor *string) (rest.TaskPage, error) {
		return Read[rest.TaskPage](c.rest.ListTasks(ctx, &rest.ListTasksParams{Cursor: cursor}))
	}, func(p rest.TaskPage) ([]rest.TaskView, *string) { return p.Items, p.NextCursor })
}

// Task returns a task, [NotFound] if there is none.
func (c *Client) Task(ctx context.Context, name string) (rest.TaskView, error) {
	return Read[rest.TaskView](c.rest.GetTask(ctx, name))
}

// PutTask creates or replaces a task.
func (c *Client) PutTask(ctx context.Context, name string, t rest.TaskRequest) (rest.TaskView, error) {
	return Read[rest.TaskView](c.rest.PutTask(ctx, name, t))
}

// DeleteTask deletes a task; its jobs that wait still run.
func (c *Client) DeleteTask(ctx context.Context, name string) error {
	_, err := Read[struct{}](c.rest.DeleteTask(ctx, name))
	return err
}

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"punctual/shared/client/rest"
)

// Schedules iterates over the schedules by name.
func (c *Client) Schedules(ctx context.Context) iter.Seq2[rest.ScheduleView, error] {
	return list[rest.ScheduleView](ctx, c, rest.ListSchedules, Request{})
}

// Schedule returns a schedule, [NotFound] if there is none.
func (c *Client) Schedule(ctx context.Context, name string) (rest.ScheduleView, error) {
	return Call[rest.ScheduleView](ctx, c, rest.GetSchedule, Request{Path: []string{name}})
}

// PutSchedule creates a schedule, or replaces it: whatever its version is, or by [IfVersion] one version only.
func (c *Client) PutSchedule(
	ctx context.Context, name string, s rest.ScheduleRequest, only ...Condition,
) (rest.ScheduleView, error) {
	return Call[rest.ScheduleView](ctx, c, rest.PutSchedule, Request{
		Path: []string{name}, Params: rest.PutScheduleParams{IfMatch: ifMatch(only)}, Body: s})
}

// PatchSchedule changes the fields of a schedule that p has. To remove a field, which JSON says by null, use [Call].
func (c *Client) PatchSchedule(
	ctx context.Context, name string, p rest.SchedulePatchRequest, only ...Condition,
) (rest.ScheduleView, error) {
	return Call[rest.ScheduleView](ctx, c, rest.PatchSchedule, Request{
		Path: []string{name}, Params: rest.PatchScheduleParams{IfMatch: ifMatch(only)}, Body: p})
}

// DryRunSchedule returns the times that PutSchedule would add, lose and move, and changes nothing.
func (c *Client) DryRunSchedule(
	ctx context.Context, name string, s rest.ScheduleRequest, only ...Condition,
) (rest.ScheduleDiff, error) {
	return Call[rest.ScheduleDiff](ctx, c, rest.DryRunSchedule, Request{
		Path: []string{name}, Params: rest.DryRunScheduleParams{IfMatch: ifMatch(only)}, Body: s})
}

// DryRunSchedulePatch returns the times that PatchSchedule would add, lose and move, and changes nothing.
func (c *Client) DryRunSchedulePatch(
	ctx context.Context, name string, p rest.SchedulePatchRequest, only ...Condition,
) (rest.ScheduleDiff, error) {
	return Call[rest.ScheduleDiff](mayRepeat(ctx), c, rest.PatchSchedule, Request{
		Path: []string{name}, Params: rest.PatchScheduleParams{DryRun: new(true), IfMatch: ifMatch(only)}, Body: p})
}

// DeleteSchedule deletes a schedule; its waiting jobs become SKIPPED.
func (c *Client) DeleteSchedule(ctx context.Context, name string, only ...Condition) error {
	_, err := Call[struct{}](ctx, c, rest.DeleteSchedule, Request{
		Path: []string{name}, Params: rest.DeleteScheduleParams{IfMatch: ifMatch(only)}})
	return err
}

// PauseSchedule holds every time of a schedule that falls due from now on.
func (c *Client) PauseSchedule(
	ctx context.Context, name string, p rest.PauseRequest, only ...Condition,
) (rest.ScheduleView, error) {
	return Call[rest.ScheduleView](ctx, c, rest.PauseSchedule, Request{
		Path: []string{name}, Params: rest.PauseScheduleParams{IfMatch: ifMatch(only)}, Body: p})
}

// ResumeSchedule lifts the pause of a schedule.
func (c *Client) ResumeSchedule(
	ctx context.Context, name string, r rest.ResumeRequest, only ...Condition,
) (rest.ScheduleView, error) {
	return Call[rest.ScheduleView](ctx, c, rest.ResumeSchedule, Request{
		Path: []string{name}, Params: rest.ResumeScheduleParams{IfMatch: ifMatch(only)}, Body: r})
}

// Started is the job or the run that a schedule has started; the other one is nil.
type Started struct {
	Job *rest.JobView
	Run *rest.RunView
}

// UnmarshalJSON reads a job or a run: only a job has a job_id.
func (s *Started) UnmarshalJSON(text []byte) error {
	var is struct {
		JobID string `json:"job_id"`
		RunID string `json:"run_id"`
	}
	if err := json.Unmarshal(text, &is); err != nil {
		return err
	}
	*s = Started{}
	switch {
	case is.JobID != "":
		return json.Unmarshal(text, &s.Job)
	case is.RunID != "":
		return json.Unmarshal(text, &s.Run)
	}
	return fmt.Errorf("neither a job nor a run was started: %.100s", text)
}

// RunScheduleNow starts what a schedule does, now and once more than its calendar says.
func (c *Client) RunScheduleNow(ctx context.Context, name string, r rest.RunNowRequest) (Started, error) {
	return Call[Started](ctx, c, rest.RunScheduleNow, Request{Path: []string{name}, Body: r})
}

// PreviewSchedule returns the next count times of a schedule, 1 to 1,000.
func (c *Client) PreviewSchedule(ctx context.Context, name string, count int) (rest.PreviewAnswer, error) {
	return Call[rest.PreviewAnswer](ctx, c, rest.PreviewSchedule, Request{
		Path: []string{name}, Params: rest.PreviewScheduleParams{Count: &count}})
}

// PreviewCalendar returns the times of a calendar that no schedule has yet.
func (c *Client) PreviewCalendar(ctx context.Context, p rest.PreviewRequest) (rest.PreviewAnswer, error) {
	return Call[rest.PreviewAnswer](ctx, c, rest.PreviewCalendar, Request{Body: p})
}

// Occurrences iterates over the times of a schedule and the outcome of each: from now back, or forward
// with outcome pending.
func (c *Client) Occurrences(
	ctx context.Context, name string, filter *rest.ListOccurrencesParams,
) iter.Seq2[rest.OccurrenceView, error] {
	return list[rest.OccurrenceView](ctx, c, rest.ListOccurrences, Request{Path: []string{name}, Params: filter})
}

// Exclusions iterates over the exclusions by name.
func (c *Client) Exclusions(ctx context.Context) iter.Seq2[rest.ExclusionView, error] {
	return list[rest.ExclusionView](ctx, c, rest.ListExclusions, Request{})
}

// Exclusion returns an exclusion, [NotFound] if there is none.
func (c *Client) Exclusion(ctx context.Context, name string) (rest.ExclusionView, error) {
	return Call[rest.ExclusionView](ctx, c, rest.GetExclusion, Request{Path: []string{name}})
}

// PutExclusion creates or replaces an exclusion: days and times on which the schedules that name it do not run.
func (c *Client) PutExclusion(ctx context.Context, name string, e rest.ExclusionRequest) (rest.ExclusionView, error) {
	return Call[rest.ExclusionView](ctx, c, rest.PutExclusion, Request{Path: []string{name}, Body: e})
}

// DeleteExclusion deletes an exclusion that no schedule names.
func (c *Client) DeleteExclusion(ctx context.Context, name string) error {
	_, err := Call[struct{}](ctx, c, rest.DeleteExclusion, Request{Path: []string{name}})
	return err
}

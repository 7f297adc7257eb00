package timer

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"punctual/shared/message"
)

// maxRetries is AWS's own most; the timer's age ends them earlier.
const maxRetries = 185

// expression is the time of an entry: whole seconds, in UTC.
func expression(at time.Time) string { return at.UTC().Format("at(2006-01-02T15:04:05)") }

// target is what an entry does when it fires.
func (t *Timers) target(m message.Timer) *types.Target {
	target := &types.Target{
		Arn: aws.String(t.Target), RoleArn: aws.String(t.Role), Input: aws.String(m.Body),
		RetryPolicy: &types.RetryPolicy{
			MaximumEventAgeInSeconds: aws.Int32(int32(m.MaxAge / time.Second)),
			MaximumRetryAttempts:     aws.Int32(maxRetries),
		},
	}
	if t.DeadLetter != "" {
		target.DeadLetterConfig = &types.DeadLetterConfig{Arn: aws.String(t.DeadLetter)}
	}
	return target
}

const utc = "UTC"

func window() *types.FlexibleTimeWindow {
	return &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff}
}

func (t *Timers) creation(m message.Timer) *scheduler.CreateScheduleInput {
	return &scheduler.CreateScheduleInput{
		GroupName: aws.String(t.Group), Name: aws.String(m.Name), State: types.ScheduleStateEnabled,
		ScheduleExpression: aws.String(expression(m.At)), ScheduleExpressionTimezone: aws.String(utc),
		FlexibleTimeWindow: window(),
		Target:             t.target(m), ActionAfterCompletion: types.ActionAfterCompletionDelete,
	}
}

// replacement says everything that creation says: an update resets what it leaves out.
func (t *Timers) replacement(m message.Timer) *scheduler.UpdateScheduleInput {
	c := t.creation(m)
	return &scheduler.UpdateScheduleInput{
		GroupName: c.GroupName, Name: c.Name, State: c.State,
		ScheduleExpression: c.ScheduleExpression, ScheduleExpressionTimezone: c.ScheduleExpressionTimezone,
		FlexibleTimeWindow: c.FlexibleTimeWindow,
		Target:             c.Target, ActionAfterCompletion: c.ActionAfterCompletion,
	}
}

// same says whether an entry does what the timer wants: when, what, where, and for how long.
func (t *Timers) same(have *scheduler.GetScheduleOutput, m message.Timer) bool {
	if have.Target == nil || have.State == types.ScheduleStateDisabled ||
		aws.ToString(have.ScheduleExpression) != expression(m.At) {
		return false
	}
	want := t.target(m)
	return aws.ToString(have.Target.Input) == m.Body &&
		aws.ToString(have.Target.Arn) == *want.Arn && aws.ToString(have.Target.RoleArn) == *want.RoleArn &&
		deadLetter(have.Target) == deadLetter(want) &&
		have.Target.RetryPolicy != nil &&
		aws.ToInt32(have.Target.RetryPolicy.MaximumEventAgeInSeconds) == *want.RetryPolicy.MaximumEventAgeInSeconds
}

func deadLetter(t *types.Target) string {
	if t.DeadLetterConfig == nil {
		return ""
	}
	return aws.ToString(t.DeadLetterConfig.Arn)
}

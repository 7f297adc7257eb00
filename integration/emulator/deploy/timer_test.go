package deploy

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"

	"punctual/integration/story"
	"punctual/shared/aws/queue"
	"punctual/shared/contract"
	"punctual/shared/message"
)

// A job waits for its slice when it is due beyond a queue's delay. So that no test waits that long, the
// test reads the slice's timer and has it fire now, with a body that says that it is time. The firing
// that dispatch makes of it then waits in its queue like any other, and the jobs of other lanes have
// shown that such firings start.
func (d *deployment) timerLane(t *testing.T, a *story.API) {
	t.Helper()
	queues := queue.New(d.aws.Config(), contract.Env{Prefix: prefix}.QueueName)
	firings := contract.FiringQueue(contract.DefaultPool, "low") // no other test here uses it
	before := d.delayed(t, queues, firings)

	const ahead = contract.DirectLane + 50*time.Second
	v := a.Want(http.StatusAccepted, "POST", "/jobs", story.Object{"task": "echo", "delay": ahead.String(),
		"priority": "low"})
	id, due := v["job_id"].(string), story.At(t, v["due_at"])

	timers := scheduler.NewFromConfig(d.aws.Config())
	minute := due.Truncate(time.Minute).Format("2006-01-02T1504")
	var timer *scheduler.GetScheduleOutput
	await(t, "the job's slice has a timer", func() bool {
		timer = timerOf(t, timers, "s-"+minute+"-")
		return timer != nil
	})
	body, err := message.Decode[message.Dispatch](aws.ToString(timer.Target.Input))
	if err != nil {
		t.Fatal(err)
	}
	body.At = time.Time{}
	timer.Target.Input = aws.String(message.Encode(body))
	at, err := time.Parse("at(2006-01-02T15:04:05)", aws.ToString(timer.ScheduleExpression))
	if early := due.Sub(at); err != nil || early < contract.TimerLead || early > contract.TimerLead+time.Minute {
		t.Errorf("the timer fires at %s, %v; the job is due at %s", aws.ToString(timer.ScheduleExpression), err, due)
	}
	if _, err := timers.UpdateSchedule(t.Context(), &scheduler.UpdateScheduleInput{
		GroupName: timer.GroupName, Name: timer.Name, State: timer.State, FlexibleTimeWindow: timer.FlexibleTimeWindow,
		Target:                     timer.Target,
		ActionAfterCompletion:      timer.ActionAfterCompletion,
		ScheduleExpressionTimezone: timer.ScheduleExpressionTimezone,
		ScheduleExpression:         aws.String(time.Now().UTC().Format("at(2006-01-02T15:04:05)")),
	}); err != nil {
		t.Fatal(err)
	}
	await(t, "dispatch made a firing of the timer", func() bool { return d.delayed(t, queues, firings) > before })
	await(t, "the timer is gone", func() bool { return timerOf(t, timers, *timer.Name) == nil })
	a.Want(http.StatusOK, "POST", "/jobs/"+id+"/cancel", nil)
}

// await polls until something holds, for as long as a busy machine may take.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	const most = 3 * time.Minute
	for over := time.Now().Add(most); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(over) {
			t.Fatalf("after %s it is not so that %s", most, what)
		}
	}
}

func (d *deployment) delayed(t *testing.T, queues *queue.Queues, name string) int {
	t.Helper()
	depth, err := queues.Depth(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return depth.Delayed
}

// timerOf returns a timer whose name begins so, nil if there is none.
func timerOf(t *testing.T, timers *scheduler.Client, name string) *scheduler.GetScheduleOutput {
	t.Helper()
	pages := scheduler.NewListSchedulesPaginator(timers, &scheduler.ListSchedulesInput{GroupName: aws.String(prefix)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page.Schedules {
			if !strings.HasPrefix(aws.ToString(s.Name), name) {
				continue
			}
			one, err := timers.GetSchedule(t.Context(), &scheduler.GetScheduleInput{GroupName: s.GroupName,
				Name: s.Name})
			if err == nil && one.Target != nil { // it may be deleted meanwhile
				return one
			}
		}
	}
	return nil
}

package status_test

import (
	"testing"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/telemetry"
)

func TestStatus_RecognizesItsOwnWrite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		write   string
		outcome job.Outcome
		change  func(*job.Row)
		queue   string
		sent    int
	}{
		"a success":  {job.WriteSucceed, success(), nil, stagetest.FiringQueue, 0},
		"a retry":    {job.WriteRetry, failure(), nil, stagetest.FiringQueue, 1},
		"a snooze":   {job.WriteSnooze, job.Outcome{Kind: job.OutcomeSnoozed}, nil, stagetest.FiringQueue, 1},
		"a dead job": {job.WriteDie, failure(permanent), nil, contract.RedriveQueue, 1},
		"a failure of a stopped job": {job.WriteFinishStop, failure(), func(r *job.Row) { r.Stop = job.StopCancel },
			stagetest.FiringQueue, 0},
	} {
		bubble(t, name+" is settled once when the answer of its write is lost", func(b *bench) {
			r := b.running(0)
			if c.change != nil {
				c.change(&r)
				b.Put(r)
			}
			b.Twice(c.write)
			b.report(b.ended(r, 1, c.outcome))
			if got := b.Received(c.queue); len(got) != c.sent {
				b.Errorf("%d messages were sent, want %d", len(got), c.sent)
			}
			if n := b.Meter.Total(telemetry.JobsSettled); n != 1 {
				b.Errorf("it was counted %v times as settled", n)
			}
		})
	}
}

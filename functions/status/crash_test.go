package status_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/job"
)

//proof:of 170
func TestStatus_SettlesAReportAfterACrash(t *testing.T) {
	t.Parallel()
	large := success()
	large.Result = json.RawMessage(`"` + strings.Repeat("x", 5000) + `"`)
	long := failure(func(o *job.Outcome) { o.Error.Message = strings.Repeat("e", 900) })
	for name, c := range map[string]struct {
		outcome job.Outcome
		change  func(*job.Row)
		want    job.Status
		attempt int64
		queue   string // of the message that follows
		sends   bool   // whether there must be one
	}{
		"a success with a large result": {large, nil, job.Succeeded, 1, stagetest.FiringQueue, false},
		"a retry with a long error":     {long, nil, job.Scheduled, 2, stagetest.FiringQueue, true},
		"a dead job":                    {failure(permanent), nil, job.Dead, 1, contract.RedriveQueue, true},
		"a failure of a job with a stop": {failure(), func(r *job.Row) { r.Stop = job.StopCancel }, job.Cancelled, 1,
			stagetest.FiringQueue, false},
	} {
		for _, lost := range []bool{false, true} {
			bubble(t, fmt.Sprintf("%s, the last answer lost: %v", name, lost), func(b *bench) {
				points := 0
				for n := 0; ; n++ {
					r := b.running(n)
					if c.change != nil {
						c.change(&r)
						b.Put(r)
					}
					body := b.ended(r, 1, c.outcome)
					asked := b.DieAt(n, lost)
					failed := b.handle(1, body)
					b.World.SetFaults(nil)
					if *asked <= n { // it needs no more calls
						break
					}
					points++
					if after := b.Row(r.Key); !after.Status.Final() && after.WakeAt.IsZero() {
						b.Fatalf("crashed at call %d: nothing brings the job back", n)
					}
					if failed == "" {
						b.Fatalf("crashed at call %d: the report is gone", n)
					}
					sent := len(b.Received(c.queue))
					if failed = b.handle(2, body); failed != "" {
						b.Fatalf("crashed at call %d: it goes on failing", n)
					}
					after := b.Row(r.Key)
					if after.Status != c.want || after.Attempt != c.attempt || len(after.Attempts) != 1 {
						b.Errorf("crashed at call %d: it is %s at attempt %d, with %d attempts noted", n, after.Status,
							after.Attempt, len(after.Attempts))
					}
					if sent += len(b.Received(c.queue)); (sent > 0) != c.sends {
						b.Errorf("crashed at call %d: %d messages were sent to %s", n, sent, c.queue)
					}
				}
				if points < 2 {
					b.Errorf("%d points of crash", points)
				}
			})
		}
	}
}

package worker

import (
	"testing"
	"time"

	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/telemetry"
)

func TestWorker_RunsAJobOnceWhenItIsDue(t *testing.T) {
	within(t, func(b *bench) {
		b.start("a")
		r := b.put(3700*time.Millisecond, func(r *job.Row) { r.Payload = `{"n":1}` })
		b.fire(r, time.Second)
		b.sleep(10 * time.Second)

		if len(b.runs) != 1 {
			t.Fatalf("it ran %d times", len(b.runs))
		}
		if late := b.at[0].Sub(r.DueAt); late < 0 || late > time.Millisecond {
			t.Errorf("it started %s after it was due", late)
		}
		w := b.runs[0]
		if w.Key != r.Key || w.HandlerKey != r.ID || w.Attempt != 1 || w.Token != 1 || string(w.Payload) != `{"n":1}` ||
			!w.DueAt.Equal(r.DueAt) {
			t.Errorf("its executor saw %+v", w)
		}
		reports := b.reports()
		if len(reports) != 1 || reports[0].Kind != message.Ended || reports[0].Attempt != 1 ||
			reports[0].Version != 1 || reports[0].Token != 1 || reports[0].Outcome != nil {
			t.Fatalf("reported %+v", reports)
		}
		c := b.Claim(r.Key)
		if c.Outcome == nil {
			t.Fatalf("its claim is %+v", c)
		}
		o := c.Outcome
		if o.Kind != job.OutcomeSucceeded || string(o.Result) != `{"n":1}` || o.Worker != "a" ||
			!o.StartedAt.Equal(r.DueAt) {
			t.Errorf("its outcome is %+v", o)
		}
		if d := b.depth(); d != (message.Depth{}) {
			t.Errorf("its message is still there: %+v", d)
		}
		if n := b.Meter.Total(telemetry.StartLateness); n != 1 {
			t.Errorf("its lateness was observed %v times", n)
		}
	})
}

package decide_test

import (
	"testing"
	"time"

	"punctual/functions/engine/decide"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/telemetry"
)

func TestArming(t *testing.T) {
	t.Parallel()
	// plans are n firings, due a minute apart from that on.
	plans := func(n int, from time.Duration) (plans []job.Plan) {
		for i := range n {
			due := time.Now().Add(from + time.Duration(i)*time.Minute)
			plans = append(plans, job.Arm(jobtest.Row(i, due, time.Now()).Firing(), time.Now()))
		}
		return plans
	}
	armer := func(b *bundle) decide.Armer {
		return decide.Armer{Queue: b.w.Queues(), Timers: b.w.Timers(), Meter: b.meter, Lane: "direct"}
	}
	bubble(t, "resends nothing and loses nothing when a batch is half sent", func(b *bundle) {
		b.w.SetFaults(func(c memory.Call) memory.Fault {
			if c.Op == memory.QueueSend && c.N == 1 {
				return memory.Fault{Entries: map[int]fault.Kind{3: fault.Throttled, 7: fault.Invalid}}
			}
			return memory.Fault{}
		})
		errs := armer(b).Do(b.Context(), plans(10, 0))
		for i, err := range errs {
			want := map[int]fault.Kind{3: fault.Throttled, 7: fault.Invalid}[i]
			if fault.KindOf(err) != want {
				b.Errorf("plan %d: %v, want %q", i, err, want)
			}
		}
		if sent := b.meter.Total(telemetry.FiringsSent); sent != 8 {
			b.Errorf("counted %v sent", sent)
		}
		depth, _ := b.w.Queues().Depth(b.Context(), firingQueue)
		if depth.Visible+depth.Delayed != 8 {
			b.Errorf("the queue holds %+v", depth)
		}
	})
	bubble(t, "of one queue that fails says so for its own plans alone", func(b *bundle) {
		b.failSends(firingQueue)
		all := plans(2, 0)
		other := jobtest.Row(9, time.Now(), time.Now(), func(r *job.Row) { r.Priority = job.Critical })
		all = append(all, job.Arm(other.Firing(), time.Now()))
		errs := armer(b).Do(b.Context(), all)
		if errs[0] == nil || errs[1] == nil || errs[2] != nil {
			b.Errorf("got %v", errs)
		}
	})
	bubble(t, "arms what is due first, first", func(b *bundle) {
		all := plans(15, contract.DirectLane+time.Minute)
		for i := range len(all) / 2 {
			all[i], all[len(all)-1-i] = all[len(all)-1-i], all[i]
		}
		var order []string
		b.w.SetFaults(func(c memory.Call) memory.Fault {
			order = append(order, c.Name)
			return memory.Fault{}
		})
		oneByOne := armer(b)
		oneByOne.TimersAtOnce = 1
		for _, err := range oneByOne.Do(b.Context(), all) {
			if err != nil {
				b.Fatal(err)
			}
		}
		for i := range order {
			if order[i] != all[len(all)-1-i].Arm.Name {
				b.Fatalf("timer %d was not the one due %d minutes ahead", i, i)
			}
		}
		if armed := b.meter.Total(telemetry.TimersArmed); armed != 15 {
			b.Errorf("counted %v armed", armed)
		}
	})
	bubble(t, "again after an answer that was lost is success, and one timer", func(b *bundle) {
		b.w.SetFaults(func(c memory.Call) memory.Fault { return memory.Fault{Lost: c.Op == memory.TimerArm && c.N == 1} })
		all := plans(1, 20*time.Minute)
		if errs := armer(b).Do(b.Context(), all); !fault.Retryable(errs[0]) {
			b.Fatalf("got %v", errs)
		}
		if errs := armer(b).Do(b.Context(), all); errs[0] != nil {
			b.Fatal(errs)
		}
		if armed := b.w.Timers().Armed(); len(armed) != 1 {
			b.Errorf("%d timers", len(armed))
		}
	})
	bubble(t, "gives every firing its tenant as its group", func(b *bundle) {
		armer(b).Do(b.Context(), plans(1, 0))
		if got := b.drain(firingQueue); len(got) != 1 || got[0].Group != jobtest.Tenant {
			b.Errorf("got %+v", got)
		}
	})
}

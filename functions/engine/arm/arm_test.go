package arm_test

import (
	"testing"
	"time"

	"punctual/functions/engine/arm"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/telemetry"
)

func TestArmer_ArmsAndSends(t *testing.T) {
	t.Parallel()
	// plans are n firings, due a minute apart from that on.
	plans := func(n int, from time.Duration) (plans []job.Plan) {
		for i := range n {
			due := time.Now().Add(from + time.Duration(i)*time.Minute)
			plans = append(plans, job.Arm(jobtest.Row(i, due, time.Now()).Firing(), time.Now()))
		}
		return plans
	}
	armer := func(b *stagetest.Setup) arm.Armer {
		return arm.Armer{Queue: b.World.Queues(), Timers: b.World.Timers(), Log: telemetry.Silent(), Meter: b.Meter}
	}
	stagetest.Bubble(t, "resends nothing and loses nothing when a batch is half sent", memory.Options{}, func(b *stagetest.Setup) {
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			if c.Op == memory.QueueSend && c.N == 1 {
				return memory.Fault{Entries: map[int]fault.Kind{3: fault.Throttled, 7: fault.Invalid}}
			}
			return memory.Fault{}
		})
		errs := armer(b).Do(b.Context(), "direct", plans(10, 0))
		for i, err := range errs {
			want := map[int]fault.Kind{3: fault.Throttled, 7: fault.Invalid}[i]
			if fault.KindOf(err) != want {
				b.Errorf("plan %d: %v, want %q", i, err, want)
			}
		}
		if sent := b.Meter.Total(telemetry.FiringsSent); sent != 8 {
			b.Errorf("counted %v sent", sent)
		}
		depth, _ := b.World.Queues().Depth(b.Context(), stagetest.FiringQueue)
		if depth.Visible+depth.Delayed != 8 {
			b.Errorf("the queue holds %+v", depth)
		}
	})
	stagetest.Bubble(t, "of one queue that fails says so for its own plans alone", memory.Options{}, func(b *stagetest.Setup) {
		b.Fail(memory.QueueSend, stagetest.FiringQueue)
		all := plans(2, 0)
		other := jobtest.Row(9, time.Now(), time.Now(), func(r *job.Row) { r.Priority = job.Critical })
		all = append(all, job.Arm(other.Firing(), time.Now()))
		errs := armer(b).Do(b.Context(), "direct", all)
		if errs[0] == nil || errs[1] == nil || errs[2] != nil {
			b.Errorf("got %v", errs)
		}
	})
	stagetest.Bubble(t, "arms what is due first, first", memory.Options{}, func(b *stagetest.Setup) {
		all := plans(15, contract.DirectLane+time.Minute)
		for i := range len(all) / 2 {
			all[i], all[len(all)-1-i] = all[len(all)-1-i], all[i]
		}
		var order []string
		b.World.SetFaults(func(c memory.Call) memory.Fault {
			order = append(order, c.Name)
			return memory.Fault{}
		})
		oneByOne := armer(b)
		oneByOne.TimersAtOnce = 1
		for _, err := range oneByOne.Do(b.Context(), "direct", all) {
			if err != nil {
				b.Fatal(err)
			}
		}
		for i := range order {
			if order[i] != all[len(all)-1-i].Arm.Name {
				b.Fatalf("timer %d was not the one due %d minutes ahead", i, i)
			}
		}
		if armed := b.Meter.Total(telemetry.TimersArmed); armed != 15 {
			b.Errorf("counted %v armed", armed)
		}
	})
	stagetest.Bubble(t, "again after an answer that was lost is success, and one timer", memory.Options{}, func(b *stagetest.Setup) {
		b.World.SetFaults(func(c memory.Call) memory.Fault { return memory.Fault{Lost: c.Op == memory.TimerArm && c.N == 1} })
		all := plans(1, 20*time.Minute)
		if errs := armer(b).Do(b.Context(), "direct", all); !fault.Retryable(errs[0]) {
			b.Fatalf("got %v", errs)
		}
		if errs := armer(b).Do(b.Context(), "direct", all); errs[0] != nil {
			b.Fatal(errs)
		}
		if armed := b.World.Timers().Armed(); len(armed) != 1 {
			b.Errorf("%d timers", len(armed))
		}
	})
	stagetest.Bubble(t, "gives every firing its tenant as its group", memory.Options{}, func(b *stagetest.Setup) {
		armer(b).Do(b.Context(), "direct", plans(1, 0))
		if got := b.Received(stagetest.FiringQueue); len(got) != 1 || got[0].Group != jobtest.Tenant {
			b.Errorf("got %+v", got)
		}
	})
}

package arm_test

import (
	"testing"
	"time"

	"punctual/functions/engine/arm"
	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/telemetry"
)

func bubble(t *testing.T, name string, do func(b *stagetest.Bench)) {
	stagetest.Bubble(t, name, memory.Options{}, do)
}

func TestArmer_SendsFirings(t *testing.T) {
	t.Parallel()
	// firings are n firings, due a minute apart from now on.
	firings := func(n int) (list []job.Firing) {
		for i := range n {
			due := time.Now().Add(time.Duration(i) * time.Minute)
			list = append(list, jobtest.Row(i, due, time.Now()).Firing())
		}
		return list
	}
	armer := func(b *stagetest.Bench) arm.Armer {
		return arm.Armer{Queue: b.World.Queues(), Log: telemetry.Silent(), Meter: b.Meter}
	}
	bubble(t, "returns an error for each firing of a batch that was not sent", func(b *stagetest.Bench) {
		b.FailEntries(map[int]fault.Kind{3: fault.Throttled, 7: fault.Invalid})
		errs := armer(b).FireAll(b.Context(), "direct", firings(10), time.Now())
		for i, err := range errs {
			want := map[int]fault.Kind{3: fault.Throttled, 7: fault.Invalid}[i]
			if fault.KindOf(err) != want {
				b.Errorf("firing %d: %v, want %q", i, err, want)
			}
		}
		if sent := b.Meter.Total(telemetry.FiringsSent); sent != 8 {
			b.Errorf("counted %v sent", sent)
		}
		if n := b.Depth(stagetest.FiringQueue); n != 8 {
			b.Errorf("the queue holds %d", n)
		}
	})
	bubble(t, "a queue that fails returns errors for its own firings only", func(b *stagetest.Bench) {
		b.Fail(stagetest.To(memory.QueueSend, stagetest.FiringQueue))
		other := jobtest.Row(9, time.Now(), time.Now(), func(r *job.Row) { r.Priority = job.Critical })
		errs := armer(b).FireAll(b.Context(), "direct", append(firings(2), other.Firing()), time.Now())
		if errs[0] == nil || errs[1] == nil || errs[2] != nil {
			b.Errorf("got %v", errs)
		}
		if sent := b.Meter.Total(telemetry.FiringsSent); sent != 1 {
			b.Errorf("counted %v sent", sent)
		}
	})
	bubble(t, "sends the earliest due first", func(b *stagetest.Bench) {
		all := firings(12)
		for i := range len(all) / 2 {
			all[i], all[len(all)-1-i] = all[len(all)-1-i], all[i]
		}
		// the second batch fails, with the two that are due last
		second := func(c memory.Call) bool { return c.Op == memory.QueueSend && c.N == 2 }
		b.Fault(second, memory.Fault{Fail: fault.Throttled})
		errs := armer(b).FireAll(b.Context(), "direct", all, time.Now())
		for i, err := range errs {
			if late := i < 2; (err != nil) != late {
				b.Errorf("firing %d: %v", i, err)
			}
		}
	})
	bubble(t, "sends each firing in the group of its tenant", func(b *stagetest.Bench) {
		armer(b).FireAll(b.Context(), "direct", firings(1), time.Now())
		if got := b.Received(stagetest.FiringQueue); len(got) != 1 || got[0].Group != jobtest.Tenant {
			b.Errorf("got %+v", got)
		}
	})
}

func TestSlices_AskForASlice(t *testing.T) {
	t.Parallel()
	some := func() []horizon.Slice {
		at := time.Now().Truncate(time.Minute).Add(20 * time.Minute)
		return []horizon.Slice{{Minute: at, Shard: 1}, {Minute: at, Shard: 2}, {Minute: at, Shard: 1}}
	}
	bubble(t, "asks once for a slice, with the time at which it is to be read", func(b *stagetest.Bench) {
		s := arm.Slices{Queue: b.World.Queues()}
		for range 2 {
			for n, err := range s.Ask(b.Context(), some()) {
				if err != nil {
					b.Errorf("slice %d: %v", n, err)
				}
			}
		}
		got := b.Received(contract.DispatchQueue)
		if len(got) != 2 {
			b.Fatalf("%d messages for 2 slices", len(got))
		}
		d, err := message.Decode[message.Dispatch](got[0].Body)
		if err != nil || d.Slice != some()[0].String() || !d.At.Equal(some()[0].Minute.Add(-contract.TimerLead)) {
			b.Errorf("asked by %s, %v", got[0].Body, err)
		}
	})
	bubble(t, "asks once more after a failure, which it returns for every job of the slice", func(b *stagetest.Bench) {
		s := arm.Slices{Queue: b.World.Queues()}
		b.FailEntries(map[int]fault.Kind{0: fault.Throttled})
		errs := s.Ask(b.Context(), some())
		if fault.KindOf(errs[0]) != fault.Throttled || errs[1] != nil || fault.KindOf(errs[2]) != fault.Throttled {
			b.Errorf("got %v", errs)
		}
		if s.Asked(some()[0]) || !s.Asked(some()[1]) {
			b.Error("it remembers the wrong one")
		}
		s.Ask(b.Context(), some())
		if got := b.Received(contract.DispatchQueue); len(got) != 2 {
			b.Errorf("%d messages", len(got))
		}
	})
}

func TestRecent_RemembersTheNewest(t *testing.T) {
	t.Parallel()
	var r arm.Recent
	names := make([]string, 120_000)
	for n := range names {
		names[n] = time.Duration(n).String()
		r.Add(names[n])
	}
	for _, name := range names[70_000:] {
		if !r.Has(name) {
			t.Fatalf("%s is forgotten", name)
		}
	}
	if r.Has(names[0]) {
		t.Error("it remembers everything")
	}
}

package alarms

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"punctual/functions/forecast"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/process"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/workers/system"
	"punctual/workers/worker"
)

// bench is a deployment that runs over the memory implementation, each stage with a meter of its own as in AWS, and the
// alarms that watch it.
type bench struct {
	*testing.T
	alarms []alarm
	watch  *cloudwatch
	broken map[string]*atomic.Bool // stages whose calls of tables and queues all fail
	meters map[string]*telemetry.Meter
}

// stages are those that have ports and a meter of their own.
var stages = []string{"stream", "promoter", "sweeper", "dispatch", "worker", "status", "redrive", "forecast"}

// errBroken is what a broken stage meets.
var errBroken = fault.New(fault.Unavailable, nil, "calling a service that is down")

// table fails while its stage is broken.
type table struct {
	store.Table
	broken *atomic.Bool
}

func (t table) err() error {
	if t.broken.Load() {
		return errBroken
	}
	return nil
}

func (t table) Get(ctx context.Context, ref item.Ref) (item.Item, error) {
	if err := t.err(); err != nil {
		return nil, err
	}
	return t.Table.Get(ctx, ref)
}

func (t table) GetMany(ctx context.Context, refs []item.Ref) ([]item.Item, error) {
	if err := t.err(); err != nil {
		return nil, err
	}
	return t.Table.GetMany(ctx, refs)
}

func (t table) Write(ctx context.Context, w item.Write) (item.Item, error) {
	if err := t.err(); err != nil {
		return nil, err
	}
	return t.Table.Write(ctx, w)
}

func (t table) Commit(ctx context.Context, writes ...item.Write) error {
	return errors.Join(t.err(), t.Table.Commit(ctx, writes...))
}

func (t table) Query(ctx context.Context, q item.Query) (item.Page, error) {
	if err := t.err(); err != nil {
		return item.Page{}, err
	}
	return t.Table.Query(ctx, q)
}

func (t table) Identity(ctx context.Context, name string) (item.Identity, error) {
	if err := t.err(); err != nil {
		return item.Identity{}, err
	}
	return t.Table.Identity(ctx, name)
}

// queues fail to receive and to send while their stage is broken.
type queues struct {
	message.Queues
	broken *atomic.Bool
}

func (q queues) Receive(ctx context.Context, queue string, most int, wait, hide time.Duration) (
	[]message.Delivery, error) {
	if q.broken.Load() {
		return nil, errBroken
	}
	return q.Queues.Receive(ctx, queue, most, wait, hide)
}

func (q queues) Send(ctx context.Context, queue string, out ...message.Outgoing) error {
	if q.broken.Load() {
		return errBroken
	}
	return q.Queues.Send(ctx, queue, out...)
}

// play runs prod in virtual time. Stages in cold fail from the first call on. do breaks others and waits.
func play(t *testing.T, name string, cold []string, do func(b *bench)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			world := memory.New(memory.Options{})
			defer world.Close()
			b := &bench{T: t, alarms: load(t, "prod"), watch: newCloudwatch(), broken: map[string]*atomic.Bool{},
				meters: map[string]*telemetry.Meter{}}
			for _, stage := range append(stages, "source", "api") {
				b.broken[stage], b.meters[stage] = new(atomic.Bool), new(telemetry.Meter)
				b.broken[stage].Store(slices.Contains(cold, stage))
			}
			silent := func(string) *slog.Logger { return telemetry.Silent() }
			whole := system.Ports{Table: world.Table(), Blobs: world.Blobs(), Stream: world.Table(),
				Queues: world.Queues(), Timers: world.Timers(), Secrets: world.Secrets(), Clock: clock.System{},
				Log: silent}
			whole.Of = func(stage string) system.Ports {
				p := whole
				p.Of, p.Meter = nil, b.meters[stage]
				p.Table = table{world.Table(), b.broken[stage]}
				p.Queues = queues{world.Queues(), b.broken[stage]}
				return p
			}
			sys := system.Compose(whole, system.Options{Shards: 2, Registry: worker.NewRegistry(), NoAPI: true,
				Worker:     worker.Options{Name: "w", Slots: 10, Pools: contract.Pools},
				Heartbeats: contract.Pools})
			demand := forecast.New(
				forecast.Deps{Store: store.New(table{world.Table(), b.broken["forecast"]}, world.Blobs()),
					Base: process.Base{Meter: b.meters["forecast"], Shards: 2}},
			)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- sys.Run(ctx) }()
			var clock sync.WaitGroup
			clock.Go(func() { b.minutes(ctx, sys, demand) })
			do(b)
			stop()
			clock.Wait()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	})
}

// minutes calls the look ahead, and gathers what all processes measured, once a minute.
func (b *bench) minutes(ctx context.Context, sys *system.System, demand *forecast.Stage) {
	for ctx.Err() == nil {
		time.Sleep(55 * time.Second)
		_, _ = demand.Handle(ctx, nil) // a failed pass shows by its missing count
		sys.Gauge()
		for _, meter := range b.meters {
			var lines bytes.Buffer
			if err := meter.Flush(&lines, time.Now()); err != nil {
				b.Error(err)
			}
			b.watch.take(b.T, lines.Bytes())
		}
		time.Sleep(5 * time.Second)
	}
}

// rings waits for minutes and returns the alarms that were on at the end of any of them.
func (b *bench) rings(minutes int) (names []string) {
	for range minutes {
		time.Sleep(time.Minute)
		names = append(names, b.watch.on(b.alarms, time.Now())...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// settle waits until heartbeats run; a deployment that begins has an alarm or two on until then.
func (b *bench) settle() {
	b.Helper()
	time.Sleep(50*time.Minute + 10*time.Second)
	if on := b.rings(10); len(on) != 0 {
		b.Fatalf("a healthy deployment rings %q", on)
	}
}

// requireRings fails unless each of these alarms is on within five minutes.
func (b *bench) requireRings(want ...string) {
	b.Helper()
	on := b.rings(5)
	for _, name := range want {
		if !slices.Contains(on, name) {
			b.Errorf("within five minutes %s did not ring; %q did", name, on)
		}
	}
}

//proof:of F83
func TestAlarms_RingForWhatFails(t *testing.T) {
	t.Parallel()
	for _, pass := range []struct{ stage, alarm string }{
		{"promoter", "promoter-silent"}, {"sweeper", "sweeper-silent"}, {"forecast", "prewarm-silent"},
	} {
		play(t, "a warm "+pass.stage+" that fails at every call", nil, func(b *bench) {
			b.settle()
			b.broken[pass.stage].Store(true)
			b.requireRings(pass.alarm)
		})
		play(t, "a cold "+pass.stage+" that fails at every call", []string{pass.stage}, func(b *bench) {
			b.requireRings(pass.alarm)
		})
	}
	play(t, "workers that cannot receive", nil, func(b *bench) {
		b.settle()
		b.broken["worker"].Store(true)
		b.requireRings("heartbeat-short", "heartbeat-long")
		b.requireRings("workers-silent-short", "workers-silent-long")
	})
	play(t, "a consumer that fails each record", nil, func(b *bench) {
		b.settle()
		b.broken["status"].Store(true)
		b.requireRings("status-records-failed", "heartbeat-short", "heartbeat-long")
	})
	play(t, "a dispatch that fails each record: the sweeper fires, late", nil, func(b *bench) {
		b.settle()
		b.broken["dispatch"].Store(true)
		b.requireRings("dispatch-records-failed", "heartbeat-short", "heartbeat-long")
	})
}

// While a deployment is held by its setting, no pass, no worker and no heartbeat runs.
func TestAlarms_OfAHeldDeploymentAreQuietButOne(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 3, 28, 12, 0, 0, 0, time.UTC)
	if on := newCloudwatch().on(load(t, "held"), now); !slices.Equal(on, []string{"held"}) {
		t.Errorf("%q ring while nothing runs; want held alone", on)
	}
	on := newCloudwatch().on(load(t, "prod"), now)
	for _, want := range []string{"promoter-silent", "sweeper-silent", "heartbeat-short", "workers-silent-short"} {
		if !slices.Contains(on, want) {
			t.Errorf("%s is off although nothing runs, and nobody holds it; %q ring", want, on)
		}
	}
}

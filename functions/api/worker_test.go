package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/contract"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

func TestWorkers_AreListedWhileTheyNoteThatTheyWork(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t), context.Background()
	see := func(w store.Worker, ago time.Duration) {
		t.Helper()
		w.StartedAt, w.SeenAt = noon.Add(-time.Hour), noon.Add(-ago)
		b.Must(b.Store.SeeWorker(ctx, w))
	}
	see(store.Worker{Name: "b", Pool: "short", Version: "v1", Slots: 25, Busy: 3}, time.Second)
	see(store.Worker{Name: "a", Pool: "short", Slots: 4, Draining: true}, contract.WorkerGoneAfter-time.Millisecond)
	see(store.Worker{Name: "b", Pool: "long", Slots: 2}, 0)
	see(store.Worker{Name: "lost", Pool: "short"}, contract.WorkerGoneAfter)
	see(store.Worker{Name: "ended", Pool: "short"}, 0)
	b.Must(b.Store.EndWorker(ctx, "ended", "short", noon))
	want := `"items":[` +
		`{"worker":"b","pool":"long","version":"","started_at":"2027-03-01T11:00:00.000Z","seen_at":"2027-03-01T12:00:00.000Z","slots":2,"busy":0,"draining":false},` +
		`{"worker":"a","pool":"short","version":"","started_at":"2027-03-01T11:00:00.000Z","seen_at":"2027-03-01T11:58:00.001Z","slots":4,"busy":0,"draining":true},` +
		`{"worker":"b","pool":"short","version":"v1","started_at":"2027-03-01T11:00:00.000Z","seen_at":"2027-03-01T11:59:59.000Z","slots":25,"busy":3,"draining":false}]`
	if r := b.want(t, 200, "GET", "/v1/workers", ""); !strings.Contains(r.text, want) {
		t.Errorf("got %s\nwant %s", r.text, want)
	}
}

func TestWorkers_ShowHowFullTheQueuesAre(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t), context.Background()
	b.Must(b.World.Queues().Send(ctx, stagetest.FiringQueue, message.Outgoing{Body: "now"},
		message.Outgoing{Body: "later", Delay: time.Minute}))
	b.clock.set(noon.Add(10 * time.Second))
	r := b.want(t, 200, "GET", "/v1/workers", "")
	for _, want := range []string{
		`"items":[]`,
		`"queues":[{"pool":"short","priority":"critical","waiting":0,"delayed":0,"oldest_s":null}`,
		`{"pool":"short","priority":"normal","waiting":1,"delayed":1,"oldest_s":10}`,
		`{"pool":"long","priority":"low","waiting":0,"delayed":0,"oldest_s":null}]`,
	} {
		if !strings.Contains(r.text, want) {
			t.Errorf("%s does not have %s", r.text, want)
		}
	}
}

func TestWorkers_WantTheScopeAdminAndTheQueues(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.who.Scopes = []tenant.Scope{tenant.Read, tenant.Write}
	b.want(t, 403, "GET", "/v1/workers", "")
	b.who = all("acme")
	b.Fault(stagetest.Every(memory.QueueDepth), memory.Fault{Fail: "unavailable"})
	b.want(t, 503, "GET", "/v1/workers", "")
}

package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"punctual/functions/api"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/process"
	"punctual/shared/schedule"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// askedTwice repeats each put of a row, like an SDK that lost the first answer.
type askedTwice struct{ store.Table }

func (t askedTwice) Write(ctx context.Context, w item.Write) (item.Item, error) {
	if w.Name == job.WriteAccept {
		if _, err := t.Table.Write(ctx, w); err != nil {
			return nil, err
		}
	}
	return t.Table.Write(ctx, w)
}

// Commit repeats each change of a schedule.
func (t askedTwice) Commit(ctx context.Context, writes ...item.Write) error {
	if strings.HasPrefix(writes[0].Name, "schedule.") && writes[0].Name != schedule.WriteAdvance {
		if err := t.Table.Commit(ctx, writes...); err != nil {
			return err
		}
	}
	return t.Table.Commit(ctx, writes...)
}

func TestSchedules_AreChangedWhenTheAnswerToTheFirstTryIsLost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.handler = api.New(api.Deps{Store: store.New(askedTwice{b.World.Table()}, b.World.Blobs()),
		Queues: b.World.Queues(), Timers: b.World.Timers(), Base: process.Base{Clock: b.clock}})
	for n, c := range []struct {
		status             int
		method, path, body string
	}{
		{201, "PUT", "", daily}, {200, "PATCH", "", `{"overlap":"skip"}`}, {200, "POST", "/pause", ""},
		{200, "POST", "/resume", ""}, {204, "DELETE", "", ""}, {201, "PUT", "", daily},
	} {
		b.want(t, c.status, c.method, "/v1/schedules/s"+c.path, c.body)
		if s := b.schedule(t, "s"); s.Epoch != int64(n+1) {
			t.Fatalf("after %s %s the epoch is %d", c.method, c.path, s.Epoch)
		}
	}
}

func TestCreateJob_AcceptsWhenTheAnswerToTheFirstTryIsLost(t *testing.T) {
	t.Parallel()
	world := memory.New(memory.Options{})
	t.Cleanup(world.Close)
	rest := api.New(api.Deps{Store: store.New(askedTwice{world.Table()}, world.Blobs()), Queues: world.Queues(),
		Timers: world.Timers()})
	r := httptest.NewRequest(http.MethodPost, "/v1/jobs", strings.NewReader(`{"task":"echo"}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	rest.ServeHTTP(w, r.WithContext(api.WithIdentity(r.Context(),
		tenant.Identity{Tenant: "acme", Scopes: []tenant.Scope{tenant.Write}})))
	if w.Code != http.StatusAccepted {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
}

package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"punctual/functions/api"
	"punctual/shared/item"
	"punctual/shared/memory"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// askedTwice repeats each put of a row, as an SDK does when the first answer was lost.
type askedTwice struct{ store.Table }

func (t askedTwice) Write(ctx context.Context, w item.Write) (item.Item, error) {
	if w.Name == "row.accept" {
		if _, err := t.Table.Write(ctx, w); err != nil {
			return nil, err
		}
	}
	return t.Table.Write(ctx, w)
}

func TestAPutThatMeetsItsOwnLostFirstTryIsAccepted(t *testing.T) {
	t.Parallel()
	world := memory.New(memory.Options{})
	t.Cleanup(world.Close)
	rest := api.New(api.Deps{Store: store.New(askedTwice{world.Table()}, world.Blobs()), Queues: world.Queues(), Timers: world.Timers()})
	r := httptest.NewRequest(http.MethodPost, "/v1/jobs", strings.NewReader(`{"task":"echo"}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	rest.ServeHTTP(w, r.WithContext(api.WithIdentity(r.Context(), tenant.Identity{Tenant: "acme", Scopes: []tenant.Scope{tenant.Write}})))
	if w.Code != http.StatusAccepted {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
}

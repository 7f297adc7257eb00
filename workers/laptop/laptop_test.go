package laptop

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"punctual/functions/api"
	"punctual/shared/memory"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

func TestRoutes_ServesMetricsAndTheAPI(t *testing.T) {
	t.Parallel()
	world := memory.New(memory.Options{})
	t.Cleanup(world.Close)
	rest := api.New(api.Deps{Store: store.New(world.Table(), world.Blobs()), Queues: world.Queues(),
		Timers: world.Timers()})
	h := routes(rest, new(telemetry.Meter), "localhost:8080")
	for _, c := range []struct {
		method, target, host string
		status               int
		kind                 string
	}{
		{"GET", "/metrics", "localhost:8080", 200, "text/plain"},
		{"POST", "/metrics", "localhost:8080", 404, "application/problem+json"},
		{"GET", "/v1/whoami", "localhost:8080", 200, "application/json"},
		{"GET", "/v1/jobs//", "localhost:8080", 404, "application/problem+json"},
		{"GET", "//v1/jobs", "localhost:8080", 404, "application/problem+json"},
		{"GET", "/v1/../v1/jobs", "localhost:8080", 404, "application/problem+json"},
		{"GET", "/metrics", "evil.example", 403, "application/problem+json"},
		{"GET", "/v1/whoami", "evil.example", 403, "application/problem+json"},
	} {
		r := httptest.NewRequest(c.method, "http://"+c.host+c.target, http.NoBody)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if kind := w.Header().Get("Content-Type"); w.Code != c.status || !strings.HasPrefix(kind, c.kind) {
			t.Errorf("%s %s at %s: %d %s, want %d %s", c.method, c.target, c.host, w.Code, kind, c.status, c.kind)
		}
	}
}

func TestListen_NamesAnotherPortWhereOneIsInUse(t *testing.T) {
	t.Parallel()
	first, err := listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Close() })
	addr := first.Addr().(*net.TCPAddr)
	_, err = listen(addr.String())
	next := fmt.Sprintf("punctual serve --port %d, or make run ADDR=127.0.0.1:%[1]d", addr.Port%65535+1)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("uses port %d of 127.0.0.1", addr.Port)) ||
		!strings.Contains(err.Error(), next) {
		t.Errorf("%v, want %q", err, next)
	}
}

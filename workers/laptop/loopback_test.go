package laptop

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestLoopbackOnly_AnswersOnlyTheMachineItself(t *testing.T) {
	t.Parallel()
	h := loopbackOnly("127.0.0.1:8080", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "r")
		w.WriteHeader(http.StatusOK)
	}))
	for _, c := range []struct {
		host, origin string
		status       int
	}{
		{"localhost:8080", "", 200}, {"127.0.0.1:8080", "", 200}, {"[::1]:8080", "", 200},
		{"localhost:8080", "http://localhost:8080", 200},
		{"evil.example:8080", "", 403}, {"localhost:8081", "", 403}, {"localhost", "", 403},
		{"127.0.0.2:8080", "", 403}, {"", "", 403}, {"localhost:8080.evil.example", "", 403},
		{"localhost:8080", "http://evil.example", 403}, {"localhost:8080", "http://localhost:3000", 403},
		{"localhost:8080", "https://localhost:8080", 403}, {"localhost:8080", "null", 403},
		{"localhost:8080", "http://127.0.0.1:8080", 403},
	} {
		r := httptest.NewRequest(http.MethodGet, "/v1/health", nil)
		r.Host = c.host
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status || w.Header().Get("X-Request-Id") == "" || c.status == 403 &&
			!strings.Contains(w.Body.String(), `"code":"forbidden"`) {
			t.Errorf("Host %q, Origin %q: %d %s", c.host, c.origin, w.Code, w.Body)
		}
	}
	for from, status := range map[string]int{"cross-site": 403, "same-site": 403, "same-origin": 200, "none": 200} {
		r := httptest.NewRequest(http.MethodGet, "/v1/health", nil)
		r.Host = "localhost:8080"
		r.Header.Set("Sec-Fetch-Site", from)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != status {
			t.Errorf("Sec-Fetch-Site %s: %d %s", from, w.Code, w.Body)
		}
	}
}

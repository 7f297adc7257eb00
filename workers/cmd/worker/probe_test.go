package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"

	"punctual/shared/telemetry"
)

func TestProbes_TellAWorkerThatIsNotReadyFromADeadOne(t *testing.T) {
	t.Parallel()
	var trouble error
	h := probes(func(context.Context) error { return trouble }, telemetry.Silent())
	for _, c := range []struct {
		path    string
		trouble error
		want    int
	}{
		{"/live", nil, 200}, {"/ready", nil, 200},
		{"/live", errors.New("the table is away"), 200}, {"/ready", errors.New("the table is away"), 503},
		{"/", nil, 404},
	} {
		trouble = c.trouble
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", c.path, nil))
		if w.Code != c.want {
			t.Errorf("%s answers %d with %v, want %d", c.path, w.Code, c.trouble, c.want)
		}
	}
}

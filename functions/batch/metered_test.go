package batch

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"punctual/shared/telemetry"
)

func TestMetered_WritesMetricsAfterAFailure(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	meter := new(telemetry.Meter)
	failed := errors.New("no")
	handle := Metered(func(_ context.Context, n int64) (string, error) {
		meter.Count(telemetry.Swept, n)
		return "done", failed
	}, meter, &out)
	if got, err := handle(t.Context(), 3); got != "done" || !errors.Is(err, failed) {
		t.Errorf("answered %q, %v", got, err)
	}
	if s := out.String(); !strings.Contains(s, `"swept_total":3`) || strings.Count(s, "\n") != 1 {
		t.Errorf("wrote %s", s)
	}
}

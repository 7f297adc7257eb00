package layout

import (
	"slices"
	"strings"
	"testing"

	"punctual/shared/job"
	"punctual/shared/run"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

// Infrastructure asks for metrics by these values and knows no other package that it could take them from.
func TestTelemetry_NamesValuesAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	outcome := strings.ToLower
	for name, writes := range map[string][]string{
		telemetry.OutcomeSucceeded: {outcome(string(job.Succeeded)), outcome(string(run.Succeeded))},
		telemetry.OutcomeDead:      {outcome(string(job.Dead))},
		telemetry.OutcomeFailed:    {outcome(string(run.Failed))},
		telemetry.OutcomeCancelled: {outcome(string(run.Cancelled))},
		telemetry.StepFire:         {string(job.StepFire)},
		telemetry.PassPromoted:     {string(store.Promoted)},
		telemetry.PassSwept:        {string(store.Swept)},
	} {
		if slices.ContainsFunc(writes, func(is string) bool { return is != name }) {
			t.Errorf("%q is written as %q", name, writes)
		}
	}
}

package scan

import "punctual/shared/telemetry"

// Made counts a pass that succeeded. An alarm watches the count, so a pass that ends with an error, or of which every
// slice failed, must not be counted: calls of the function are made either way.
func Made(meter *telemetry.Meter, pass string, walked Walked, err error) {
	if err != nil || walked.Slices > 0 && walked.Failed == walked.Slices {
		return
	}
	meter.Count(telemetry.PassesMade, 1, telemetry.Dim{Key: "pass", Value: pass})
}

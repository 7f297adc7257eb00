package process_test

import (
	"testing"

	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/process"
	"punctual/shared/telemetry"
)

func TestBase_HasADefaultForWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := process.Base{}.WithDefaults()
	if b.Clock != (clock.System{}) {
		t.Errorf("the clock is %v, want the system's", b.Clock)
	}
	if b.Log == nil {
		t.Error("there is no logger")
	}
	if b.Shards != contract.DefaultShards {
		t.Errorf("%d shards, want %d", b.Shards, contract.DefaultShards)
	}
	b.Meter.Count(telemetry.RecordsFailed, 1) // nil drops it
}

func TestBase_KeepsWhatItHas(t *testing.T) {
	t.Parallel()
	has := process.Base{Clock: new(clock.System), Log: telemetry.Silent(), Meter: new(telemetry.Meter), Shards: 4}
	if b := has.WithDefaults(); b != has {
		t.Errorf("got %+v, want %+v", b, has)
	}
}

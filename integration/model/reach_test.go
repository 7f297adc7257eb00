package model

import "testing"

func TestMapped_EndsWithItsItems(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]mapped{
		"without a crash or a sweep":         {counts: true},
		"after a crash without a sweep":      {counts: true, crashes: 1},
		"if items are not counted":           {crashes: 1},
		"after two crashes and with a sweep": {counts: true, crashes: 2, sweeps: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m.wake = true
			states, trace := reach(m)
			if trace != nil {
				t.Errorf("%q", trace)
			}
			t.Logf("%d states", states)
		})
	}
}

func TestMapped_NeedsEachOfItsConditions(t *testing.T) {
	t.Parallel()
	for _, broken := range []Broken{ItemOverwrites, CloseByCounter, StopForgetsItems, ClearItemBeforeClosing} {
		t.Run(string(broken), func(t *testing.T) {
			t.Parallel()
			if _, trace := reach(mapped{wake: true, counts: true, crashes: 1, broken: broken}); trace == nil {
				t.Error("nothing was found")
			}
		})
	}
}

func TestAfter_IsReleasedOnceItsParentsHaveEnded(t *testing.T) {
	t.Parallel()
	open := [2]status{waiting, waiting}
	if states, trace := reach(after{parent: open, crashes: 1, sweeps: true}); trace != nil || states < 100 {
		t.Errorf("%d states, %q", states, trace)
	}
	if states, trace := reach(after{parent: [2]status{succeeded, waiting}, crashes: 1, sweeps: true}); trace != nil {
		t.Errorf("%d states, %q", states, trace)
	}
	if _, trace := reach(after{parent: open}); trace != nil {
		t.Errorf("without a crash it needs its own wake-up: %q", trace)
	}
}

func TestAfter_NeedsEachOfItsConditions(t *testing.T) {
	t.Parallel()
	for broken, a := range map[Broken]after{
		NoEvaluationAtLast: {}, OpenBeforeBoth: {}, NoWakeOfIts: {crashes: 1, sweeps: true},
	} {
		t.Run(string(broken), func(t *testing.T) {
			t.Parallel()
			a.broken, a.parent = broken, [2]status{waiting, waiting}
			if _, trace := reach(a); trace == nil {
				t.Error("nothing was found")
			}
		})
	}
}

package model

import (
	"testing"

	"punctual/shared/dag"
)

// world is the Config that most of these tests change.
func world(parents [][]uint8, orders ...Order) Config {
	return Config{Parents: parents, Rules: rules(parents, dag.AllSucceeded), Policy: dag.CancelDownstream, Joins: true,
		Releasers: 2, Orders: orders}
}

func TestSearch_FindsEachConditionThatIsLeftOut(t *testing.T) {
	t.Parallel()
	with := func(c Config, change func(*Config)) Config { change(&c); return c }
	for broken, c := range map[Broken]Config{
		StartIgnoresStop:       world(chain2, Order{Cancel, 0}),
		StartIgnoresPause:      world(chain2, Order{Pause, 0}),
		StartIgnoresOperation:  with(world(chain2, Order{Retry, 0}), func(c *Config) { c.Policy = dag.Continue }),
		StartIgnoresGeneration: world(chain2, Order{RetryFrom, 0}),
		StopLeavesBlocked:      world(chain2, Order{Cancel, 0}),
		StopIgnoresFinal:       world(chain2, Order{Cancel, 0}),
		FailIgnoresEpoch:       with(world(chain2, Order{RetryNode, 0}), func(c *Config) { c.Policy = dag.CancelRun }),
		ReleaseBeforeParents:   world(chain2),
		ReleaseBeforeOlder:     world(chain2, Order{RetryFrom, 0}),
		PutOverwrites:          with(world(chain2), func(c *Config) { c.Fine = true }),
		JoinIsTruth:            with(world(join), func(c *Config) { c.Repeats = 1 }),
		JoinWantsAll: with(world(join, Order{RetryNode, 0}), func(c *Config) {
			c.NoSweeps, c.Steady = true, 0b110
		}),
		CountsDuringAnOperation: with(world(join, Order{RetryNode, 0}), func(c *Config) {
			c.NoSweeps, c.Steady = true, 0b110
		}),
		HeldIsNotNoted:   with(world(crossed), func(c *Config) { c.NoSweeps, c.Policy = true, dag.Hold }),
		SlotIsNotAsked:   with(world(apart), func(c *Config) { c.Limited = true }),
		EndIgnoresEpoch:  world(chain2, Order{Cancel, 0}),
		EndBeforeAll:     world(chain2),
		RestIgnoresEpoch: with(world(chain2, Order{Cancel, 0}), func(c *Config) { c.NoSweeps = true }),
		ResumeWakesNoProcess: with(world(chain2, Order{Pause, 0}, Order{Resume, 0}), func(c *Config) {
			c.NoSweeps = true
		}),
		OperationWakesNoProcess: with(world(chain2, Order{Retry, 0}), func(c *Config) { c.NoSweeps = true }),
		OperationInOneWrite: with(world(chain2, Order{Retry, 0}), func(c *Config) {
			c.Policy = dag.Continue
		}),
		OperationIsFinishedTwice:   world(chain2, Order{Retry, 0}, Order{Cancel, 0}),
		ReconcileLeavesGaps:        world(chain2, Order{RetryNode, 1}, Order{RetryFrom, 0}),
		EndLeavesGaps:              world(chain2, Order{RetryNode, 1}, Order{RetryFrom, 0}),
		BlockedKeepTheirGeneration: world(chain2, Order{Retry, 0}),
		OverrideIsForgotten: with(world(chain2, Order{Retry, 0}), func(c *Config) {
			c.Rivals, c.Releasers = []Order{{Complete, 1}}, 1
		}),
		RetryOfAll: world(chain2, Order{Retry, 0}),
		OverrideIgnoresEpoch: with(world(chain2, Order{SkipNode, 1}), func(c *Config) {
			c.Rivals, c.Releasers, c.Steady = []Order{{RetryNode, 0}}, 1, 0b10
		}),
		OverrideIgnoresRunning: world(chain2, Order{Complete, 0}),
		ClearBeforeEvaluating:  with(world(chain2), func(c *Config) { c.NoSweeps, c.Crashes = true, 1 }),
	} {
		t.Run(string(broken), func(t *testing.T) {
			t.Parallel()
			c := c
			if f := Search(c, bound); f.Violation != "" || f.Cut {
				t.Fatalf("the protocol with all its conditions fails: cut %v, %v", f.Cut, f)
			}
			c.Broken = broken
			f := Search(c, bound)
			if f.Violation == "" {
				t.Errorf("nothing was found in %d states", f.States)
			}
			t.Logf("%d states: %s", f.States, f.Violation)
		})
	}
}

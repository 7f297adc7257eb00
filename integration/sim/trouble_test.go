package sim

import (
	"os"
	"strings"
	"testing"
	"time"
)

// Each trouble runs in a world without random faults, and with SIM_SEEDS in as many others: with
// more shards, different clocks, and indexes that lag a little.
//
//proof:of F02 by the table is away for a minute during a long attempt
//proof:of F01 by text that SQS refuses
//proof:of F05 by one at a time, five minutes each
//proof:of F03 by a schedule cannot be read for twenty minutes
//proof:of S20
func TestTroubles_EndWell(t *testing.T) {
	t.Parallel()
	for _, s := range Troubles {
		if only := os.Getenv("SIM_STORY"); only != "" && !strings.Contains(s.Name, only) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			for n := range number(t, "SIM_SEEDS", 1) {
				o := Options{Seed: uint64(number(t, "SIM_FROM", 1) + n)}
				if n > 0 {
					o.Shards, o.IndexLag, o.StreamLag = 1+n%3, time.Duration(n%3)*time.Second, time.Duration(
						n%2,
					)*300*time.Millisecond
				}
				if _, _, bad := play(t, s, o, 2*time.Hour); bad {
					t.Fatalf("seed %d; others are not tried", o.Seed)
				}
			}
		})
	}
}

func TestTroubles_HaveUniqueNames(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, s := range Troubles {
		if names[s.Name] {
			t.Errorf("two stories have the name %q", s.Name)
		}
		names[s.Name] = true
	}
}

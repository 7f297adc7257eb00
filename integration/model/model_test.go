package model

import (
	"os"
	"slices"
	"testing"

	"punctual/shared/dag"
)

// bound limits the states of one search. No search below comes near it.
var bound = map[bool]int{false: 3_000_000, true: 12_000_000}[full()]

// full says that the long searches run, too: MODEL_FULL=1.
func full() bool { return os.Getenv("MODEL_FULL") != "" }

// The graphs, by the parents of each node.
var (
	chain2   = [][]uint8{{}, {0}}
	chain3   = [][]uint8{{}, {0}, {1}}
	fork     = [][]uint8{{}, {0}, {0}}
	join     = [][]uint8{{}, {}, {0, 1}}
	triangle = [][]uint8{{}, {0}, {0, 1}}
	apart    = [][]uint8{{}, {}}
	diamond  = [][]uint8{{}, {0}, {0}, {1, 2}}
	crossed  = [][]uint8{{}, {}, {0, 1}, {1}}
	wide     = [][]uint8{{}, {}, {}, {0, 1, 2}}
)

// rules gives every node the same rule; a node without parents ignores it.
func rules(parents [][]uint8, r dag.Rule) []dag.Rule {
	all := make([]dag.Rule, len(parents))
	for i := range all {
		all[i] = r
	}
	return all
}

var policies = []dag.Policy{dag.CancelDownstream, dag.CancelRun, dag.Continue, dag.Hold}

// graphs lists all graphs of n nodes whose parents have lower numbers.
func graphs(n int) (all [][][]uint8) {
	edges := n * (n - 1) / 2
	for set := range 1 << edges {
		parents, bit := make([][]uint8, n), 0
		for x := range n {
			for p := range x {
				if set&(1<<bit) != 0 {
					parents[x] = append(parents[x], uint8(p))
				}
				bit++
			}
		}
		all = append(all, parents)
	}
	return all
}

// searches counts what one test has searched. Without MODEL_FULL it searches a sample.
type searches struct {
	t             *testing.T
	seen          int
	worlds, state int
}

// lot says whether the next world is searched: every n-th, or all with MODEL_FULL.
func (s *searches) lot(n int) bool {
	s.seen++
	return full() || s.seen%n == 0
}

func (s *searches) whole(c Config) {
	s.t.Helper()
	f := Search(c, bound)
	s.worlds++
	s.state += f.States
	if f.Cut || f.Violation != "" {
		s.t.Fatalf("graph %v, rules %v, policy %s, acts %v %v: cut %v, %v", c.Parents, c.Rules, c.Policy, c.Orders,
			c.Rivals, f.Cut, f)
	}
}

func (s *searches) report() { s.t.Logf("%d worlds of %d, %d states", s.worlds, s.seen, s.state) }

// each calls do with every one of those graphs under every rule and policy.
func each(of [][][]uint8, do func(Config)) {
	for _, g := range of {
		for _, rule := range dag.Rules {
			for _, policy := range policies {
				do(Config{Parents: g, Rules: rules(g, dag.Rule(rule)), Policy: policy, Joins: true, Releasers: 2})
			}
		}
	}
}

func TestRun_EndsRightOnEveryGraphUnderEveryRuleAndPolicy(t *testing.T) {
	t.Parallel()
	s := &searches{t: t}
	each(slices.Concat(graphs(2), graphs(3)), s.whole)
	each(graphs(4), func(c Config) {
		if s.lot(59) {
			s.whole(c)
		}
	})
	s.report()
}

func TestRun_EndsRightAfterACrashAndADuplicateMessage(t *testing.T) {
	t.Parallel()
	s := &searches{t: t}
	each(slices.Concat(graphs(2), graphs(3)), func(c Config) {
		if c.Crashes = 1; s.lot(11) {
			s.whole(c)
		}
	})
	each(graphs(2), func(c Config) {
		c.Crashes, c.Repeats = 1, 1
		s.whole(c)
	})
	s.report()
}

func TestRun_EndsRightWhenEveryReadIsAStep(t *testing.T) {
	t.Parallel()
	s := &searches{t: t}
	each([][][]uint8{chain2, apart, join, fork}, func(c Config) {
		if c.Fine = true; s.lot(3) {
			s.whole(c)
		}
	})
	s.report()
}

func TestRun_NeedsNoSweep(t *testing.T) {
	t.Parallel()
	s := &searches{t: t}
	each([][][]uint8{chain2, fork, join, triangle, diamond, crossed, wide}, func(c Config) {
		if c.NoSweeps = true; s.lot(2) {
			s.whole(c)
		}
	})
	s.report()
}

func TestRun_EndsRightWhileOneNodeRunsAtATime(t *testing.T) {
	t.Parallel()
	s := &searches{t: t}
	each([][][]uint8{apart, fork, join, {{}, {}, {}}}, func(c Config) {
		if c.Limited, c.Crashes, c.Repeats = true, s.seen%2, s.seen/2%2; s.lot(13) {
			s.whole(c)
		}
	})
	each([][][]uint8{apart, chain2}, func(c Config) {
		for _, a := range operations {
			if c.Limited, c.NoSweeps, c.Orders = true, s.seen%2 == 0, orders(a, 0); s.lot(31) {
				s.whole(c)
			}
		}
	})
	s.report()
}

// operations are all acts but Resume, which follows Pause.
var operations = []Operation{Cancel, Expire, Pause, Retry, RetryFrom, RetryNode, SkipNode, SkipBelow, Complete}

// orders asks for the operation on that node, if it is about one, and for a resume after a pause.
func orders(a Operation, node uint8) []Order {
	if a == Pause {
		return []Order{{Operation: Pause}, {Operation: Resume}}
	}
	return []Order{{a, node}}
}

func TestRun_ObeysEveryActAtAnyTime(t *testing.T) {
	t.Parallel()
	s := &searches{t: t}
	each([][][]uint8{chain2}, func(c Config) {
		for _, a := range operations {
			for node := range uint8(2) {
				if c.Orders = orders(a, node); s.lot(11) {
					s.whole(c)
				}
			}
		}
	})
	s.report()
}

func TestRun_ObeysEveryActDespiteACrash(t *testing.T) {
	t.Parallel()
	s := &searches{t: t}
	each([][][]uint8{chain2}, func(c Config) {
		for _, a := range operations {
			if c.Orders, c.Crashes, c.NoSweeps = orders(a, 0), 1, s.seen%2 == 0; s.lot(61) {
				s.whole(c)
			}
		}
	})
	s.report()
}

func TestRun_ObeysEveryActOnThreeAndFourNodes(t *testing.T) {
	t.Parallel()
	s := &searches{t: t}
	each([][][]uint8{chain3, join, triangle, fork}, func(c Config) {
		for _, a := range operations {
			for node := range uint8(3) {
				if c.Orders, c.Releasers, c.NoSweeps = orders(a, node), 1, s.seen%2 == 0; s.lot(97) {
					s.whole(c)
				}
				if c.Releasers = 2; full() {
					s.whole(c)
				}
			}
		}
	})
	each([][][]uint8{diamond, crossed, wide}, func(c Config) {
		for _, a := range operations {
			if c.Orders, c.Releasers, c.Steady = orders(a, 1), 1, 0b1101; s.lot(101) {
				s.whole(c)
			}
		}
	})
	s.report()
}

func TestRun_ObeysTwoActsOfOneOrTwoOperators(t *testing.T) {
	t.Parallel()
	s := &searches{t: t}
	each([][][]uint8{chain2}, func(c Config) {
		for _, a := range operations {
			for _, b := range operations {
				c.Releasers = 1
				if c.Orders, c.Rivals = append(orders(a, 0), orders(b, 0)...), nil; s.lot(301) {
					s.whole(c)
				}
				if c.Orders, c.Rivals = orders(a, 0), orders(b, 1); s.lot(301) {
					s.whole(c)
				}
			}
		}
	})
	s.report()
}

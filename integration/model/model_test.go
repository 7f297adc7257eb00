package model

import (
	"os"
	"sync/atomic"
	"testing"

	"punctual/shared/dag"
)

// bound keeps one search from eating the machine: none of those below comes near it.
const bound = 3_000_000

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

// rules gives every node the same rule; roots have no use for one.
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

type searches struct {
	t      *testing.T
	worlds int
	states int64
}

func (s *searches) whole(c Config) {
	s.t.Helper()
	f := Search(c, bound)
	s.worlds++
	s.states += int64(f.States)
	if f.Cut || f.Violation != "" {
		s.t.Fatalf("graph %v, rules %v, policy %s, acts %v: cut %v, %v", c.Parents, c.Rules, c.Policy, c.Orders, f.Cut, f)
	}
}

var total atomic.Int64

func (s *searches) report() {
	total.Add(s.states)
	s.t.Logf("%d worlds, %d states", s.worlds, s.states)
}

func TestRun_EndsRightOnEveryGraphOfThreeNodesUnderEveryRuleAndPolicy(t *testing.T) {
	t.Parallel()
	s := &searches{t: t}
	for _, g := range append(graphs(2), graphs(3)...) {
		for _, rule := range dag.Rules {
			for _, policy := range policies {
				s.whole(Config{Parents: g, Rules: rules(g, dag.Rule(rule)), Policy: policy, Releasers: 2, Joins: true, Crashes: 1})
			}
		}
	}
	s.report()
}

func TestRun_EndsRightOnEveryGraphOfFourNodes(t *testing.T) {
	t.Parallel()
	s := &searches{t: t}
	for _, g := range graphs(4) {
		for n, rule := range dag.Rules {
			if !full() && n%3 != 0 {
				continue
			}
			for _, policy := range policies {
				s.whole(Config{Parents: g, Rules: rules(g, dag.Rule(rule)), Policy: policy, Releasers: 2, Joins: true})
			}
		}
	}
	s.report()
}

func TestRun_NeedsNoSweepUnlessSomebodyCrashes(t *testing.T) {
	t.Parallel()
	s := &searches{t: t}
	for _, g := range [][][]uint8{chain2, fork, join, triangle, diamond, crossed, wide} {
		for _, rule := range dag.Rules {
			for _, policy := range policies {
				s.whole(Config{
					Parents: g, Rules: rules(g, dag.Rule(rule)), Policy: policy, Releasers: 2, Joins: true, NoSweeps: true,
				})
			}
		}
	}
	s.report()
}

// act is the orders that ask for it, of a node.
func orders(a Act, node uint8) []Order {
	if a == Pause {
		return []Order{{Act: Pause}, {Act: Resume}}
	}
	return []Order{{a, node}}
}

var acts = []Act{Cancel, Expire, Pause, Retry, RetryFrom, RetryNode, SkipNode, SkipBelow, Complete}

func TestRun_ObeysEveryActAtAnyTime(t *testing.T) {
	t.Parallel()
	s := &searches{t: t}
	for _, g := range [][][]uint8{chain2, chain3, join, triangle} {
		for n, rule := range dag.Rules {
			for _, policy := range policies {
				for k, a := range acts {
					if !full() && len(g) > 2 && (n+k)%7 != 0 {
						continue
					}
					c := Config{Parents: g, Rules: rules(g, dag.Rule(rule)), Policy: policy, Releasers: 2, Joins: true, Orders: orders(a, 0)}
					if len(g) == 2 {
						c.Crashes = 1
					}
					before := s.states
					s.whole(c)
					if s.states-before > 100_000 {
						t.Log(g, rule, policy, names[a], s.states-before)
					}
				}
			}
		}
	}
	s.report()
}

package model

import (
	"testing"
	"time"

	"punctual/shared/dag"
)

func TestTry(t *testing.T) {
	all := []dag.Rule{dag.AllSucceeded, dag.AllSucceeded, dag.AllSucceeded, dag.AllSucceeded}
	for _, c := range []Config{
		{Parents: [][]uint8{{}, {0}}, Rules: all[:2], Policy: dag.CancelDownstream, Releasers: 2},
		{Parents: [][]uint8{{}, {0}}, Rules: all[:2], Policy: dag.CancelDownstream, Releasers: 2, Crashes: 1, Repeats: 1},
		{Parents: [][]uint8{{}, {0}}, Rules: all[:2], Policy: dag.CancelDownstream, Releasers: 2, Crashes: 1, Repeats: 1, Orders: []Order{{Act: Retry}}},
		{Parents: [][]uint8{{}, {}, {0, 1}}, Rules: all[:3], Policy: dag.CancelDownstream, Releasers: 2, Joins: true, Crashes: 1},
		{Parents: [][]uint8{{}, {}, {0, 1}}, Rules: all[:3], Policy: dag.CancelDownstream, Releasers: 2, Joins: true, Orders: []Order{{Act: Retry}}},
		{Parents: [][]uint8{{}, {0}, {0}, {1, 2}}, Rules: all[:4], Policy: dag.CancelDownstream, Releasers: 2, Joins: true},
		{Parents: [][]uint8{{}, {0}, {0}, {1, 2}}, Rules: all[:4], Policy: dag.CancelDownstream, Releasers: 2, Joins: true, Orders: []Order{{Act: Retry}}},
	} {
		at := time.Now()
		f := Search(c, 3_000_000)
		t.Log(f.States, f.Cut, time.Since(at))
		if f.Violation != "" {
			t.Error(f)
		}
	}
}

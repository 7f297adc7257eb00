package dag_test

import (
	"fmt"
	"testing"

	"punctual/shared/dag"
)

func TestMaxFailed_AllowsUpToThatManyItems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		most          dag.MaxFailed
		failed, total int
		want          bool
	}{
		{dag.MaxFailed{}, 0, 3, true},
		{dag.MaxFailed{}, 1, 3, false},
		{dag.MaxFailed{Count: 2}, 2, 3, true},
		{dag.MaxFailed{Count: 2}, 3, 1_000, false},
		{dag.MaxFailed{Count: 5}, 3, 3, true},
		{dag.MaxFailed{Percent: 10}, 1, 10, true},
		{dag.MaxFailed{Percent: 10}, 1, 9, false},
		{dag.MaxFailed{Percent: 10}, 99, 999, true},
		{dag.MaxFailed{Percent: 10}, 100, 999, false},
		{dag.MaxFailed{Percent: 33}, 1, 3, false},
		{dag.MaxFailed{Percent: 34}, 1, 3, true},
		{dag.MaxFailed{Percent: 100}, 7, 7, true},
	} {
		t.Run(fmt.Sprintf("%s of %d items, %d failed", c.most, c.total, c.failed), func(t *testing.T) {
			t.Parallel()
			if got := c.most.Allows(c.failed, c.total); got != c.want {
				t.Errorf("allowed is %v, want %v", got, c.want)
			}
		})
	}
}

func TestHash_TakesMaxFailedOfNoneForAbsent(t *testing.T) {
	t.Parallel()
	hash := func(m dag.MaxFailed) string {
		return dag.Definition{Nodes: map[string]dag.Node{"m": {Task: "echo", ForEach: "${[1]}", MaxFailed: m}}}.Hash()
	}
	none, ok := dag.PercentFailed("0%")
	if !ok || hash(none) != hash(dag.MaxFailed{}) {
		t.Error("0% makes another definition than none")
	}
	if hash(dag.MaxFailed{Count: 5}) == hash(dag.MaxFailed{Percent: 5}) {
		t.Error("five items are the same definition as five percent")
	}
}

package main

import (
	"strings"
	"testing"
)

func TestWorkers_ListsWorkersAndQueues(t *testing.T) {
	t.Parallel()
	if out := good(t, "workers"); !strings.Contains(out, "laptop") || !strings.Contains(out, "working") ||
		!strings.Contains(out, "/25") {
		t.Errorf("workers: %s", out)
	}
	if out := good(t, "workers", "--queues", "-o", "name"); !strings.HasPrefix(out, "short-critical\n") ||
		strings.Count(out, "\n") != 8 {
		t.Errorf("queues: %s", out)
	}
}

package layout

import (
	"slices"
	"strings"
)

// folders lists every folder that may hold Go code. A pattern's * matches one path element, and
// what lies below a pattern belongs to it.
var folders = []string{
	"shared/audit",
	"shared/aws/*",
	"shared/cache",
	"shared/calendar",
	"shared/client",
	"shared/clock",
	"shared/conformance",
	"shared/contract",
	"shared/dag",
	"shared/document",
	"shared/event",
	"shared/executor",
	"shared/expression",
	"shared/fault",
	"shared/horizon",
	"shared/item",
	"shared/job",
	"shared/limit",
	"shared/memory",
	"shared/message",
	"shared/operation",
	"shared/price",
	"shared/process",
	"shared/run",
	"shared/schedule",
	"shared/schema",
	"shared/search",
	"shared/secret",
	"shared/span",
	"shared/stats",
	"shared/store",
	"shared/target",
	"shared/telemetry",
	"shared/tenant",
	"shared/text",
	"shared/usage",
	"shared/webhook",
	"shared/zonefile",
	"functions/api",
	"functions/authorizer",
	"functions/batch",
	"functions/bulk",
	"functions/changes",
	"functions/console",
	"functions/dispatch",
	"functions/engine",
	"functions/entry",
	"functions/events",
	"functions/forecast",
	"functions/promoter",
	"functions/redrive",
	"functions/search",
	"functions/stagetest",
	"functions/stats",
	"functions/status",
	"functions/stream",
	"functions/sweeper",
	"workers/cmd/*",
	"workers/executor",
	"workers/handler",
	"workers/laptop",
	"workers/system",
	"workers/worker",
	"infra",
	"integration/*",
}

// inAny reports whether dir (slash-separated, relative to the root) is one of the folders that
// the patterns mean, or lies below one.
func inAny(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return within(p, dir) })
}

// within reports whether dir is the folder that pattern means, or lies below it.
func within(pattern, dir string) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(dir, "/")
	if len(have) < len(want) {
		return false
	}
	for i, w := range want {
		if w != "*" && w != have[i] {
			return false
		}
	}
	return true
}

package layout

import (
	"slices"
	"strings"
)

// room is a kind of folder: all folders of a kind obey the same rule.
type room string

const (
	core        room = "core"
	ground      room = "ground"
	store       room = "store"
	adapter     room = "adapter"
	memory      room = "memory"
	conformance room = "conformance"
	helper      room = "helper"
	setup       room = "setup"
	stage       room = "stage"
	door        room = "door"
	hand        room = "hand"
	process     room = "process"
	cloud       room = "cloud"
	proof       room = "proof"
	nowhere     room = ""
)

// folders places every folder. A pattern's * stands for one path element, and
// what lies below a pattern belongs to it; the first match wins.
var folders = []struct {
	pattern string
	is      room
}{
	{"shared/job", core},
	{"shared/calendar", core},
	{"shared/dag", core},
	{"shared/executor", core},
	{"shared/horizon", core},
	{"shared/item", core},
	{"shared/span", core},
	{"shared/target", core},
	{"shared/message", core},
	{"shared/schedule", core},
	{"shared/tenant", core},
	{"shared/text", core},
	{"shared/cache", ground},
	{"shared/clock", ground},
	{"shared/fault", ground},
	{"shared/contract", ground},
	{"shared/telemetry", ground},
	{"shared/store", store},
	{"shared/aws/*", adapter},
	{"shared/memory", memory},
	{"shared/conformance", conformance},
	{"functions/*/lambda", door},
	{"functions/batch", helper},
	{"functions/engine", helper},
	{"functions/stagetest", setup},
	{"functions/api", stage},
	{"functions/authorizer", stage},
	{"functions/stream", stage},
	{"functions/promoter", stage},
	{"functions/sweeper", stage},
	{"functions/dispatch", stage},
	{"functions/status", stage},
	{"functions/redrive", stage},
	{"functions/forecast", stage},
	{"workers/cmd/*", process},
	{"workers/worker", hand},
	{"workers/executor", hand},
	{"workers/handler", hand},
	{"workers/workertest", hand},
	{"infra", cloud},
	{"integration/*", proof},
}

// roomOf tells what kind of folder dir (slash-separated, relative to the root)
// is; nowhere when the layout has no place for it.
func roomOf(dir string) room {
	for _, f := range folders {
		if within(f.pattern, dir) {
			return f.is
		}
	}
	return nowhere
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

// rule says which rooms a room may import, and why no more.
type rule struct {
	may      []room
	folders  []string // single folders that are open to it beyond may
	inTests  []room   // what its tests may import, too
	siblings bool     // whether it may import other folders of its own kind
	reason   string
}

var rules = map[room]rule{
	core: {
		folders: []string{"shared/fault", "shared/contract"}, siblings: true,
		reason: "the core judges and nothing else: the same facts always give the same answer, tested without time, network or vendor; clock, telemetry and whatever acts on a decision stand above it",
	},
	ground: {
		reason: "everybody stands on the ground, so it stands on nothing of ours, or cycles and hidden dependencies follow",
	},
	store: {
		may: []room{core, ground}, inTests: []room{memory},
		reason: "the store puts the core's decisions into a table that it is handed: it must mean the same over DynamoDB and over memory",
	},
	adapter: {
		may: []room{core, ground}, inTests: []room{conformance}, siblings: true,
		reason: "an adapter translates between our words and AWS; if it knew a stage, a worker or its twin in memory, neither side could be replaced",
	},
	memory: {
		may: []room{core, ground}, inTests: []room{conformance, store},
		reason: "the memory twins must mean what AWS means without seeing it; the conformance suite compares the two from outside",
	},
	conformance: {
		may:    []room{core, ground, store},
		reason: "the suite is handed what it exercises: if it named an implementation it could bend to that one",
	},
	helper: {
		may: []room{core, ground, store}, inTests: []room{memory, setup}, siblings: true,
		reason: "what several stages share means the same to each of them, so it may know none",
	},
	setup: {
		may:    []room{core, ground, store, helper, memory},
		reason: "it is for the tests of stages and of the engine: if it knew one of them, that one's tests could not use it",
	},
	stage: {
		may: []room{core, ground, store, helper}, inTests: []room{memory, setup},
		reason: "stages meet only in the table and the queues, and reach the world only through ports they declare; their doors choose the adapters",
	},
	door: {
		may:    []room{adapter, ground, store, helper}, // and its own stage, see mayImport
		reason: "a door wires its own stage to the adapters and starts it; anything else in it is logic that no test reaches",
	},
	hand: {
		may: []room{core, ground, store}, inTests: []room{memory}, siblings: true,
		reason: "workers know the contract of a job, nothing of the stages, Lambda or the SDK: they run the same over memory and over SQS",
	},
	process: {
		may:    []room{hand, adapter, ground, store},
		reason: "the process of the worker wires it to the adapters; anything else in it is logic that no test reaches",
	},
	cloud: {
		folders: []string{"shared/contract", "shared/telemetry"}, siblings: true,
		reason: "infrastructure and code agree in shared/contract (names, numbers) and shared/telemetry (metrics) and nowhere else, or a deploy would need the whole product to compile",
	},
	proof: {
		may: []room{core, ground, store, adapter, memory, conformance, helper, stage, hand}, siblings: true,
		reason: "integration proves the product over its packages; infra is proved by its own template tests (building CDK here would cost every run a minute), and doors are programs: they are built and run, not imported",
	},
}

// mayImport reports whether a file in dir may import our folder to.
func mayImport(dir, to string, test bool) bool {
	from, into := roomOf(dir), roomOf(to)
	r := rules[from]
	switch {
	case dir == to: // an external test of the package itself
		return true
	case from == into:
		return r.siblings || within(dir, to) || within(to, dir)
	case from == door && to+"/lambda" == dir:
		return true
	case slices.Contains(r.may, into), test && slices.Contains(r.inTests, into):
		return true
	}
	return slices.ContainsFunc(r.folders, func(folder string) bool { return within(folder, to) })
}

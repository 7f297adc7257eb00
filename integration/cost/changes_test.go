package cost

import "fmt"

// What the second reader of the jobs table's stream takes, by assumption: a laptop has no calls of Lambda.
const (
	tableShards  = 4.0  // of the stream of a table that has just been made, and of one with up to 4,000 writes a second
	changesOfJob = 3.0  // of its row: made, perhaps started, ended
	changeMS     = 1.0  // of a function of 256 MB for each change
	callEvery    = 20.0 // seconds, or the next change
	spanEvery    = 90.0 // seconds from one write of a span to the next
	spanUnits    = 2.0  // of a span with many sorts of lateness
	usedUnits    = 3.0  // of what a task, a schedule and a dag used, with few values each
)

// counting is what counting costs a second, of a tenant with one task that has so many jobs a second.
func counting(rate float64) (calls, spans float64) {
	n := min(changesOfJob*rate, tableShards/callEvery) + tableShards/spanEvery
	calls = n*invocation + changesOfJob*rate*changeMS/1000*256/1024*gigabyteSec
	// The task's and the tenant's counts, and what the task, a schedule and a dag used.
	return calls, tableShards / spanEvery * (2*spanUnits + usedUnits) * writeUnit
}

// mostCounting is what counting may cost of what a job costs, from busy jobs a second on.
const mostCounting, busyRate = 0.02, 100.0

// countingRow says what counting costs, and whether that is as promised where a million jobs cost so much.
func countingRow(million float64) (row string, within bool) {
	calls, spans := counting(busyRate)
	of := 1e6 * (calls + spans) / busyRate
	idle, _ := counting(tableShards / callEvery / changesOfJob)
	const month = hoursAMonth * 3600
	return fmt.Sprintf("- What became of jobs is counted for $%.2f a million jobs at 100 a second, %.1f %% of their "+
		"cost. A task with few jobs, but some at all times, costs $%.2f a month for its counts, its tenant as much, "+
		"and the calls of the function that counts $%.2f for all tenants.\n", of, 100*of/million,
		tableShards/spanEvery*writeUnit*month, idle*month), of <= mostCounting*million
}

// Package sim runs the whole product in virtual time, with everything that AWS may do to it: calls
// fail, hang, take effect and then fail, or happen twice; messages come twice; indexes and streams
// lag; timers are up to a minute late; clocks differ; processes crash after any call and others
// replace them.
//
//	story or chaos ─▶ client ─▶ API ─┐                      ┌─▶ ledger: every row and claim written
//	                                 ├─▶ process ─▶ fault? ─┤
//	         stages, workers ────────┘    (dead: silence)   └─▶ in-memory implementations
//	                                                 handlers ─▶ history: every start and end
//
// Each stage, each worker and each API is a process with its own ports. Every call is a point with
// a name: stage, operation, subject, and a count. A plan chooses the fault of a point, so a test can
// crash a process "after status wrote row.succeed for the first time", and a seed chooses the same
// faults each time.
//
// The same seed gives the same run. Before each call a process waits for up to a millisecond, as
// derived from the caller and the call, so that no two calls happen at one instant and the order in
// which goroutines are scheduled does not matter. Calls that nothing distinguishes share their
// fault, or are kept from happening at one instant: see evaluate, apart and staggered. One exception:
// at the instant at which a process caches something, its goroutines may or may not find it there,
// so one seed in twenty of those with schedules does not always give the same run.
//
// Network plays random graphs of up to 200 nodes, with every rule and policy, lists, limits and deadlines,
// while operators pause, resume, cancel, retry, skip and complete. dagtest.Evaluate says of each start whether its
// parents allow it, and of each node and run how it must have ended.
//
//	SIM_SEEDS=1000 go test -timeout 60m -run TestNetwork ./integration/sim     a thousand worlds
//
// The clients belong to one or two tenants with the same keys, names and ids. They use jobs and
// schedules. What always holds (DESIGN §5) is verified at every write and every start, and once more
// when the world has settled: each nominal time of a schedule has exactly one outcome then. What
// breaks a promise is a violation; a run with one prints its calls.
//
// Troubles are stories about what lasts longer than a call: a table that is unavailable, all of it,
// for one tenant or for one key; a queue that refuses a message for good; an item that cannot be
// read; a pause of seconds; a change in the last second before due; messages that are made visible
// later for hours. They verify who must not be affected, and by when the world has recovered.
// Hazards are the same by chance, in Chaos and Timetable.
//
// Settings: SIM_FULL=1 tries every point of every story and ten of each trouble, SIM_STRIDE=n one in
// n, SIM_STORY=part of a name only some stories; SIM_SEEDS=n, SIM_FROM=s and SIM_SEED=s choose seeds;
// SIM_TRACE=1 prints whole traces, SIM_TRACE=always also those of stories that end well, SIM_TRACE=no
// none; SIM_LOG=1 adds warnings and errors of the product.
//
// Not simulated: workers with too few slots, where nothing distinguishes the pollers that wait for
// one; payloads of schedules that do not fit a row; calendars with a spread, or with exclusions that
// move times (for those see the year of integration/system); more than some hours.
package sim

// Package sim runs the whole product in virtual time, in a world that does all that AWS may do
// to it: calls fail, hang, take effect and then fail, or happen twice; messages come twice;
// indexes and streams lag; timers are up to a minute late; clocks differ; processes stop dead
// after any call and others start in their place.
//
//	story or chaos ─▶ client ─▶ API ─┐                      ┌─▶ ledger: every row and claim that is written
//	                                 ├─▶ process ─▶ fault? ─┤
//	         stages, workers ────────┘    (dead: silence)   └─▶ memory twins
//	                                                 handlers ─▶ history: every start and end
//
// Each stage and each worker is a process with ports of its own. Whatever it calls is a point
// with a name: stage, operation, what it was about, and the how-manieth that was. A plan says
// what becomes of a point, so that a run can be told to crash "after status wrote row.succeed
// for the first time", and a seed decides alike however goroutines happen to be scheduled.
//
// What always holds (DESIGN §5) is asked at every write and every start, and once more when
// all has come to rest. What breaks it is a violation; a run with one prints what was called.
//
// Settings, for looking closer: SIM_FULL=1 tries every point of every story, SIM_STORY=part of
// a name only some stories; SIM_SEEDS=n, SIM_FROM=s and SIM_SEED=s choose seeds; SIM_TRACE=1
// prints whole traces, SIM_TRACE=no none; SIM_LOG=1 puts warnings and errors of the product in.
//
// What it does not do: more than one tenant, slices so crowded that one timer stands for them,
// items that expire, and time beyond some hours.
package sim

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
// Each stage, each worker and each API is a process with ports of its own. Whatever it calls is a
// point with a name: stage, operation, what it was about, and the how-manieth that was. A plan
// says what becomes of a point, so that a run can be told to crash "after status wrote
// row.succeed for the first time", and a seed decides alike.
//
// The same seed is the same run: before each call a process waits for its turn, up to a
// millisecond, which who calls and what about give, so that no two things happen at one instant
// and it does not matter in which order goroutines are scheduled. What nothing tells apart shares
// its fate, or is kept from happening at one instant: see judge, apart and staggered. What a
// process remembers for a second, its goroutines may still find or not find at the very instant
// at which it is learnt: one seed in twenty of those with schedules is not always the same run.
//
// Those who use it belong to one or two tenants, whose keys, names and ids are the same. They
// have jobs and schedules. What always holds (DESIGN §5) is asked at every write and every start,
// and once more when all has come to rest: each nominal time of a schedule's life, as the writes
// tell it, has then one outcome. What breaks it is a violation; a run with one prints what was
// called.
//
// Troubles are stories of what lasts longer than a call: a table that is away, all of it, for one
// tenant or for one key; a queue that refuses a body for good; an item that nobody can read; a
// pause of seconds; a change in the last second before due; messages that are given back for
// hours. They ask who must not be hurt, and by when all is well again. Hazards are the same by
// chance, in Chaos and Timetable.
//
// Settings, for looking closer: SIM_FULL=1 tries every point of every story and ten of each
// trouble, SIM_STRIDE=n one in n, SIM_STORY=part of a name only some stories; SIM_SEEDS=n,
// SIM_FROM=s and SIM_SEED=s choose seeds; SIM_TRACE=1 prints whole traces, SIM_TRACE=always also
// those of stories that end well, SIM_TRACE=no none; SIM_LOG=1 puts warnings and errors of the
// product in.
//
// What it does not do: workers with too few slots, where pollers that wait for one are not told
// apart; payloads of schedules that do not fit a row; calendars with exclusions that move times,
// or a spread (for those see integration/system's year); time beyond some hours.
package sim

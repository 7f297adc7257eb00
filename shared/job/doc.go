// Package job is the heart of the core: what a job is, which statuses it may pass
// through, and what becomes of it after anything that can happen to it. It is pure:
// no clock, no dice, no I/O; the caller acts on what is decided here.
//
//	BLOCKED ─▶ SCHEDULED ─▶ RUNNING ─▶ SUCCEEDED
//	              ▲  │  ▲──retry──┤──▶ DEAD ─ redrive ─▶ (a new job)
//	              └──┴────────────┴──▶ CANCELLED · EXPIRED · SKIPPED
//
// Two items make a job. The row ([Row], table jobs) is written by the API, the status
// consumer and the sweeper; the claim ([Claim], table claims) by workers, and by the process that
// fences them. Every write of either is a named transition of transition.go or claim.go with
// the exact condition of the protocol; nothing else writes them.
//
// What always holds: an attempt only grows; a final status is never left; a row's wake-up
// goes only when it is final without pending effects; the same facts always give the same decision,
// jitter included.
package job

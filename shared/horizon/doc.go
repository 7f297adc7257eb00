// Package horizon decides how near is near: which lane carries a wake-up, and which
// slice of the due index holds it. It is pure.
//
//	now ≤ 2 s ── direct ≤ 14 min ── timer ≤ 30 min ── store
//
// Every unfinished job has one wake-up in the due index whatever its lane is; lanes
// are only the fast way, and losing one costs lateness, never the job.
package horizon

// Package scan walks the due index slice by slice, within a budget of time, and moves a watermark along. It knows
// nothing of jobs or schedules; the promoter and the sweeper say what to do with a slice.
//
// What always holds: the earliest minute is visited first, in all shards. A slice that failed is noted, and each
// later pass visits it until it succeeds; nothing waits for it. A pass ends while there is time to write its
// watermarks. What cannot be handled gets another wake-up, so nothing is forgotten.
//
// How it fails: with an error that names the shard or the slice. The next pass continues there.
package scan

// Package scan walks the due index: slice by slice, behind a watermark, within a budget of time.
// It knows nothing of jobs or schedules; the promoter and the sweeper hand it what to do in a slice.
//
// What always holds: what is due first comes first, in whichever shard it lies; a slice that failed
// is noted and visited again by each pass, and nothing waits for it; a pass ends while it can still
// write down how far it came; whatever cannot be handled keeps a wake-up, so nothing drops from sight.
//
// How it fails: with an error that names the shard or the slice. The next pass goes on from there.
package scan

// Package permit finds permits of the limits of a run: max_concurrency of the run, and max_parallel of a mapped node.
// A Set is what one call knows of them. It reads as few buckets as it needs, and gives each permit that it finds to one
// node or item of the call only. The protocol is in shared/job/PROTOCOL.md, "Limits".
//
// What always holds: a permit is acquired only by the write that Permit.Write returns, in one transaction with the row
// of the job that holds it. The Set itself writes nothing but the release of permits whose holders have ended.
//
// How it fails: with an error of the store. A refused Permit.Write means that another call was faster; then the caller
// calls Lose and searches once more.
package permit

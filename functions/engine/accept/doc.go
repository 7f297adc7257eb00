// Package accept is the only way in for a job: what it holds beside its row, the row, with it what
// must stand or fall with the row (a key, a link), and then its firing if it is due now.
//
// What always holds: once the row is written the job cannot be lost, for it has a wake-up; each step
// may be repeated; a row never refers to contents that are not there.
//
// How it fails: with an error that names the job. Contents whose row never came have a time to live.
// A firing that could not be sent is logged and is no error: the sweeper sends it.
package accept

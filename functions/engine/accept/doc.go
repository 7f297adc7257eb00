// Package accept writes new jobs; nothing else does. It writes the contents first, then the row in one transaction
// with what belongs to it (an idempotency key, a link), and then sends the firing if the job is due now.
//
// What always holds: once the row is written the job cannot be lost, because it has a wake-up. Each step may be
// repeated. A row never refers to contents that are not there.
//
// How it fails: with an error that names the job. Contents whose row was never written expire. A firing that
// could not be sent is logged and is no error: the sweeper sends it.
package accept

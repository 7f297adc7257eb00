// Package quota compares what a deployment takes with what its account is allowed, before anything
// is deployed: a new account runs 10 functions at once, where prod reserves 600.
//
// What always holds: reading changes nothing, and stops nothing. What is too small is said in a
// sentence, with the command that asks for more; the functions' reservations are cut to what there
// is, so that the deploy goes through.
//
// How it fails: an account that does not answer, or whose credentials may not read its quotas, is
// taken to be large enough, and the caller is told so.
package quota

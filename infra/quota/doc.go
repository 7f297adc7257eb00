// Package quota compares what a deployment takes with what its account is allowed, before anything
// is deployed: a new account runs 10 functions at once, where prod reserves 600.
//
// What always holds: reading changes nothing, and stops nothing. All that is too small is said in one
// message, with the commands that ask for more; the functions' reservations are cut to what there is,
// so that the deploy goes through. Addresses, networks and clusters that others hold count; those of
// the deployment's own fleet do not.
//
// How it fails: an account that does not answer, or whose credentials may not read its quotas, is
// taken to be large enough, and the caller is told so.
package quota

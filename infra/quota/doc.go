// Package quota compares what a deployment takes with what its account is allowed, before anything
// is deployed: a new account runs 10 functions at once, where prod reserves 600.
//
// What always holds: reading changes nothing and stops no deploy. One message lists all quotas that are too small, with
// the commands that request more. The functions' reservations are reduced to the quota, so that the deploy succeeds.
// Addresses, networks and clusters of other stacks count; those of the deployment's own fleet do not.
//
// How it fails: if an account does not answer, or its credentials may not read its quotas, they count as large enough,
// and the report says so.
package quota

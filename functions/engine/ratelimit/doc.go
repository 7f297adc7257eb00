// Package ratelimit bounds what each tenant asks for: requests a second, what requests weigh, and how many wait at
// once.
//
// What always holds: a tenant that uses up its limit costs the others nothing. A process asks the table for lots of
// requests, not for each one.
//
// How it fails: open. If the table does not answer, a request is admitted: the limit protects other tenants, and
// refusing everybody would not help them.
package ratelimit

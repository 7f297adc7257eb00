// Package release makes the children of a finished job due, once jobs have children. Until then it
// is only the door at which their end is announced.
//
// What always holds: it is told of an end after the row says so, and may be told more than once.
//
// How it fails: with an error that names the job. What is not released here the job's pending effects
// bring back.
package release

// Package event says which events the changes of jobs are, and what is sent for each: a CloudEvents 1.0 event.
//
// What always holds: the same change is always the same event, with the same id, so that a change that is read twice
// makes one delivery. A later event of the same job has a greater sequence. A delivery causes no event: there is no
// loop.
//
// How it fails: with a fault.Undecodable for a change whose row cannot be read.
package event

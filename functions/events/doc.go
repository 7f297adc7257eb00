// Package events reads the changes of the jobs table and announces what webhooks may ask for: the ends of jobs, and
// failed attempts. Of the changes of deliveries it notes how their webhooks fare.
//
// What always holds: a change that is read twice makes the same deliveries. A record that it cannot read is quarantined
// and blocks nothing. It never writes what it reads but for the deliveries, whose own changes are no events.
//
// How it fails: a record whose deliveries could not be made is redelivered, with the later records of its shard.
// Nothing is lost unless that goes on for as long as the stream keeps its records, a day.
package events

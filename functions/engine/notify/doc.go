// Package notify makes the deliveries of events to the webhooks that ask for them, and notes how they fare.
//
// What always holds: a delivery is a job whose id depends on the event and the webhook alone, so an event that is
// announced twice is delivered by one job. A tenant's webhooks are read at most once in Age, so a new webhook misses no
// event that happens longer than that after it was put. Of a tenant without webhooks nothing else is read, and nothing
// is written.
//
// How it fails: with the error of a read or a write; what was not done is done when the event is announced once more.
package notify

// Package backfill makes past times of a schedule on request, step by step: a step notes which of its jobs have ended,
// and makes jobs of the times that come next, as many as may be open. The protocol is in shared/job/PROTOCOL.md,
// "Backfills".
//
// What always holds: one transaction makes the jobs and moves the operation on, so that a time is made once, whatever
// crashes and however many steps run at once. The ids of the jobs depend on the times alone, so that two backfills of
// one schedule do not both make a time. Never more jobs are open than the operation allows.
//
// How it fails: with an error of the store. A step that was not made is made by the sweeper, which takes a step of
// every operation that goes on, each minute.
package backfill

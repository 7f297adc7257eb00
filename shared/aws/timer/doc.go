// Package timer arms one-shot entries of EventBridge Scheduler. An entry sends its
// body to the dispatch queue anywhere within the minute of its time, and is then deleted by
// AWS itself.
//
//	                 ┌── is there already ──▶ same content: done · other content: replaced whole
//	Arm ── create ───┤
//	                 └── being changed ────▶ retried
//
// What always holds: the name names the content, so arming twice is one timer. AWS says
// "conflict" for two things, that the entry exists (perhaps by our own call, whose answer was
// lost) and that it is being changed; Arm reads the entry to distinguish them, and never takes
// a conflict for success without that. An update replaces every field, since AWS resets whatever an
// update leaves out. A time that is past is refused before AWS is asked, which does not say
// what it would do with one. Retries at AWS end at the timer's own maximum age, and then the
// body goes to the timers' dead-letter queue.
//
// Every process keeps below a rate of its own ([Settings.Rate]), because the account's quota
// is shared by all and exceeding it throttles everybody.
//
// How it fails: by the kinds of package fault. Throttled, Conflict and Unavailable mean that
// the timer may or may not be armed; a second Arm is safe.
package timer

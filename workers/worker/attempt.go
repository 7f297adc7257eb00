package worker

import (
	"log/slog"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	runs "punctual/shared/run"
	"punctual/shared/schedule"
)

// attempt is a firing that has a slot, and what its steps have found out so far.
type attempt struct {
	f       *firing
	log     *slog.Logger
	limited string   // task whose handler may limit how many attempts run at once; "" for none
	leave   func()   // frees the place under that limit
	bounded *job.Row // the row as it was before the claim, if it has limits of work
	claimed bool     // this worker holds the claim by lease l
	l       lease
	seen    *facts // what the start is decided by, as last read
	payload []byte
}

// left is how much of the lease is sure to be left, on any clock.
func (l lease) left() time.Duration {
	return contract.Lease - contract.SkewMargin - time.Since(l.from)
}

// facts is what an attempt's start is decided by, and since when that is known (monotonic). They
// are passed by pointer. A row is large: by value it makes the stack of every attempt grow, and
// growing copies the stack.
type facts struct {
	row      job.Row
	pauses   job.Pauses
	lifted   job.Pauses         // of a schedule's job that starts late: those that it may have fallen due under
	schedule *schedule.Schedule // that the row belongs to; nil for none
	run      *runs.Run          // that the row is a node of; nil for none
	at       time.Time
	clock    time.Time // the worker's clock when the row was asked for
}

// lease is the hold that this worker has on an attempt.
type lease struct {
	token     int64
	takeovers int64
	cancel    bool
	lost      []job.Attempt // starts of this attempt whose workers ended
	limits    job.Limits    // under which it has taken permits
	begun     int64         // newest attempt whose start was marked
	permits   []int         // the buckets of them, in the order of the limits
	from      time.Time     // monotonic, from before the claim or heartbeat was asked for
}

// before is what the claim knew of earlier starts of the attempt when this worker claimed it.
func (l lease) before(attempt int64) job.Claim {
	return job.Claim{Attempt: attempt, Lost: l.lost, Begun: l.begun}
}

// then is what becomes of an attempt after a step.
type then int

const (
	goOn        then = iota // to the next step
	done                    // nothing more: its end is recorded, or the firing is held for another try
	deleted                 // the message is stale
	givenBack               // the message goes back to the queue for some time
	triedLater              // this worker tries the message again after some time
	heldUntil               // this worker holds the message until nearly its due time
	unanswered              // a call got no answer
	undecodable             // an item cannot be decoded
	reevaluated             // the engine decides about the job anew
	settled                 // the attempt ends without having started
)

// disposition says what becomes of an attempt. The zero disposition goes on to the next step.
type disposition struct {
	then    then
	after   time.Duration // of givenBack and triedLater
	call    access        // of unanswered: the kind of call
	doing   string        // of unanswered and undecodable: what failed
	err     error         // of unanswered and undecodable
	outcome job.Outcome   // of settled
}

func noAnswer(call access, doing string, err error) disposition {
	return disposition{then: unanswered, call: call, doing: doing, err: err}
}

func cannotDecode(doing string, err error) disposition {
	return disposition{then: undecodable, doing: doing, err: err}
}

// unread says what becomes of an attempt whose row could not be read.
func unread(err error) disposition {
	switch fault.KindOf(err) {
	case fault.NotFound:
		return disposition{then: deleted}
	case fault.Undecodable:
		return cannotDecode("read a row that this worker cannot decode", err)
	}
	return noAnswer(reading, "reading a row", err)
}

func giveBackFor(d time.Duration) disposition { return disposition{then: givenBack, after: d} }

func settleAs(o job.Outcome) disposition { return disposition{then: settled, outcome: o} }

// refusal is the outcome of an attempt that never started and that fails for good.
func refusal(code, text string, now time.Time) job.Outcome {
	return job.Outcome{
		Kind: job.OutcomeFailed, Permanent: true, FinishedAt: now.UTC().Truncate(time.Millisecond),
		Error: &job.Reason{Code: code, Message: text},
	}
}

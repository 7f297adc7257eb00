package worker

import (
	"time"

	"punctual/shared/job"
)

// answer is what a refused claim means.
type answer string

const (
	mine     answer = "mine"      // this receive made the claim; only the answer was lost
	repeat   answer = "repeat"    // the attempt has ended: its report is repeated
	outdated answer = "outdated"  // a newer attempt is claimed
	takeOver answer = "take_over" // its owner's lease has ended
	alive    answer = "alive"     // its owner lives
	retry    answer = "retry"     // the other claim is gone
)

// explain says what a refused claim means, by the claim that was there.
func explain(old job.Claim, attempt int64, nonce string, now time.Time) answer {
	switch {
	case old.Attempt > attempt:
		return outdated
	case old.Attempt < attempt:
		return retry
	case old.Outcome != nil:
		return repeat
	case old.LeaseUntil.Before(now):
		return takeOver // even if it was mine: somebody may have fenced it
	case old.Nonce == nonce:
		return mine
	}
	return alive
}

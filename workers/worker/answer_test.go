package worker

import (
	"testing"
	"time"

	"punctual/shared/job"
)

func TestExplain_TellsWhatARefusedClaimMeans(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	live, over := now.Add(time.Second), now.Add(-time.Millisecond)
	done := &job.Outcome{Kind: job.OutcomeSucceeded}
	for name, c := range map[string]struct {
		old  job.Claim
		want answer
	}{
		"a newer attempt stands": {job.Claim{Attempt: 3, LeaseUntil: live}, outdated},
		"a newer attempt stands, even under my nonce": {job.Claim{Attempt: 3, LeaseUntil: live, Nonce: "me"},
			outdated},
		"the attempt has its outcome": {job.Claim{Attempt: 2, LeaseUntil: live, Outcome: done},
			repeat},
		"the outcome counts after the lease, too": {job.Claim{Attempt: 2, LeaseUntil: over, Outcome: done},
			repeat},
		"somebody else lives": {job.Claim{Attempt: 2, LeaseUntil: live, Nonce: "other"},
			alive},
		"a lease that ends this very moment still holds": {job.Claim{Attempt: 2, LeaseUntil: now, Nonce: "other"},
			alive},
		"somebody else's lease has ended": {job.Claim{Attempt: 2, LeaseUntil: over, Nonce: "other"},
			takeOver},
		"I made it":                             {job.Claim{Attempt: 2, LeaseUntil: live, Nonce: "me"}, mine},
		"I made it and was fenced, or too slow": {job.Claim{Attempt: 2, Nonce: "me"}, takeOver},
		"it is gone again":                      {job.Claim{}, retry},
	} {
		t.Run("a claim is refused because "+name, func(t *testing.T) {
			t.Parallel()
			if got := explain(c.old, 2, "me", now); got != c.want {
				t.Errorf("judged %q, want %q", got, c.want)
			}
		})
	}
}

package job

import (
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
)

// bench is one claim item and the writes done to it.
type claimBench struct {
	t    *testing.T
	item item.Item
}

func (b *claimBench) do(w item.Write) bool {
	if !item.Any(w.When, b.item) {
		return false
	}
	b.item = w.Applied(b.item, contract.AttrPK, "")
	return true
}

func (b *claimBench) claim() Claim {
	c, err := ParseClaim(b.item)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

func owner(name string, until time.Time) Owner {
	return Owner{Worker: name, Nonce: name + "-1", LeaseUntil: until, DueAt: noon}
}

//proof:of 82
func TestClaim_IsWonByOneWorkerAndFenced(t *testing.T) {
	t.Parallel()
	k := scheduled().Key
	lease := noon.Add(contract.Lease)
	held := func(t *testing.T) *claimBench {
		b := &claimBench{t: t}
		if !b.do(ClaimNew(k, 1, owner("a", lease))) {
			t.Fatal("an unclaimed attempt was refused")
		}
		return b
	}
	//proof:of 80 81
	t.Run("claim, new attempt: one of two workers wins, and not twice", func(t *testing.T) {
		t.Parallel()
		b := held(t)
		if b.do(ClaimNew(k, 1, owner("b", lease))) {
			t.Error("a second worker claimed the same attempt")
		}
		if c := b.claim(); c.Token != 1 || c.Takeovers != 1 || c.Worker != "a" {
			t.Errorf("claim is %+v", c)
		}
	})
	t.Run("claim, new attempt: forgets the older attempt's outcome and cancel flag", func(t *testing.T) {
		t.Parallel()
		b := held(t)
		b.do(FlagCancel(k, 1, 1))
		b.do(RecordOutcome(k, 1, 1, failed(false)))
		if !b.do(ClaimNew(k, 2, owner("b", lease))) {
			t.Fatal("the next attempt was refused")
		}
		if c := b.claim(); c.Outcome != nil || c.Cancel || c.Token != 2 || c.Takeovers != 1 || c.Attempt != 2 {
			t.Errorf("claim is %+v", c)
		}
		if b.do(ClaimNew(k, 1, owner("c", lease))) {
			t.Error("an older attempt was claimed")
		}
	})
	t.Run("claim, take over: only after the lease, only without an outcome", func(t *testing.T) {
		t.Parallel()
		b := held(t)
		first := b.claim()
		if b.do(TakeOver(k, first, owner("b", lease), lease)) {
			t.Error("taken over while the lease stood")
		}
		other := first
		other.Attempt = 2
		if b.do(TakeOver(k, other, owner("b", lease), lease.Add(time.Hour))) {
			t.Error("another attempt was taken over")
		}
		if !b.do(TakeOver(k, first, owner("b", lease.Add(time.Minute)), lease.Add(time.Millisecond))) {
			t.Fatal("refused after the lease's end")
		}
		if b.do(TakeOver(k, first, owner("c", lease.Add(time.Hour)), lease.Add(time.Hour))) {
			t.Error("taken over by a claim that was read before another took it over")
		}
		if c := b.claim(); c.Token != 2 || c.Takeovers != 2 || c.Worker != "b" {
			t.Errorf("claim is %+v", c)
		}
		b.do(RecordOutcome(k, 1, 2, succeeded("1")))
		if b.do(TakeOver(k, b.claim(), owner("c", lease), lease.Add(time.Hour))) {
			t.Error("an attempt with an outcome was taken over")
		}
	})
	t.Run("note of what a firing waits for: never over a holder or an outcome, and it hinders no claim",
		func(t *testing.T) {
			t.Parallel()
			waits := Waits{Attempt: 1, For: WaitsForHandler, Until: lease.Add(time.Minute)}
			b := held(t)
			if b.do(NoteWaits(k, waits, noon, noon)) {
				t.Error("noted although somebody holds the attempt")
			}
			b.do(LetGo(k, 1, 1))
			if !b.do(NoteWaits(k, waits, noon, noon)) || b.claim().WaitsFor(1) != WaitsForHandler ||
				b.claim().WaitsFor(2) != "" {
				t.Errorf("nothing is noted: %+v", b.claim())
			}
			if !b.do(TakeOver(k, b.claim(), owner("b", lease), noon)) || b.claim().WaitsFor(1) != "" {
				t.Errorf("the note outlives a claim: %+v", b.claim())
			}
			b.do(RecordOutcome(k, 1, 2, succeeded("1")))
			if b.do(NoteWaits(k, waits, noon, lease.Add(time.Hour))) {
				t.Error("noted although the attempt has ended")
			}
		})
	t.Run("heartbeat, outcome and let go: only by the holder, and never after an outcome", func(t *testing.T) {
		t.Parallel()
		later := lease.Add(time.Minute)
		writes := func(attempt, token int64) map[string]item.Write {
			return map[string]item.Write{
				"heartbeat": Heartbeat(k, attempt, token, later, noon, nil),
				"outcome":   RecordOutcome(k, attempt, token, succeeded("1")),
				"let go":    LetGo(k, attempt, token), "cancel flag": FlagCancel(k, attempt, token),
			}
		}
		for name := range writes(1, 1) {
			if !held(t).do(writes(1, 1)[name]) {
				t.Errorf("%s was refused to the holder", name)
			}
			if held(t).do(writes(1, 2)[name]) || held(t).do(writes(2, 1)[name]) {
				t.Errorf("%s by somebody else went through", name)
			}
			b := held(t)
			b.do(RecordOutcome(k, 1, 1, succeeded("1")))
			if b.do(writes(1, 1)[name]) {
				t.Errorf("%s went through after an outcome", name)
			}
		}
	})
	t.Run("let go: asked for twice it is one owner less, not two", func(t *testing.T) {
		t.Parallel()
		b := held(t)
		repeated := LetGo(k, 1, 1)
		if !b.do(repeated) || b.do(repeated) {
			t.Error("letting go was refused, or happened twice")
		}
		if c := b.claim(); c.Takeovers != 0 {
			t.Errorf("takeovers are %d", c.Takeovers)
		}
	})
	t.Run("let go: costs no owner and can be taken at once", func(t *testing.T) {
		t.Parallel()
		b := held(t)
		b.do(LetGo(k, 1, 1))
		if c := b.claim(); c.Takeovers != 0 || c.Live(1, noon) {
			t.Errorf("claim is %+v", c)
		}
		if !b.do(TakeOver(k, b.claim(), owner("b", lease), noon)) || b.claim().Takeovers != 1 {
			t.Error("the next owner is not the first that counts")
		}
	})
	t.Run("fence: refused while live, and afterwards nobody can own what was fenced", func(t *testing.T) {
		t.Parallel()
		b := held(t)
		if b.do(Fence(Row{Key: k, Attempt: 1}, Claim{}, noon, noon)) {
			t.Error("a live claim was fenced")
		}
		b.do(RecordOutcome(k, 1, 1, succeeded("1")))
		if b.do(Fence(Row{Key: k, Attempt: 1}, Claim{}, noon, lease.Add(time.Hour))) {
			t.Error("an unsettled outcome was fenced away")
		}
		b = held(t)
		if !b.do(Fence(Row{Key: k, Attempt: 1}, Claim{}, noon, lease.Add(time.Millisecond))) {
			t.Fatal("refused after the lease's end")
		}
		if b.do(Heartbeat(k, 1, 1, lease.Add(time.Hour), noon, nil)) || b.do(RecordOutcome(k, 1, 1, succeeded("1"))) {
			t.Error("the fenced owner still holds")
		}
		unclaimed := &claimBench{t: t}
		if !unclaimed.do(Fence(Row{Key: k, Attempt: 1}, Claim{}, noon, noon)) ||
			unclaimed.do(ClaimNew(k, 1, owner("a", lease))) {
			t.Error("an unclaimed attempt was not fenced, or could be claimed as new afterwards")
		}
	})
	t.Run("live: an unsettled outcome counts, whatever the lease says", func(t *testing.T) {
		t.Parallel()
		b := held(t)
		for _, c := range []struct {
			attempt int64
			at      time.Time
			live    bool
		}{{1, noon, true}, {1, lease, true}, {1, lease.Add(time.Millisecond), false}, {2, noon, false}} {
			if got := b.claim().Live(c.attempt, c.at); got != c.live {
				t.Errorf("attempt %d at %s: live %v", c.attempt, c.at, got)
			}
		}
		b.do(RecordOutcome(k, 1, 1, succeeded("1")))
		if !b.claim().Live(1, lease.Add(time.Hour)) {
			t.Error("an unsettled outcome is not live")
		}
	})
	t.Run("the item outlives due time and lease by 30 days", func(t *testing.T) {
		t.Parallel()
		far := noon.AddDate(1, 0, 0)
		for name, w := range map[string]item.Write{
			"claim":     ClaimNew(k, 1, Owner{LeaseUntil: lease, DueAt: far}),
			"take over": TakeOver(k, Claim{Attempt: 1}, Owner{LeaseUntil: lease, DueAt: far}, noon),
			"heartbeat": Heartbeat(k, 1, 1, lease, far, nil),
			"fence":     Fence(Row{Key: k, Attempt: 1}, Claim{}, far, noon),
		} {
			if got := w.Set[contract.AttrExpiresAt]; got != far.Add(contract.ClaimKept).Unix() {
				t.Errorf("%s: expires at %v", name, got)
			}
		}
	})
}

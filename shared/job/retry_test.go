package job

import (
	"fmt"
	"testing"
	"time"
)

//proof:of 99
func TestRetryPolicy_DelayGrowsToItsCap(t *testing.T) {
	t.Parallel()
	//proof:of 112 S30
	t.Run("stays over 0 and within the cap, whatever is asked (S30)", func(t *testing.T) {
		t.Parallel()
		policies := []RetryPolicy{
			{MaxAttempts: 50, InitialDelay: 30 * time.Second, Factor: 2, MaxDelay: 15 * time.Minute, Jitter: 1},
			{MaxAttempts: 50, InitialDelay: 0, Factor: 2, MaxDelay: 15 * time.Minute, Jitter: 0.3},
			{MaxAttempts: 50, InitialDelay: time.Hour, Factor: 10, MaxDelay: time.Minute, Jitter: 0.3},
			DefaultRetry,
		}
		for _, p := range policies {
			for _, failures := range []int64{0, 1, 5, 6, 34, 38, 63, 64, 100, 10_000} {
				if d := p.Delay("01ARZ3NDEKTSV4RRFFQ69G5FAV", failures, failures); d <= 0 || d > p.MaxDelay {
					t.Errorf("%+v after %d failures waits %s", p, failures, d)
				}
			}
		}
	})
	//proof:of 100
	t.Run("doubles from the first delay, up to 30 percent later", func(t *testing.T) {
		t.Parallel()
		want := time.Second
		for failures := int64(1); failures <= 5; failures++ {
			d := DefaultRetry.Delay("01ARZ3NDEKTSV4RRFFQ69G5FAV", failures, failures)
			if d < want || d > want*13/10 {
				t.Errorf("after %d failures: %s, want %s to %s", failures, d, want, want*13/10)
			}
			want *= 2
		}
	})
	//proof:of S30
	t.Run("is spread over jobs, at the cap too (S30)", func(t *testing.T) {
		t.Parallel()
		for _, failures := range []int64{1, 20} {
			seen := map[time.Duration]bool{}
			for n := range 1000 {
				seen[DefaultRetry.Delay(ID(fmt.Sprintf("job-%d", n)), failures, failures)] = true
			}
			if len(seen) < 900 {
				t.Errorf("after %d failures 1,000 jobs share %d delays", failures, len(seen))
			}
		}
	})
	t.Run("survives being written and read", func(t *testing.T) {
		t.Parallel()
		for _, p := range []RetryPolicy{DefaultRetry,
			{MaxAttempts: 1, Factor: 1.5, Jitter: 0.25, InitialDelay: time.Millisecond, MaxDelay: time.Hour},
			{MaxAttempts: 6, InitialDelay: time.Second, Factor: 2, MaxDelay: 5 * time.Minute, Jitter: 0.3,
				FailOnLost: true}} {
			var got RetryPolicy
			if err := got.decode(p.encode()); err != nil || got != p {
				t.Errorf("%+v came back as %+v, %v", p, got, err)
			}
		}
		if new(RetryPolicy).decode("6,x") == nil {
			t.Error("a broken policy was read")
		}
	})
}

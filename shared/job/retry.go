package job

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"time"

	"punctual/shared/contract"
)

// RetryPolicy says how often and how soon a failed job is retried.
type RetryPolicy struct {
	MaxAttempts  int           // tries in all, the first included; 1–50
	InitialDelay time.Duration // before the second attempt; 0 s–1 h
	Factor       float64       // each further delay is this many times the one before; 1–10
	MaxDelay     time.Duration // cap of the delay before jitter, and after it; ≤ 24 h
	Jitter       float64       // up to this share of the delay is added; 0–1
	// FailOnLost says what an attempt comes to whose worker ended while it ran: true, it failed and
	// counts against MaxAttempts; false, it is started again, up to contract.MaxTakeovers times in all.
	FailOnLost bool `json:",omitempty"`
}

// The names of FailOnLost.
const (
	LostRerun = "rerun"
	LostFail  = "fail"
)

// OnWorkerLost names what the policy does with an attempt whose worker ended.
func (p RetryPolicy) OnWorkerLost() string {
	if p.FailOnLost {
		return LostFail
	}
	return LostRerun
}

// DefaultRetry is 6 attempts, after 1, 2, 4, 8, 16 s, each up to 30 % later.
var DefaultRetry = RetryPolicy{MaxAttempts: 6, InitialDelay: time.Second, Factor: 2, MaxDelay: 5 * time.Minute,
	Jitter: 0.3}

// Delay is how long to wait after that many failures (from 1) before the next attempt. The
// jitter is derived from the job and the attempt that failed, so that deciding again decides
// the same. The delay is always over 0 and at most MaxDelay, and still spread when capped:
// the cap is lowered by what the jitter may add.
func (p RetryPolicy) Delay(id ID, attempt, failures int64) time.Duration {
	// In floats an overflow is +Inf, which the cap then takes care of; shifts would wrap.
	d := float64(p.InitialDelay) * math.Pow(p.Factor, float64(max(failures, 1)-1))
	d = math.Min(d, float64(p.MaxDelay)/(1+p.Jitter))
	d *= 1 + p.Jitter*fraction(string(id), attempt)
	return max(time.Duration(d), time.Millisecond)
}

// fraction is a number in [0, 1) that those facts always give.
func fraction(id string, attempt int64) float64 {
	sum := sha256.Sum256([]byte(id + "#" + strconv.FormatInt(attempt, 10)))
	return float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
}

// encode writes the policy compactly; the default policy is absent from the row.
func (p *RetryPolicy) encode() string {
	if *p == DefaultRetry {
		return ""
	}
	lost := ""
	if p.FailOnLost {
		lost = lostSuffix
	}
	const longest = 64
	b := make([]byte, 0, longest)
	b = append(strconv.AppendInt(b, int64(p.MaxAttempts), 10), ',')
	b = append(strconv.AppendInt(b, p.InitialDelay.Milliseconds(), 10), ',')
	b = append(strconv.AppendFloat(b, p.Factor, 'g', -1, 64), ',')
	b = append(strconv.AppendInt(b, p.MaxDelay.Milliseconds(), 10), ',')
	b = strconv.AppendFloat(b, p.Jitter, 'g', -1, 64)
	return string(append(b, lost...))
}

const lostSuffix = "," + LostFail

// decode reads what encode wrote.
func (p *RetryPolicy) decode(s string) error {
	if s == "" {
		*p = DefaultRetry
		return nil
	}
	var is RetryPolicy
	s, is.FailOnLost = strings.CutSuffix(s, lostSuffix)
	var err error
	next := func() (field string) {
		field, s, _ = strings.Cut(s, ",")
		return field
	}
	number := func() int64 {
		n, wrong := strconv.ParseInt(next(), 10, 64)
		err = cmp.Or(err, wrong)
		return n
	}
	share := func() float64 {
		f, wrong := strconv.ParseFloat(next(), 64)
		err = cmp.Or(err, wrong)
		return f
	}
	is.MaxAttempts, is.InitialDelay = int(number()), time.Duration(number())*time.Millisecond
	is.Factor = share()
	is.MaxDelay = time.Duration(number()) * time.Millisecond
	if is.Jitter = share(); err != nil {
		return err
	}
	*p = is
	return nil
}

// retryAfter is the longer of what the policy says and what the target asked for, the latter capped.
func retryAfter(policy, asked time.Duration) time.Duration {
	return max(policy, min(asked, contract.MaxRetryAfter))
}

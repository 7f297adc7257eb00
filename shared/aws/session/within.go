package session

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// Tries is how often a call is made at most: with the pauses between them it gives a throttled
// or moved partition about three seconds.
const Tries = 8

const (
	firstPause  = 40 * time.Millisecond // the longest wait before the second try; doubles from there
	longestWait = 2 * time.Second
	connectIn   = 3 * time.Second // within a region a connection takes milliseconds
	idlePerHost = 64              // connections kept for the next burst; the SDK keeps 10
)

// Within returns cfg for a client whose every single request must be answered within limit
// (0: no limit but the context's). What the SDK would retry is retried, and so is what retryable
// says (nil: nothing more). A configuration that brings an HTTP client of its own keeps it.
func Within(cfg aws.Config, limit time.Duration, retryable func(error) bool) aws.Config {
	cfg = cfg.Copy()
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = awshttp.NewBuildableClient()
	}
	if b, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok {
		cfg.HTTPClient = b.WithTimeout(limit).
			WithReadTimeout(0). // it would close idle connections, and the limit covers reading
			WithDialerOptions(func(d *net.Dialer) { d.Timeout = connectIn }).
			WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost = idlePerHost })
	}
	cfg.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = Tries
			o.Backoff = retry.BackoffDelayerFunc(func(n int, _ error) (time.Duration, error) { return Pause(n), nil })
			o.Retryables = append(o.Retryables, retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
				if retryable != nil && retryable(err) {
					return aws.TrueTernary
				}
				return aws.UnknownTernary
			}))
		})
	}
	return cfg
}

// Pause is how long to wait after the n-th try, counted from 1: anything up to a bound that
// doubles, so that callers that collided spread out.
func Pause(n int) time.Duration {
	bound := min(firstPause<<min(max(n-1, 0), 16), longestWait)
	return time.Duration(rand.Int64N(int64(bound)) + 1)
}

// Wait pauses after the n-th try of a loop of the adapter's own; it returns early, with the
// reason, when the context ends.
func Wait(ctx context.Context, n int) error {
	pause := time.NewTimer(Pause(n))
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

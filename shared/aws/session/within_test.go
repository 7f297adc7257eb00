package session_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"punctual/shared/aws/session"
)

func TestWithin_SpendsOneTryOnASilentConnection(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			<-over
			return
		}
		w.Write([]byte("{}"))
	}))
	t.Cleanup(func() {
		close(over)
		server.Close()
	})
	cfg := aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(server.URL),
		Credentials: credentials.NewStaticCredentialsProvider("k", "s", "")}
	db := dynamodb.NewFromConfig(session.Within(cfg, 50*time.Millisecond, nil))
	if _, err := db.DescribeLimits(t.Context(), &dynamodb.DescribeLimitsInput{}); err != nil {
		t.Errorf("the second try was answered: %v", err)
	}
	if calls.Load() != 2 {
		t.Errorf("%d tries; want 2", calls.Load())
	}
}

func TestPause_GrowsAndStaysBounded(t *testing.T) {
	t.Parallel()
	for n, bound := range map[int]time.Duration{
		0: 40 * time.Millisecond, 1: 40 * time.Millisecond, 2: 80 * time.Millisecond, 4: 320 * time.Millisecond,
		7: 2 * time.Second, 1000: 2 * time.Second,
	} {
		longest := time.Duration(0)
		for range 500 {
			p := session.Pause(n)
			if p <= 0 || p > bound {
				t.Fatalf("pause %d is %s; want over 0 and up to %s", n, p, bound)
			}
			longest = max(longest, p)
		}
		if longest < bound/2 {
			t.Errorf("500 pauses %d stay under %s: no jitter up to %s", n, longest, bound)
		}
	}
}

func TestWait_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		if err := session.Wait(ctx, 8); err == nil {
			t.Error("the context had ended")
		}
		if err := session.Wait(t.Context(), 8); err != nil {
			t.Errorf("waiting: %v", err)
		}
	})
}

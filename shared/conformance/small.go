package conformance

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"punctual/shared/fault"
	"punctual/shared/store"
)

// Blob exercises a blob store.
func Blob(t *testing.T, open func(*testing.T) store.Blobs, k Knobs) {
	t.Helper()
	run(t, k, open, blobs())
}

func blobs() []exercise[store.Blobs] {
	return []exercise[store.Blobs]{
		{name: "a blob is read back byte for byte, and a later put replaces it", run: func(t T, b store.Blobs) {
			key := "payload/" + unique() + "/a b+ü#1"
			all := make([]byte, 1<<20)
			for i := range all {
				all[i] = byte(i)
			}
			for _, body := range [][]byte{all, {}, []byte("small")} {
				must(t, b.Put(t.Context(), key, body))
				got, err := b.Get(t.Context(), key)
				must(t, err)
				if !bytes.Equal(got, body) {
					t.Errorf("read %d bytes back, not the %d that were put", len(got), len(body))
				}
			}
		}},
		{name: "an absent blob is not found, and deleting it is no error", run: func(t T, b store.Blobs) {
			key := unique()
			_, err := b.Get(t.Context(), key)
			wantKind(t, err, fault.NotFound)
			must(t, b.Delete(t.Context(), key))
			must(t, b.Put(t.Context(), key, []byte("x")))
			must(t, b.Delete(t.Context(), key))
			must(t, b.Delete(t.Context(), key))
			_, err = b.Get(t.Context(), key)
			wantKind(t, err, fault.NotFound)
		}},
		{name: "a stored blob does not change with the caller's bytes", run: func(t T, b store.Blobs) {
			key, body := unique(), []byte("kept")
			must(t, b.Put(t.Context(), key, body))
			body[0] = 'X'
			got, err := b.Get(t.Context(), key)
			must(t, err)
			got[1] = 'Y'
			kept, err := b.Get(t.Context(), key)
			must(t, err)
			if string(kept) != "kept" {
				t.Errorf("the blob became %q", kept)
			}
		}},
		{name: "a call on blobs with an ended context returns a retryable error", run: func(t T, b store.Blobs) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			wantKind(t, b.Put(ctx, unique(), []byte("x")), fault.Unavailable)
		}},
	}
}

// Secrets is what the workers need of a secret manager.
type Secrets interface {
	// Resolve returns the value of a secret. An absent one is a fault.NotFound.
	Resolve(ctx context.Context, arn string) (string, error)
	// Hosts returns the hosts that a secret is bound to. An absent secret is a fault.NotFound.
	Hosts(ctx context.Context, arn string) (hosts []string, bound bool, err error)
}

// SecretBench is a secret manager with secrets in it.
type SecretBench struct {
	Secrets
	ARN, Value string // a secret that exists, bound to the hosts a.test and .b.test
	Free       string // the ARN of a secret that is bound to no host
	Absent     string // the ARN of no secret
}

// Secret exercises a secret manager.
func Secret(t *testing.T, open func(*testing.T) SecretBench, k Knobs) {
	t.Helper()
	run(t, k, open, secrets())
}

func secrets() []exercise[SecretBench] {
	return []exercise[SecretBench]{
		{name: "a secret resolves to its value, each time", run: func(t T, b SecretBench) {
			for range 2 {
				got, err := b.Resolve(t.Context(), b.ARN)
				must(t, err)
				if got != b.Value {
					t.Errorf("resolved to another value")
				}
			}
		}},
		{name: "an absent secret is not found", run: func(t T, b SecretBench) {
			_, err := b.Resolve(t.Context(), b.Absent)
			wantKind(t, err, fault.NotFound)
			_, _, err = b.Hosts(t.Context(), b.Absent)
			wantKind(t, err, fault.NotFound)
		}},
		{name: "a secret returns the hosts that it is bound to", run: func(t T, b SecretBench) {
			hosts, bound, err := b.Hosts(t.Context(), b.ARN)
			must(t, err)
			if !bound || !slices.Equal(hosts, []string{"a.test", ".b.test"}) {
				t.Errorf("bound is %v, to %q", bound, hosts)
			}
			hosts, bound, err = b.Hosts(t.Context(), b.Free)
			must(t, err)
			if bound || len(hosts) > 0 {
				t.Errorf("a free secret: bound is %v, to %q", bound, hosts)
			}
		}},
	}
}

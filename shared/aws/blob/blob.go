package blob

import (
	"bytes"
	"context"
	"io"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"punctual/shared/aws/session"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
)

// MaxBlob is the largest blob in bytes: twice the largest payload, which leaves space for
// whatever wraps one.
const MaxBlob = 2 * contract.MaxPayload

const (
	maxKey   = 1024
	answerIn = 10 * time.Second // one request with its body
	callIn   = 30 * time.Second
)

// Blobs is one bucket. It is safe for concurrent use.
type Blobs struct {
	s3     *s3.Client
	bucket *string
	calls  atomic.Int64
}

// New returns the blobs of a bucket. Where an endpoint is given, the bucket goes into the
// path: an emulator has no name for every bucket.
func New(cfg aws.Config, bucket string) *Blobs {
	client := s3.NewFromConfig(session.Within(cfg, answerIn, nil),
		func(o *s3.Options) { o.UsePathStyle = o.BaseEndpoint != nil })
	return &Blobs{s3: client, bucket: aws.String(bucket)}
}

// Put stores body under key and replaces what was there.
func (b *Blobs) Put(ctx context.Context, key string, body []byte) error {
	switch {
	case key == "" || len(key) > maxKey:
		return fault.New(fault.Invalid, nil, "putting a blob: its key has %d bytes, 1 to %d are allowed", len(key),
			maxKey)
	case len(body) > MaxBlob:
		return fault.New(fault.TooLarge, nil, "putting blob %q: it has %d bytes, %d are allowed", key, len(body),
			MaxBlob)
	}
	ctx, cancel := context.WithTimeout(ctx, callIn)
	defer cancel()
	b.calls.Add(1)
	_, err := b.s3.PutObject(ctx, &s3.PutObjectInput{
		Bucket: b.bucket, Key: aws.String(key), Body: bytes.NewReader(body),
	})
	return session.Fault(err, "putting blob %q", key)
}

// Get returns the blob. An absent key is a fault.NotFound.
func (b *Blobs) Get(ctx context.Context, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callIn)
	defer cancel()
	b.calls.Add(1)
	out, err := b.s3.GetObject(ctx, &s3.GetObjectInput{Bucket: b.bucket, Key: aws.String(key)})
	if err != nil {
		return nil, session.Fault(err, "getting blob %q", key)
	}
	defer out.Body.Close()
	body, err := io.ReadAll(io.LimitReader(out.Body, MaxBlob+1))
	if err != nil {
		return nil, fault.New(fault.Unavailable, err, "getting blob %q", key)
	}
	if len(body) > MaxBlob {
		return nil, fault.New(fault.TooLarge, nil, "getting blob %q: it has over %d bytes", key, MaxBlob)
	}
	return body, nil
}

// Delete forgets the blob; an absent key is no error.
func (b *Blobs) Delete(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, callIn)
	defer cancel()
	b.calls.Add(1)
	_, err := b.s3.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: b.bucket, Key: aws.String(key)})
	return session.Fault(err, "deleting blob %q", key)
}

// Create creates the bucket; one of our own that is there stays. It is for emulators.
func (b *Blobs) Create(ctx context.Context) error {
	_, err := b.s3.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: b.bucket})
	if session.Kind(err) == fault.Conflict {
		return nil
	}
	return session.Fault(err, "creating bucket %q", *b.bucket)
}

// Counts returns what these calls have cost so far.
func (b *Blobs) Counts() item.Counts { return item.Counts{BlobCalls: b.calls.Load()} }

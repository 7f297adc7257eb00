package memory

import (
	"context"
	"sort"
	"strings"
	"sync"

	"punctual/shared/fault"
)

// Blobs is a bucket in memory.
type Blobs struct {
	world  *World
	mu     sync.RWMutex
	bodies map[string][]byte
}

// Put stores a copy of body under key and replaces what was there.
func (b *Blobs) Put(ctx context.Context, key string, body []byte) error {
	c := Call{Op: BlobPut, Name: key}
	f, err := b.world.enter(ctx, c)
	if err != nil {
		return err
	}
	if key == "" || len(key) > 1024 {
		return fault.New(fault.Invalid, nil, "putting a blob: its key has %d bytes, 1 to 1024 are allowed", len(key))
	}
	b.world.counts.blobCalls.Add(1)
	body = append([]byte{}, body...)
	if err := b.set(kept{Blob: &keptBlob{Key: key, Body: body}}); err != nil {
		return err
	}
	return f.after(c)
}

// Get returns a copy of the blob. An absent key is a fault.NotFound.
func (b *Blobs) Get(ctx context.Context, key string) ([]byte, error) {
	c := Call{Op: BlobGet, Name: key}
	f, err := b.world.enter(ctx, c)
	if err != nil {
		return nil, err
	}
	b.world.counts.blobCalls.Add(1)
	b.mu.RLock()
	body, ok := b.bodies[key]
	b.mu.RUnlock()
	if !ok {
		return nil, fault.New(fault.NotFound, nil, "getting blob %q", key)
	}
	if err := f.after(c); err != nil {
		return nil, err
	}
	return append([]byte{}, body...), nil
}

// Delete removes the blob; an absent key is no error.
func (b *Blobs) Delete(ctx context.Context, key string) error {
	c := Call{Op: BlobDelete, Name: key}
	f, err := b.world.enter(ctx, c)
	if err != nil {
		return err
	}
	b.world.counts.blobCalls.Add(1)
	if err := b.set(kept{Blob: &keptBlob{Key: key, Gone: true}}); err != nil {
		return err
	}
	return f.after(c)
}

// set writes and then makes one change.
func (b *Blobs) set(k kept) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.world.keep(func() []kept { return []kept{k} }); err != nil {
		return fault.New(fault.Unavailable, err, "keeping blob %q", k.Blob.Key)
	}
	defer b.world.done()
	b.load(*k.Blob)
	return nil
}

// Keys returns the keys with a prefix, in order, for tests that look for leftovers.
func (b *Blobs) Keys(prefix string) []string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var keys []string
	for k := range b.bodies {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	return keys
}

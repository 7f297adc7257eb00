package memory

import (
	"context"
	"sync"

	"punctual/shared/fault"
)

// Secrets is a secret manager in memory.
type Secrets struct {
	world  *World
	mu     sync.RWMutex
	values map[string]string
}

// Put keeps a secret, in place of what its ARN named before.
func (s *Secrets) Put(arn, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[arn] = value
}

// Resolve returns the secret that an ARN names. An absent one is a fault.NotFound.
func (s *Secrets) Resolve(ctx context.Context, arn string) (string, error) {
	c := Call{Op: SecretResolve, Name: arn}
	f, err := s.world.enter(ctx, c)
	if err != nil {
		return "", err
	}
	s.world.counts.secretCalls.Add(1)
	s.mu.RLock()
	v, ok := s.values[arn]
	s.mu.RUnlock()
	if !ok {
		return "", fault.New(fault.NotFound, nil, "resolving secret %s", arn)
	}
	if err := f.after(c); err != nil {
		return "", err
	}
	return v, nil
}

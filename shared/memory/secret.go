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
	hosts  map[string][]string // of the secrets that are bound to hosts
}

// Put stores a secret and replaces the one of that ARN.
func (s *Secrets) Put(arn, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[arn] = value
}

// Bind allows a secret to be sent to these hosts only, as the tag punctual:hosts does.
func (s *Secrets) Bind(arn string, hosts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hosts == nil {
		s.hosts = map[string][]string{}
	}
	s.hosts[arn] = hosts
}

// Hosts returns the hosts that the secret may be sent to; bound is false if it may go anywhere. An
// absent secret is a fault.NotFound.
func (s *Secrets) Hosts(ctx context.Context, arn string) (hosts []string, bound bool, err error) {
	c := Call{Op: SecretHosts, Name: arn}
	f, err := s.world.enter(ctx, c)
	if err != nil {
		return nil, false, err
	}
	s.world.counts.secretCalls.Add(1)
	s.mu.RLock()
	_, there := s.values[arn]
	hosts, bound = s.hosts[arn]
	s.mu.RUnlock()
	if !there {
		return nil, false, fault.New(fault.NotFound, nil, "reading the tags of secret %s", arn)
	}
	return hosts, bound, f.after(c)
}

// Resolve returns the value of a secret. An absent one is a fault.NotFound.
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

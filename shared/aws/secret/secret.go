package secret

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"punctual/shared/aws/session"
	"punctual/shared/cache"
	"punctual/shared/fault"
	"punctual/shared/item"
)

// MaxAge is how old what is known of a secret may be.
const MaxAge = 5 * time.Minute

const (
	most     = 1000 // secrets known
	answerIn = 5 * time.Second
	callIn   = 15 * time.Second
)

// Secrets resolves ARNs. It is safe for concurrent use.
type Secrets struct {
	manager *secretsmanager.Client
	values  *cache.Cache[string, string]  // by ARN
	tags    *cache.Cache[string, binding] // by ARN
	calls   atomic.Int64
}

// New returns the secrets of the account.
func New(cfg aws.Config) *Secrets {
	return &Secrets{
		manager: secretsmanager.NewFromConfig(session.Within(cfg, answerIn, nil)),
		values:  cache.New[string](cache.Options[string]{Age: MaxAge, Most: most}),
		tags:    cache.New[string](cache.Options[binding]{Age: MaxAge, Most: most}),
	}
}

// Resolve returns the secret that an ARN names. An absent one is a fault.NotFound.
func (s *Secrets) Resolve(ctx context.Context, arn string) (string, error) {
	return s.values.Get(ctx, arn, func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, callIn)
		defer cancel()
		s.calls.Add(1)
		out, err := s.manager.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String(arn)})
		if err != nil {
			return "", session.Fault(err, "resolving secret %s", arn)
		}
		if out.SecretString == nil {
			return "", fault.New(fault.Invalid, nil, "resolving secret %s: its value is no text", arn)
		}
		return *out.SecretString, nil
	})
}

// HostsTag is the tag that binds a secret to hosts: their names, separated by spaces.
const HostsTag = "punctual:hosts"

type binding struct {
	hosts []string
	bound bool
}

// Hosts returns the hosts that the secret may be sent to, by its tag. bound is false if it has
// none: then it may go anywhere. An empty tag binds it to no host at all.
func (s *Secrets) Hosts(ctx context.Context, arn string) (hosts []string, bound bool, err error) {
	b, err := s.tags.Get(ctx, arn, func(ctx context.Context) (binding, error) {
		ctx, cancel := context.WithTimeout(ctx, callIn)
		defer cancel()
		s.calls.Add(1)
		out, err := s.manager.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: aws.String(arn)})
		if err != nil {
			return binding{}, session.Fault(err, "reading the tags of secret %s", arn)
		}
		for _, tag := range out.Tags {
			if aws.ToString(tag.Key) == HostsTag {
				return binding{strings.Fields(aws.ToString(tag.Value)), true}, nil
			}
		}
		return binding{}, nil
	})
	return b.hosts, b.bound, err
}

// Counts returns what these calls have cost so far.
func (s *Secrets) Counts() item.Counts { return item.Counts{SecretCalls: s.calls.Load()} }

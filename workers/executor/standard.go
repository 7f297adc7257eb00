package executor

import (
	"context"
	"net"
	"net/netip"

	"punctual/shared/clock"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

// Codes of failures that these executors give beside job.Code…; a user sees them.
const (
	CodeEcho              = "echo_failed"
	CodeHTTPStatus        = "http_status"          // the target answered with something else than 2xx
	CodeNetwork           = "network"              // no answer came, or not all of it
	CodeRedirects         = "too_many_redirects"   // more than maxRedirects
	CodeSecret            = "secret_unavailable"   // a secret is not the tenant's, not there, or no key
	CodeForbiddenFunction = "forbidden_function"   // the function is not open to the tenant, or not there
	CodeNotAvailable      = "not_available"        // this deployment has no way to do it
	CodeFunctionFailed    = "function_failed"      // the function ran and failed
	CodeFunctionRefused   = "function_unavailable" // the function could not be invoked
)

// Secrets turns a secret's name into its value.
type Secrets interface {
	// Resolve returns the value of the secret with that ARN.
	Resolve(ctx context.Context, arn string) (string, error)
	// Hosts returns what the secret may be sent to: names of hosts, or .example.com for all
	// below one. bound is false for a secret that may go anywhere.
	Hosts(ctx context.Context, arn string) (hosts []string, bound bool, err error)
}

// Invoker calls functions.
type Invoker interface {
	// Invoke calls the function and waits. functionError is "" unless the function itself
	// failed; err says that it could not be called.
	Invoke(ctx context.Context, name string, input []byte) (output []byte, functionError string, err error)
	// Allowed says whether the function is open to the tenant.
	Allowed(ctx context.Context, name string, t tenant.ID) (bool, error)
}

// Resolver turns a host's name into addresses; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options is what the executors are made with. The zero Options works: it reaches public
// addresses only, and has neither secrets nor functions.
type Options struct {
	// Secrets resolves what http payloads name by ARN. Nil: such payloads fail for good.
	Secrets Secrets
	// Functions is what lambda payloads are sent to. Nil: they fail for good.
	Functions Invoker
	// HTTPAllow opens special-purpose addresses to http payloads, loopback included. Nil: none.
	HTTPAllow []netip.Prefix
	// OwnPorts are refused on this machine's loopback addresses, even where HTTPAllow opens
	// them: a job must not drive the API that took it in. Nil: none.
	OwnPorts []uint16
	// Resolver looks up hosts. Nil: the system's. What it answers is never trusted.
	Resolver Resolver
	// Clock dates signatures and reads Retry-After dates. Nil: the system's.
	Clock clock.Clock
}

// Standard returns the executors by the kind that a task names (job.Executor…).
func Standard(o Options) map[string]Executor {
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	return map[string]Executor{
		job.ExecutorEcho:   echo{},
		job.ExecutorHTTP:   newHTTP(o),
		job.ExecutorLambda: lambda{functions: o.Functions},
	}
}

// never is a failure that another try cannot mend.
func never(code, message string) *Failure {
	return &Failure{Code: code, Message: message, Permanent: true}
}

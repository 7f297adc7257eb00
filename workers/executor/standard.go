package executor

import (
	"context"
	"net"
	"net/netip"

	"punctual/shared/clock"
	kind "punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/tenant"
)

// Codes of failures that these executors add to job.Code…; a user sees them.
const (
	CodeEcho              = "echo_failed"
	CodeHTTPStatus        = "http_status"              // the target answered with something else than 2xx
	CodeNetwork           = "network"                  // no answer came, or not all of it
	CodeRedirects         = "too_many_redirects"       // more than maxRedirects
	CodeRedirectChanges   = "redirect_changes_request" // following it would send another method, or no body
	CodeSecret            = "secret_unavailable"       // a secret is not the tenant's, not there, or no key
	CodeForbiddenFunction = "forbidden_function"       // the function is not open to the tenant, or not there
	CodeNotAvailable      = "not_available"            // this deployment has no way to do it
	CodeFunctionFailed    = "function_failed"          // the function ran and failed
	CodeFunctionRefused   = "function_unavailable"     // the function could not be invoked
	CodeForbiddenQueue    = "forbidden_queue"          // the queue is not open to the tenant, or not there
	CodeQueueRefused      = "queue_unavailable"        // the message could not be sent
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

// Queues are those that messages of jobs are sent to.
type Queues interface {
	// Send sends one message, once, and returns its id.
	Send(ctx context.Context, queue string, m kind.Message) (id string, err error)
	// Allowed says whether the queue is open to the tenant. An absent one is a fault.NotFound.
	Allowed(ctx context.Context, queue string, t tenant.ID) (bool, error)
}

// Resolver turns a host's name into addresses; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options is what the executors are made with. The zero Options works: it reaches public
// addresses only, and has neither secrets nor functions nor queues.
type Options struct {
	// Secrets resolves what http payloads name by ARN. Nil: such payloads fail for good.
	Secrets Secrets
	// Deployment is the deployment's prefix, which names of its tenants' secrets carry; "" is
	// contract.DefaultPrefix.
	Deployment string
	// Functions is what lambda payloads are sent to. Nil: they fail for good.
	Functions Invoker
	// Queues is where sqs payloads go. Nil: they fail for good.
	Queues Queues
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

// runs makes the executor of each kind that package shared/executor lists, and that of deliveries. Kind go is not among
// them: the worker runs its own registry.
var runs = map[string]func(Options) Executor{
	kind.Echo: newEcho, kind.HTTP: newHTTP, kind.Lambda: newLambda, kind.SQS: newSQS,
	kind.Webhook: newWebhook,
}

// Standard returns the executors by the kind that a task names.
func Standard(o Options) map[string]Executor {
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	all := map[string]Executor{}
	for name, run := range runs {
		all[name] = run(o)
	}
	return all
}

// never is a failure for good: no other try can help.
func never(code, message string) *Failure {
	return &Failure{Code: code, Message: message, Permanent: true}
}

// final says whether a service of AWS would refuse the same request each time.
func final(err error) bool {
	switch fault.KindOf(err) {
	case fault.Invalid, fault.TooLarge, fault.Forbidden, fault.NotFound:
		return true
	}
	return false
}

// refusal is a sentence with the kind of a fault, if it is of one. What a service says stays out.
func refusal(what string, err error) string {
	if k := fault.KindOf(err); k != "" {
		return what + ": " + string(k)
	}
	return what
}

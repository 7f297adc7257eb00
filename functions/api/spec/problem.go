package spec

import (
	"errors"
	"strconv"
	"time"

	"punctual/functions/api/rest"
	"punctual/functions/engine/accept"
	"punctual/functions/engine/edit"
	"punctual/functions/engine/ratelimit"
	"punctual/shared/contract"
	"punctual/shared/executor"
	"punctual/shared/secret"
	"punctual/shared/text"
)

// The codes of problems and violations about resources. Their meaning never changes.
const (
	CodeUnknownTask       = "unknown_task"
	CodeUnknownPool       = "unknown_pool"
	CodeUnknownDag        = "unknown_dag"
	CodeUnknownJob        = "unknown_job"
	CodeUnknownLimit      = "unknown_limit"
	CodeNotIndexed        = "not_indexed"
	CodeNeverFires        = "never_fires"
	CodeCycle             = "cycle"
	CodeTargetRefused     = "target_refused"
	CodeUnknownNode       = "unknown_node"
	CodeDuplicateEdge     = "duplicate_edge"
	CodeSelfEdge          = "self_edge"
	CodeInvalidExpression = "invalid_expression"
	CodeAlreadyStarted    = "already_started"
	CodeAlreadyFinished   = "already_finished"
	CodeNotFinished       = "not_finished"
	CodeWrongState        = "wrong_state"
	CodeNotUnique         = "not_unique"
	CodeInvalidFilter     = "invalid_filter"
	CodeInUse             = "in_use"
	CodeStaleVersion      = "stale_version"
	CodeKeyReused         = "idempotency_key_reused"
)

// Catalogue explains every code, in the order of the statuses.
var Catalogue = rest.Catalogue{
	explain(rest.CodeInvalidJSON, 400, "Invalid JSON",
		"The body must be one JSON value in UTF-8, with nothing after it. The detail states where reading stopped."),
	explain(rest.CodeUnknownField, 400, "Unknown field",
		"Names are compared exactly, including upper and lower case. Remove the field, or spell it as the detail "+
			"suggests."),
	explain(rest.CodeDuplicateField, 400, "Duplicate field",
		"Readers of JSON differ in which of two equal fields they use, so both are refused. Give the field once."),
	explain(rest.CodeMissingField, 400, "Missing field", "The pointer names the field. Add it."),
	explain(rest.CodeInvalidValue, 400, "Invalid value",
		"The pointer names the field; allowed states the values that are accepted."),
	explain(rest.CodeOutOfRange, 400, "Value out of range", "The pointer names the field; allowed states the limits."),
	explain(rest.CodeConflictingFields, 400, "Conflicting fields", "Give only one of the two fields."),
	explain(rest.CodeInThePast, 400, "Time in the past", "A run_at can be up to "+
		text.InUnits(contract.PastAllowed, time.Second, " s")+" ago, which runs the job at once. Older times are "+
		"refused, because such a job would run later than intended."),
	explain(CodeUnknownTask, 400, "Unknown task", "Tasks are defined by PUT /v1/tasks/{name}; "+
		text.Listed(executor.BuiltIn(), "and")+" are built in."),
	explain(CodeUnknownPool, 400, "Unknown pool", "The pools are "+text.Listed(contract.Pools, "and")+"."),
	explain(CodeUnknownDag, 400, "Unknown dag", "Dags, and their versions, are defined by PUT /v1/dags/{name}."),
	explain(CodeUnknownJob, 400, "Unknown job",
		"The job does not exist, has been deleted, or belongs to another tenant. In a batch, #n names an earlier job "+
			"of the batch that was accepted, from #0."),
	explain(CodeUnknownLimit, 400, "Unknown limit", "Limits of work are defined by PUT /v1/limits/{name}."),
	explain(CodeNotIndexed, 400, "Not indexed", "The deployment keeps no index of jobs (search=yes), which this "+
		"filter needs, or counts nothing; allowed names the filters that need none."),
	explain(CodeInvalidFilter, 400, "Invalid filter", "The pointer names the filter; allowed states its form."),
	explain(CodeNeverFires, 400, "Calendar never fires", "The calendar has no nominal time in the future."),
	explain(CodeCycle, 400, "Graph has a cycle", "A node would wait for itself. Remove one of the dependencies."),
	explain(CodeUnknownNode, 400, "Unknown node", "A node must be defined in the field nodes of the same dag."),
	explain(CodeDuplicateEdge, 400, "Duplicate dependency", "depends_on must name each node once."),
	explain(CodeSelfEdge, 400, "Node depends on itself", "depends_on must name other nodes."),
	explain(CodeInvalidExpression, 400, "Invalid expression",
		"The detail states where and why. Expressions are CEL. They can use params, run, the upstream nodes, and, "+
			"with for_each, item and index."),
	explain(rest.CodeSecretInPayload, 400, "Secret in payload",
		"Store the secret in Secrets Manager under punctual/<deployment>/<tenant>/ and give its ARN; the worker "+
			"resolves it. If the value is not a secret, name its pointer in allow_literals. The check covers fields "+
			"whose name contains "+text.Listed(secret.Parts(), "or")+", in any case style, with a string of "+
			strconv.Itoa(secret.Shortest)+" or more characters (except names that end in _url, _id, _name, _at, "+
			"_status and the like, which are facts about a secret), the contents of objects under such names, tags, "+
			"passwords and parameters in URLs, the well-known forms of tokens, Basic and Bearer credentials, and the "+
			"texts in the expressions of a dag."),
	explain(CodeTargetRefused, 400, "Target not allowed",
		"Only http and https to public addresses are allowed; ranges of your own can be allowed in the deployment "+
			"(http_allow). Names are resolved and checked once more at the time of the connection."),
	explain(rest.CodeInvalidCursor, 400, "Invalid cursor",
		"Use next_cursor unchanged, with the same parameters and the same tenant."),
	explain(rest.CodeUnauthenticated, 401, "Authentication required",
		"Send a valid bearer token. A deployment with auth=iam requires a signature instead (Signature Version 4, for "+
			"the service execute-api), by a role or user with the tag "+contract.TenantTag+"."),
	explain(rest.CodeForbidden, 403, "Forbidden", "The token (with auth=iam, the tag "+contract.ScopesTag+
		" of the signer) lacks a scope, or the request came from another origin."),
	explain(rest.CodeNotFound, 404, "Not found",
		"The resource does not exist, has been deleted, or belongs to another tenant."),
	explain(rest.CodeMethodNotAllowed, 405, "Method not allowed", "The header Allow lists the methods of this path."),
	explain(CodeAlreadyStarted, 409, "Job already started",
		"A running job cannot be changed. Cancel it, or wait for its end."),
	explain(CodeAlreadyFinished, 409, "Job already finished",
		"A final status never changes. A DEAD job can be redriven as a new job."),
	explain(CodeNotFinished, 409, "Job not finished", "Cancel the job first, or wait for its end."),
	explain(CodeWrongState, 409, "Conflicting state", "The detail states the current state and the required one."),
	explain(CodeNotUnique, 409, "Unique key held",
		"Another open job of the tenant holds the unique key; job_id names it. Wait for its end, cancel it, or use "+
			"another key."),
	explain(CodeInUse, 409, "Resource in use", "The detail names what uses it. Change or delete that first."),
	explain(CodeStaleVersion, 412, "Precondition failed",
		"Read the resource, repeat the change on its new version, and send the new ETag in If-Match."),
	explain(rest.CodeTooLarge, 413, "Body too large", "The detail states the limit."),
	explain(rest.CodeMediaType, 415, "Unsupported media type", "Send Content-Type: application/json, uncompressed."),
	explain(CodeKeyReused, 422, "Idempotency key reused", "A key identifies one request for "+
		text.InUnits(contract.IdempotencyKept, time.Hour, " hours")+". Use a new key for a new request."),
	explain(rest.CodeRateLimited, 429, "Too many requests",
		"Repeat the request after Retry-After seconds. Without that header waiting does not help: the detail names a "+
			"quota of the tenant that is used up; free some of it first."),
	explain(rest.CodeInternal, 500, "Internal error",
		"The error has been logged under the request_id; repeating the request may not help."),
	explain(rest.CodeUnavailable, 503, "Service unavailable",
		"A service that the API needs does not answer. Repeat the request after Retry-After seconds; with an "+
			"Idempotency-Key this is safe."),
}

func explain(code string, status int, title, help string) rest.Explanation {
	return rest.Explanation{Code: code, Status: status, Title: title, Help: help}
}

// Limited turns a ratelimit.Exceeded into a problem.
func Limited(err error) error {
	var e *ratelimit.Exceeded
	if !errors.As(err, &e) {
		return err
	}
	seconds := max(1, int((e.Wait+time.Second-1)/time.Second))
	return rest.NewProblem(rest.CodeRateLimited, "%s", e.Error()).After(seconds)
}

// JobProblem turns an error about a job into a problem.
func JobProblem(err error) error {
	var e *edit.State
	if errors.As(err, &e) {
		p := rest.NewProblem(string(e.Code), "%s", e.Detail)
		p.RedrivenBy, p.Allowed = string(e.RedrivenBy), e.Allowed
		return p
	}
	var held *accept.NotUnique
	if errors.As(err, &held) {
		return notUnique(held)
	}
	return rest.Absent(err, "job")
}

package spec

import (
	"strconv"
	"time"

	"punctual/functions/api/rest"
	"punctual/shared/contract"
	"punctual/shared/executor"
)

// The codes of problems and mistakes about resources. Their meaning never changes.
const (
	CodeUnknownTask       = "unknown_task"
	CodeUnknownPool       = "unknown_pool"
	CodeUnknownDag        = "unknown_dag"
	CodeUnknownJob        = "unknown_job"
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
	CodeStaleVersion      = "stale_version"
	CodeKeyReused         = "idempotency_key_reused"
)

// Catalogue explains every code, in the order of the statuses.
var Catalogue = rest.Catalogue{
	explain(rest.CodeInvalidJSON, 400, "Invalid JSON",
		"The body must be one JSON value in UTF-8, without anything after it. "+
			"The detail says where reading stopped."),
	explain(rest.CodeUnknownField, 400, "Unknown field",
		"Names are compared exactly, capital letters included. Remove the field, "+
			"or spell it as the detail suggests."),
	explain(rest.CodeDuplicateField, 400, "Duplicate field",
		"Readers of JSON disagree about which of the two counts, so neither does. Give it once."),
	explain(rest.CodeMissingField, 400, "Missing field", "The pointer names it."),
	explain(rest.CodeInvalidValue, 400, "Invalid value",
		"The pointer names the field; allowed says what would be taken."),
	explain(rest.CodeOutOfRange, 400, "Value out of range", "The pointer names the field; allowed says the limits."),
	explain(rest.CodeConflictingFields, 400, "Conflicting fields", "Give one of the two."),
	explain(rest.CodeInThePast, 400, "Time in the past", "A run_at may be up to "+
		rest.InUnits(contract.PastAllowed, time.Second, " s")+" ago, which runs the job at once. Older times are "+
		"refused, because running late is probably not what was meant."),
	explain(CodeUnknownTask, 400, "Unknown task", "Tasks are defined by PUT /v1/tasks/{name}; "+
		InWords(executor.BuiltIn(), "and")+" are there from the start."),
	explain(CodeUnknownPool, 400, "Unknown pool", "The pools are "+InWords(contract.Pools, "and")+"."),
	explain(CodeUnknownDag, 400, "Unknown dag", "Dags, and their versions, are made by PUT /v1/dags/{name}."),
	explain(CodeUnknownJob, 400, "Unknown job",
		"It never was, has been forgotten, or is not yours. Within a batch #n names "+
			"an earlier job of it that was accepted, from #0."),
	explain(CodeNeverFires, 400, "Calendar never fires", "No nominal time lies ahead of it."),
	explain(CodeCycle, 400, "Graph has a cycle", "A node would wait for itself."),
	explain(CodeUnknownNode, 400, "Unknown node", "Nodes are named by what stands under nodes of the same dag."),
	explain(CodeDuplicateEdge, 400, "Duplicate dependency", "depends_on names each node once."),
	explain(CodeSelfEdge, 400, "Node depends on itself", "depends_on names other nodes."),
	explain(CodeInvalidExpression, 400, "Invalid expression",
		"The detail says where and why. Expressions are CEL, and "+
			"see params, run, the nodes before their own, and item and index where there is for_each."),
	explain(rest.CodeSecretInPayload, 400, "Secret in payload",
		"Put it into Secrets Manager under punctual/<deployment>/<tenant>/ and give "+
			"its ARN; the worker resolves it. If it is none, name its pointer in allow_literals. Looked at are "+
			"fields whose name contains "+InWords(rest.SecretParts(), "or")+", in any case style, with a string "+
			"of "+strconv.Itoa(rest.ShortestSecret)+" or more characters (names that end in _url, _id, _name, _at, "+
			"_status and the like are facts about a secret), what objects under such names hold, tags, passwords and "+
			"parameters in URLs, the well-known forms of tokens, Basic and Bearer credentials, and the texts in the "+
			"expressions of a dag."),
	explain(CodeTargetRefused, 400, "Target not allowed",
		"Only http and https to public addresses; ranges of your own "+
			"can be opened when Punctual is deployed (http_allow). Names are checked again when connecting."),
	explain(rest.CodeInvalidCursor, 400, "Invalid cursor",
		"Use next_cursor as it was given, with the same parameters, as the same tenant."),
	explain(rest.CodeUnauthenticated, 401, "Authentication required",
		"Send a valid bearer token. A deployment with auth=iam wants a signature instead (Signature Version 4, for "+
			"the service execute-api), by a role or user with the tag "+contract.TenantTag+"."),
	explain(rest.CodeForbidden, 403, "Forbidden", "The token (with auth=iam, the tag "+contract.ScopesTag+
		" of who signed) lacks a scope, or the request came from another origin."),
	explain(rest.CodeNotFound, 404, "Not found", "It never was, has been forgotten, or is not yours."),
	explain(rest.CodeMethodNotAllowed, 405, "Method not allowed", "Allow lists those that do."),
	explain(CodeAlreadyStarted, 409, "Job already started",
		"What runs cannot be edited. Cancel it, or wait for its end."),
	explain(CodeAlreadyFinished, 409, "Job already finished",
		"A final status is never left. A dead job can be redriven as a new one."),
	explain(CodeNotFinished, 409, "Job not finished", "Cancel it first, or wait for its end."),
	explain(CodeWrongState, 409, "Conflicting state", "The detail says which state it is and what would do."),
	explain(CodeStaleVersion, 412, "Precondition failed",
		"Read it again, decide again, and send the new ETag in If-Match."),
	explain(rest.CodeTooLarge, 413, "Body too large", "The limit is in the detail."),
	explain(rest.CodeMediaType, 415, "Unsupported media type", "Send Content-Type: application/json, uncompressed."),
	explain(CodeKeyReused, 422, "Idempotency key reused", "A key names one request for "+
		rest.InUnits(contract.IdempotencyKept, time.Hour, " hours")+". Use a new key for a new request."),
	explain(rest.CodeRateLimited, 429, "Too many requests",
		"Try again after Retry-After seconds. Without that header waiting "+
			"does not help: the detail names a limit of what a tenant may have; make room first."),
	explain(rest.CodeInternal, 500, "Internal error",
		"It has been logged under the request_id; trying again may not help."),
	explain(rest.CodeUnavailable, 503, "Service unavailable",
		"Something that we need does not answer. The same request may "+
			"work after Retry-After seconds; with an Idempotency-Key it is safe to repeat."),
}

func explain(code string, status int, title, help string) rest.Explanation {
	return rest.Explanation{Code: code, Status: status, Title: title, Help: help}
}

package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/shared/contract"
	"punctual/shared/dag"
	"punctual/shared/executor"
	"punctual/shared/job"
	"punctual/shared/span"
	"punctual/shared/text"
)

// Forms of texts.
const (
	JobIDPattern = `^[0-7][0-9A-HJKMNP-TV-Z]{25}$`
	JobIDLength  = 26
	zonePattern  = `^[A-Za-z0-9_+/-]+$`
	keyPattern   = `^[ -~]+$`
	// printable has no character of text.Hidden.
	printable   = "^[^\\x00-\\x1f\\x7f-\\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]*$"
	MaxTimeText = len("2027-03-28T01:00:00.123456789+02:00")
)

// Bounds of values that several fields and parameters have.
var (
	NameForm    = field.Matching(contract.NamePattern, contract.MaxName)
	InstantForm = field.Formatted("date-time", rest.InstantPattern.String(), MaxTimeText)
	KeyForm     = field.Matching(keyPattern, contract.MaxIdempotencyKey)
	IDForm      = field.Matching(JobIDPattern, JobIDLength)
	ZoneForm    = field.Formatted("time-zone", zonePattern, 0)
	// EntryName is the form of the names of nodes and of params.
	EntryName = map[string]any{"minLength": 1, "maxLength": contract.MaxName, "pattern": contract.NamePattern}
	tagName   = map[string]any{"minLength": 1, "maxLength": contract.MaxTagKey, "pattern": printable}
	printed   = func(s *huma.Schema) { s.Pattern = printable }
)

// Fields of jobs, schedules, dags, nodes and tasks.
var (
	Task = Name("task", "Name of the task: "+strings.Join(executor.BuiltIn(), ", ")+", or one of your own.").
		Example("echo").Required()
	Payload = field.Value("payload", "Input of the job, up to {=payload_mib} MiB and {=depth} levels deep. Its form "+
		"depends on the executor of the task.", payloads)
	PayloadPatch = field.Value("payload_patch", "Changes of the payload, as a merge patch (RFC 7396). It excludes "+
		"payload.", field.Anything)
	Priority = field.Word[job.Priority]("priority", "Priority; default: that of the task. Priorities are strict: a "+
		"job of a lower priority waits as long as jobs of a higher one are due, without bound.", rest.CodeInvalidValue,
		contract.Priorities)
	Pool = field.Word[string]("pool", "Pool of workers that runs the job; default: that of the task.", CodeUnknownPool,
		contract.Pools)
	// Timeout has the longest timeout of any pool; Running reads it by the job's pool.
	Timeout     = timeout("Maximum duration of one attempt; default: that of the task.", contract.MaxTimeoutLong)
	StartWithin = window("start_within", "Maximum time from due_at to the start of the first attempt, after which the "+
		"job is EXPIRED; default: no limit.")
	ExpireAfter = window("expire_after", "Maximum time from due_at to the end of the job, after which the job is "+
		"EXPIRED; default: no limit.")
	Retry = field.Nested("retry", "Retry policy. Fields that are left out have the values of the task.", retryPolicy,
		func(r *rest.Reader, v rest.Value) (p job.RetryPolicy, ok bool) { return p, false }) // readRetry reads it
	Tags = field.Text("tags", "Tags by name, up to {=tags}. A name has up to {=tag_key} and a value up to "+
		"{=tag_value} characters, without control characters and characters that change the direction of text.", nil,
		readTags).Shaped(field.MapOf(0, contract.MaxTags, tagName, func(huma.Registry) *huma.Schema {
		return &huma.Schema{Type: huma.TypeString, MaxLength: new(contract.MaxTagValue), Pattern: printable}
	}))
	Metadata = field.Text("metadata", fmt.Sprintf("Object for readers: shown with the job, in lists and in its "+
		"dead letter, and kept by redrives. It has no effect. Up to %d bytes of compact JSON, "+
		"without control characters and characters that change the direction of text.", contract.MaxMetadata), nil,
		readMetadata).Shaped(field.AnyObject)
	AllowLiterals = field.List("allow_literals", "JSON pointers of strings that resemble secrets and are none; "+
		"recorded with the job.", 0, maxLiterals,
		field.Text("", "", field.Formatted("json-pointer", `^/`, maxLiteral), readPointer))
	Params = field.Value("params", "Values of the dag's params by name; the others have the dag's defaults.",
		func(huma.Registry) *huma.Schema {
			return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true,
				Extensions: map[string]any{"propertyNames": EntryName}}
		})
)

// Fields that say when something is due.
var (
	RunAt = Instant("run_at", "Time at which the job is due, with its time zone: at most {=past_s} s ago, which runs "+
		"the job at once, and at most {=ahead_years} years ahead. It excludes delay.")
	Delay = field.Duration("delay", "Time from now until the job is due. It excludes run_at.", 0, contract.MaxAhead)
)

// Fields of operations and pauses.
var (
	Reason = field.Text("reason", "Reason for the operation, shown in the run's events.",
		field.All(field.Characters(0, contract.MaxReason), printed), readReason)
	Missed = field.Word[string]("missed", "Treatment of the times under the pause: drop, last or all; default: the "+
		"catch-up policy of the schedule.", rest.CodeInvalidValue, MissedValues)
)

// MissedValues are the values of missed.
var MissedValues = []string{"drop", "last", "all"}

// Fields of a retry policy.
var (
	maxAttempts = field.Whole("max_attempts", "Maximum number of attempts, the first one included.", 1,
		contract.MaxAttempts)
	initialDelay = field.Duration("initial_delay", "Delay before the second attempt.", 0, contract.MaxInitialDelay)
	factor       = field.Number("factor", "Factor by which each delay is longer than the one before it.", 1,
		contract.MaxFactor)
	maxDelay = field.Duration("max_delay", "Maximum delay between two attempts.", time.Millisecond,
		contract.MaxRetryDelay)
	jitter       = field.Number("jitter", "Maximum share of a delay that is added to it at random.", 0, 1)
	onWorkerLost = field.Word[string]("on_worker_lost", "Treatment of an attempt whose worker is lost. rerun "+
		"(default) starts the attempt once more, up to {=starts} starts; fail ends the attempt with the code "+
		"worker_lost, and the job is retried only while attempts are "+
		"left.", rest.CodeInvalidValue, []string{job.LostRerun, job.LostFail})

	retryPolicy = field.NewObject("RetryRequest", "Retry policy of a job.", maxAttempts, initialDelay, factor,
		maxDelay, jitter, onWorkerLost)
)

// Name is a field with the name of something.
func Name(name, about string) field.Field[string] {
	return field.Text(name, about, NameForm, (*rest.Reader).Name)
}

// Instant is a field with a time.
func Instant(name, about string) field.Field[time.Time] {
	return field.Text(name, about, InstantForm, (*rest.Reader).Instant)
}

// Zone is a field with the name of a time zone.
func Zone(name, about string) field.Field[string] {
	return field.Text(name, about, ZoneForm, (*rest.Reader).Text)
}

// RunIf is a field with the rule that the outcomes of others must match.
func RunIf(about string) field.Field[dag.Rule] {
	return field.Word[dag.Rule]("run_if", about, rest.CodeInvalidValue, dag.Rules)
}

func window(name, about string) field.Field[time.Duration] {
	return field.Duration(name, about, contract.MinWindow, contract.MaxWindow)
}

// timeout is the timeout of attempts in a pool that allows so much.
func timeout(about string, most time.Duration) field.Field[time.Duration] {
	return field.Duration("timeout", about, contract.MinTimeout, most).Ending(
		"; beyond " + span.Format(contract.MaxTimeout) + " only in pool long")
}

// payloads is the schema of the payloads of all executors.
func payloads(huma.Registry) *huma.Schema {
	s := &huma.Schema{}
	for _, k := range executor.Kinds() {
		if k.Payload != nil {
			s.AnyOf = append(s.AnyOf, field.Ref(reflect.TypeOf(k.Payload).Name()))
		}
	}
	s.AnyOf = append(s.AnyOf, &huma.Schema{Description: "Input of your own handler."})
	return s
}

// JSONSchema is the schema of a JSON Schema. It says that an object may have any fields, because generators of
// TypeScript take one that says nothing for one without fields.
func JSONSchema(huma.Registry) *huma.Schema {
	return &huma.Schema{Format: "json-schema",
		AnyOf: []*huma.Schema{{Type: huma.TypeObject, AdditionalProperties: true}, {Type: huma.TypeBoolean}}}
}

// LabelFields are the names of the fields that hold labels.
var LabelFields = []string{Tags.Name(), Metadata.Name()}

// Under turns the pointers in allow_literals, which are relative to a job, into pointers of the whole body.
func Under(pointer string, literals []string) []string {
	absolute := make([]string, len(literals))
	for i, l := range literals {
		absolute[i] = pointer + l
	}
	return absolute
}

// ReadSettings reads the settings of a job, over what its task has set.
func ReadSettings(r *rest.Reader, f rest.Fields, s *job.Settings) {
	Running(r, f, s)
	StartWithin.Into(r, f, &s.StartWithin)
	ExpireAfter.Into(r, f, &s.ExpireAfter)
}

// Running reads the settings that a task and a node of a dag have as well.
func Running(r *rest.Reader, f rest.Fields, s *job.Settings) {
	Pool.Into(r, f, &s.Pool)
	Priority.Into(r, f, &s.Priority)
	limited := timeouts[s.Pool == "long"]
	if !limited.Into(r, f, &s.Timeout) && s.Timeout > longest(s.Pool) { // the task's, in the job's own pool
		r.Violation(f["pool"].Pointer, rest.CodeConflictingFields, "",
			"the timeout that it has without one of its own is longer than pool %s allows; give a timeout", s.Pool)
	}
	if v, ok := f[Retry.Name()]; ok {
		readRetry(r, v, &s.Retry)
	}
}

// timeouts is Timeout in other pools, and in pool long.
var timeouts = map[bool]field.Field[time.Duration]{false: timeout("", longest("")), true: Timeout}

func longest(pool string) time.Duration {
	if pool == "long" {
		return contract.MaxTimeoutLong
	}
	return contract.MaxTimeout
}

// readRetry reads a retry policy over another one.
func readRetry(r *rest.Reader, v rest.Value, p *job.RetryPolicy) {
	f := retryPolicy.Read(r, v)
	maxAttempts.Into(r, f, &p.MaxAttempts)
	initialDelay.Into(r, f, &p.InitialDelay)
	factor.Into(r, f, &p.Factor)
	maxDelay.Into(r, f, &p.MaxDelay)
	jitter.Into(r, f, &p.Jitter)
	var lost string
	if onWorkerLost.Into(r, f, &lost) {
		p.FailOnLost = lost == job.LostFail
	}
}

// Due reads run_at or delay into at; false if neither is given.
func Due(r *rest.Reader, f rest.Fields, now time.Time, at *time.Time) (given bool) {
	runAt, isTime := f[RunAt.Name()]
	delay, isDelay := f[Delay.Name()]
	switch {
	case isTime && isDelay:
		r.Violation(delay.Pointer, rest.CodeConflictingFields, "run_at or delay", "run_at and delay exclude each other")
	case isTime:
		if t, ok := r.Ahead(runAt, now); ok {
			*at = t
		}
	case isDelay:
		if d, ok := r.Duration(delay, 0, rest.Latest(now).Sub(now)); ok {
			*at = now.Add(d)
		}
	}
	return isTime || isDelay
}

// TooDeep reports a value that is nested more than contract.MaxDepth levels deep.
func TooDeep(r *rest.Reader, v rest.Value, what string) bool {
	if r.Doc.Depth(v.Node) <= contract.MaxDepth {
		return false
	}
	r.Violation(v.Pointer, rest.CodeOutOfRange, fmt.Sprintf("at most %d levels", contract.MaxDepth),
		"%s nested more than %d levels deep", what, contract.MaxDepth)
	return true
}

// maxLiterals is how many strings one job may declare to be no secrets.
const maxLiterals = 50

// maxLiteral is how long a pointer in allow_literals may be, in characters.
const maxLiteral = 1024

func readPointer(r *rest.Reader, v rest.Value) (string, bool) {
	s, ok := r.Text(v)
	if ok && (len(s) == 0 || runes(s) > maxLiteral || s[0] != '/') {
		r.Violation(v.Pointer, rest.CodeInvalidValue, fmt.Sprintf("a JSON pointer such as /payload/x, up to "+
			"%d characters", maxLiteral), "this is not a JSON pointer")
		return "", false
	}
	return s, ok
}

// readReason reads the reason of an operation or a pause.
func readReason(r *rest.Reader, v rest.Value) (string, bool) {
	s, ok := r.Text(v)
	if ok && runes(s) > contract.MaxReason {
		r.Violation(v.Pointer, rest.CodeOutOfRange, fmt.Sprintf("at most %d characters", contract.MaxReason),
			"the reason has %d characters", runes(s))
	}
	if ok && strings.ContainsFunc(s, text.Hidden) {
		r.Violation(v.Pointer, rest.CodeInvalidValue, "characters that can be seen, and spaces",
			"the reason has control characters, or characters that change the direction of text")
	}
	if ok && text.TokenShaped(s) {
		r.Violation(v.Pointer, rest.CodeSecretInPayload, "", "this looks like a secret, and would be kept in the clear")
	}
	return s, ok
}

// LiteralFields are the fields of a job's PATCH to which allow_literals applies.
var LiteralFields = []string{Payload.Name(), Metadata.Name()}

// HasAny reports whether one of these fields is given.
func HasAny(f rest.Fields, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { _, ok := f[name]; return ok })
}

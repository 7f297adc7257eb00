package dag

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"punctual/shared/job"
	"punctual/shared/text"
)

// Policy says what the failure of a node means for the nodes after it.
type Policy string

// The policies; CancelDownstream is the default.
const (
	CancelDownstream Policy = "cancel_downstream" // what the trigger rules say; other branches go on
	CancelRun        Policy = "cancel_run"        // the first failure ends all that has not started
	Continue         Policy = "continue"          // for default rules a failed parent counts as succeeded
	Hold             Policy = "hold"              // what the rules would cancel waits for an operator
)

// Policies lists all policies, the default first.
var Policies = []string{string(CancelDownstream), string(CancelRun), string(Continue), string(Hold)}

// Definition is a graph of jobs as a user writes it. Absent fields are zero.
type Definition struct {
	Nodes          map[string]Node
	Params         map[string]json.RawMessage // defaults; a run may give others
	ParamsSchema   json.RawMessage            // JSON Schema of the merged parameters; nil: none
	OnFailure      Policy                     // "": CancelDownstream
	MaxConcurrency int                        // nodes of one run at a time; 0: no limit
	ExpireAfter    time.Duration              // from the run's due time; 0: never
	Priority       job.Priority               // of nodes that say none; "": their tasks'
	Tags           map[string]string
}

// Node is one vertex. What belongs to its job is what a job request takes; absent fields are zero
// and mean what they mean there.
type Node struct {
	Task        string
	Payload     json.RawMessage // a template: strings may hold ${…}; nil: none
	Pool        string
	Priority    job.Priority
	Timeout     time.Duration
	Retry       json.RawMessage // as the user wrote it: the task's policy fills the rest
	StartWithin time.Duration
	Tags        map[string]string

	DependsOn   []string
	RunIf       Rule   // "": AllSucceeded
	When        string // a bare expression; "": none
	ForEach     string // "${…}" of a list: one job for each item; "": none
	MaxParallel int    // items at a time; 0: no limit
}

// WithDefaults returns the definition with the defaults of the graph written out, so that two
// definitions that mean the same are equal.
func (d Definition) WithDefaults() Definition {
	if d.OnFailure == "" {
		d.OnFailure = CancelDownstream
	}
	d.Nodes = maps.Clone(d.Nodes)
	for name, n := range d.Nodes {
		if n.RunIf == "" {
			n.RunIf = AllSucceeded
		}
		n.DependsOn = slices.Sorted(slices.Values(n.DependsOn))
		d.Nodes[name] = n
	}
	return d
}

// Hash identifies what the definition means: after defaults, whatever the order of its keys and of
// each node's dependencies.
func (d Definition) Hash() string {
	d = d.WithDefaults()
	for name, n := range d.Nodes {
		n.Payload, n.Retry = canonical(n.Payload), canonical(n.Retry)
		d.Nodes[name] = n
	}
	d.ParamsSchema = canonical(d.ParamsSchema)
	d.Params = maps.Clone(d.Params)
	for name, v := range d.Params {
		d.Params[name] = canonical(v)
	}
	sum := sha256.Sum256(text.MustJSON(d)) // map keys are written in order
	return hex.EncodeToString(sum[:16])
}

// canonical writes a JSON value with sorted keys and its numbers as they are. What is no JSON
// becomes a string, so that it differs from everything that is.
func canonical(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	v, err := decode(raw)
	if err != nil {
		v = string(raw)
	}
	return text.MustJSON(v)
}

// decode reads one JSON value and keeps its numbers as they are written.
func decode(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

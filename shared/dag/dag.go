package dag

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/text"
)

// Policy says what a failed node means for the nodes after it.
type Policy string

// The policies; CancelDownstream is the default.
const (
	CancelDownstream Policy = "cancel_downstream" // the trigger rules decide; other branches go on
	CancelRun        Policy = "cancel_run"        // the first failure ends every node that has not started
	Continue         Policy = "continue"          // for default rules a failed parent counts as succeeded
	Hold             Policy = "hold"              // nodes that the rules would cancel wait for an operator
)

// Policies lists all policies, the default first.
var Policies = []string{string(CancelDownstream), string(CancelRun), string(Continue), string(Hold)}

// Definition is a graph of jobs as a user writes it. Absent fields are zero.
type Definition struct {
	Nodes          map[string]Node
	Params         map[string]json.RawMessage // defaults; a run may override them
	ParamsSchema   json.RawMessage            // JSON Schema of the merged parameters; nil: none
	OnFailure      Policy                     // "": CancelDownstream
	MaxConcurrency int                        // nodes of one run that run at the same time; 0: no limit
	ExpireAfter    time.Duration              // from the run's due time; 0: never
	Priority       job.Priority               // of nodes without one; "": their tasks'
	Tags           map[string]string
	AllowLiterals  []string `json:",omitempty"` // JSON pointers of strings that look like secrets and are none
}

// Node is one vertex. The fields of its job mean what they mean in a job request; absent fields are
// zero.
type Node struct {
	Task        string
	Payload     json.RawMessage // a template: strings may hold ${…}; nil: none
	Pool        string
	Priority    job.Priority
	Timeout     time.Duration
	Retry       json.RawMessage // as the user wrote it: the task's policy fills the rest
	StartWithin time.Duration
	Limits      *[]job.LimitKey `json:",omitempty"` // of work; keys are templates; nil: those of the task
	Tags        map[string]string
	// AllowLiterals are JSON pointers, below the node, of strings that look like secrets and are none.
	AllowLiterals []string `json:",omitempty"`

	DependsOn   []string
	RunIf       Rule      // "": AllSucceeded
	When        string    // a bare expression; "": none
	ForEach     string    // "${…}" of a list: one job for each item; "": none
	MaxParallel int       // items at a time; 0: no limit
	MaxFailed   MaxFailed `json:",omitzero"` // items that may fail without failing the node
}

// WithDefaults returns the definition with the graph's defaults filled in, so that two definitions
// with the same meaning are equal.
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
		if n.Limits != nil && *n.Limits == nil { // encoded, it would become null, which means those of the task
			n.Limits = &[]job.LimitKey{}
		}
		d.Nodes[name] = n
	}
	return d
}

// Hash identifies the meaning of a definition: with defaults, and independent of the order of keys
// and of each node's dependencies.
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
	sum := sha256.Sum256(text.MustJSON(d)) // map keys are encoded in order
	return hex.EncodeToString(sum[:16])
}

// canonical returns a JSON value with sorted keys and unchanged numbers. What is no JSON becomes a
// string, so that it differs from all JSON.
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

// decode decodes one JSON value and keeps its numbers as written.
func decode(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// Encode writes a definition as it is kept.
func (d Definition) Encode() string { return string(text.MustJSON(d)) }

// ParseDefinition reads what Encode wrote.
func ParseDefinition(s string) (Definition, error) {
	var d Definition
	if err := json.Unmarshal([]byte(s), &d); err != nil {
		return d, fault.New(fault.Undecodable, err, "reading the definition of a dag")
	}
	d.ParamsSchema = unlessNull(d.ParamsSchema)
	for name, n := range d.Nodes {
		n.Payload, n.Retry = unlessNull(n.Payload), unlessNull(n.Retry)
		d.Nodes[name] = n
	}
	return d, nil
}

// unlessNull undoes what encoding makes of an absent value.
func unlessNull(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

package message

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"punctual/shared/horizon"
)

// Verb is what a Dispatch asks for: exactly one of its fields is set.
type Verb struct {
	Fire      *Minute   `json:"fire,omitempty"`      // send the firings of all jobs in a slice of the due index
	Unpark    *Parking  `json:"unpark,omitempty"`    // decide about what a pause has held
	Line      *Schedule `json:"line,omitempty"`      // decide about the jobs queued behind a run of a schedule
	Promote   *Schedule `json:"promote,omitempty"`   // promote one schedule
	Reconcile *Run      `json:"reconcile,omitempty"` // reconcile a run from its rows
	Limit     *LimitKey `json:"limit,omitempty"`     // wake those that wait for a permit of a limit of work
	Forget    *Forget   `json:"forget,omitempty"`    // delete what belongs to a row that the table has deleted
	// Operate asks functions/bulk to continue an operation on rows.
	Operate *Operation `json:"operate,omitempty"`
}

// Operation names an operation.
type Operation struct {
	Tenant      string `json:"tenant"`
	OperationID string `json:"operation_id"`
}

// Minute names a slice of the due index.
type Minute struct {
	At    time.Time `json:"at"`
	Shard int       `json:"shard"`
}

// Parking names a partition of a tenant's parked jobs; "*" is the tenant of pauses for everyone.
type Parking struct {
	Tenant string `json:"tenant"`
	Shard  int    `json:"shard"`
}

// Schedule names a schedule.
type Schedule struct {
	Tenant   string `json:"tenant"`
	Schedule string `json:"schedule"`
}

// Run names a run.
type Run struct {
	Tenant string `json:"tenant"`
	RunID  string `json:"run_id"`
}

// LimitKey names a key of a limit of work; "" is the key of jobs that name none.
type LimitKey struct {
	Tenant string `json:"tenant"`
	Limit  string `json:"limit"`
	Key    string `json:"key,omitempty"`
}

// Forget names a job whose row is gone.
type Forget struct {
	Tenant  string `json:"tenant"`
	JobID   string `json:"job_id"`
	Payload int64  `json:"payload,omitempty"` // the version of its payload in the bucket; 0 for none there
	Result  string `json:"result,omitempty"`  // the reference of its result there; "" for none
}

// Ask returns the message that asks for a verb. Its Slice says the same as one text, for functions of release 0.1 that
// may still run while a deployment goes on. It can go once no older one is supported.
func Ask(v Verb) Dispatch { return Dispatch{V: V, Verb: v, Slice: v.text()} }

// Asked returns the message with its verb and its Slice, whichever of them it came with: one of release 0.1 has Slice
// alone. It is an error if the message asks for nothing known.
func (d Dispatch) Asked() (Dispatch, error) {
	var err error
	if d.Verb == (Verb{}) {
		d.Verb, err = parseVerb(d.Slice)
		return d, err
	}
	if d.Slice = d.Verb.text(); d.Slice == "" {
		err = fmt.Errorf("a dispatch message asks for several things")
	}
	return d, err
}

// text is the verb as one text: for Fire, Unpark and Line it is the key of the due index under which they read. It is
// "" if not exactly one verb is set.
func (v Verb) text() string {
	var texts []string
	add := func(set bool, text func() string) {
		if set {
			texts = append(texts, text())
		}
	}
	add(v.Fire != nil, func() string { return horizon.Slice{Minute: v.Fire.At, Shard: v.Fire.Shard}.String() })
	add(v.Unpark != nil, func() string { return horizon.Parking(v.Unpark.Tenant, v.Unpark.Shard) })
	add(v.Line != nil, func() string { return horizon.Line(v.Line.Tenant, v.Line.Schedule) })
	add(v.Promote != nil, func() string { return "promote#" + v.Promote.Tenant + "#" + v.Promote.Schedule })
	add(v.Reconcile != nil, func() string { return "reconcile#" + v.Reconcile.Tenant + "#" + v.Reconcile.RunID })
	add(v.Limit != nil, func() string { return "limit#" + v.Limit.Tenant + "#" + v.Limit.Limit + "#" + v.Limit.Key })
	add(v.Forget != nil, func() string {
		text := "forget#" + v.Forget.Tenant + "#" + v.Forget.JobID + "#" + strconv.FormatInt(v.Forget.Payload, 10)
		if v.Forget.Result != "" {
			text += "#" + v.Forget.Result
		}
		return text
	})
	add(v.Operate != nil, func() string { return "operate#" + v.Operate.Tenant + "#" + v.Operate.OperationID })
	if len(texts) != 1 {
		return ""
	}
	return texts[0]
}

// parseVerb reads a text of Verb.text.
func parseVerb(s string) (v Verb, err error) {
	kind, rest, _ := strings.Cut(s, "#")
	parts := strings.Split(rest, "#")
	owned := parts[0] != "" && len(parts) > 1 && parts[1] != ""
	switch {
	case kind == "parked" && owned:
		v.Unpark = &Parking{Tenant: parts[0]}
		v.Unpark.Shard, err = strconv.Atoi(parts[1])
	case kind == "line" && owned:
		v.Line = &Schedule{parts[0], strings.TrimPrefix(rest, parts[0]+"#")}
	case kind == "promote" && owned:
		v.Promote = &Schedule{parts[0], strings.TrimPrefix(rest, parts[0]+"#")}
	case kind == "reconcile" && owned:
		v.Reconcile = &Run{parts[0], strings.TrimPrefix(rest, parts[0]+"#")}
	case kind == "operate" && owned:
		v.Operate = &Operation{parts[0], parts[1]}
	case kind == "limit" && owned:
		name, key, _ := strings.Cut(strings.TrimPrefix(rest, parts[0]+"#"), "#")
		v.Limit = &LimitKey{parts[0], name, key}
	case kind == "forget" && parts[0] != "" && (len(parts) == 3 || len(parts) == 4):
		v.Forget = &Forget{Tenant: parts[0], JobID: parts[1]}
		if len(parts) == 4 {
			v.Forget.Result = parts[3]
		}
		if v.Forget.Payload, err = strconv.ParseInt(parts[2], 10, 64); err == nil && v.Forget.Payload < 0 {
			err = fmt.Errorf("the payload's version is negative")
		}
	default:
		var slice horizon.Slice
		if slice, err = horizon.ParseSlice(s); err == nil {
			v.Fire = &Minute{At: slice.Minute, Shard: slice.Shard}
		}
	}
	if err != nil {
		return Verb{}, fmt.Errorf("a dispatch message asks for nothing known: %w", err)
	}
	return v, nil
}

package audit

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"punctual/shared/document"
	"punctual/shared/secret"
	"punctual/shared/text"
)

// Bounds of the changes of an entry, so that its write costs little.
const (
	MaxChanges = 100
	maxValue   = 512      // bytes of a value as JSON; a longer one is left out
	maxValues  = 16 << 10 // bytes of all values
	maxDepth   = 8        // a value further down counts as one
	maxReason  = 1_000    // bytes
	leftOut    = "…"      // in place of a reason that looks like a secret
)

// Change is one value of a resource that a request has changed.
type Change struct {
	Pointer string          `json:"pointer"` // JSON pointer into the resource, or into the request
	From    json.RawMessage `json:"from,omitempty"`
	To      json.RawMessage `json:"to,omitempty"`
	Omitted bool            `json:"omitted,omitempty"` // the values are left out
}

// hidden are the names of fields whose values belong to payloads: only their pointers are kept.
var hidden = []string{"payload", "payload_patch", "params", "headers", "body", "result", "for_each"}

// uncounted are the names of fields of a whole resource that follow from a change, and are none.
var uncounted = []string{"version", "created_at", "updated_at", "effective_at", "next", "last", "notes", "in_flight",
	"ended_by", "failures_in_a_row", "name"}

// differ finds the differences between two values.
type differ struct {
	secrets []string // pointers of strings that look like secrets
	found   []Change
	bytes   int // of values so far
}

// differences lists what changes from one value to another, in the order of pointers; nil is no value. more is how many
// are beyond MaxChanges.
func differences(from, to json.RawMessage) (changes []Change, more int) {
	d := differ{}
	for _, whole := range []json.RawMessage{from, to} {
		if doc, err := document.Read(whole); err == nil {
			search := secret.Search{Doc: doc}
			for f := range search.Below(0, "", nil) {
				d.secrets = append(d.secrets, f.Pointer)
			}
		}
	}
	d.compare("", from, to, 0)
	if more = len(d.found) - MaxChanges; more > 0 {
		return d.found[:MaxChanges], more
	}
	return d.found, 0
}

func (d *differ) compare(pointer string, from, to json.RawMessage, depth int) {
	if absent(from) && absent(to) || from != nil && to != nil && document.Same(from, to) {
		return
	}
	was, isObject := document.Fields(from)
	is, becomesObject := document.Fields(to)
	// An object that comes or goes is shown by its fields, one that takes another value's place as a whole.
	if depth == maxDepth || !(isObject || absent(from)) || !(becomesObject || absent(to)) || len(was)+len(is) == 0 {
		d.add(pointer, from, to)
		return
	}
	names := maps.Clone(was)
	if names == nil {
		names = map[string]json.RawMessage{}
	}
	maps.Copy(names, is)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		at := pointer + "/" + text.EscapePointer(name)
		switch {
		case slices.Contains(uncounted, name) && depth == 0, name == "payload_size":
		case slices.Contains(hidden, name):
			if !absent(was[name]) != !absent(is[name]) || !document.Same(was[name], is[name]) {
				d.found = append(d.found, Change{Pointer: at, Omitted: true})
			}
		default:
			d.compare(at, was[name], is[name], depth+1)
		}
	}
}

func absent(value json.RawMessage) bool { return len(value) == 0 || document.IsNull(value) }

// add notes a change, without its values if they are too large or look like secrets.
func (d *differ) add(pointer string, from, to json.RawMessage) {
	c := Change{Pointer: pointer}
	d.bytes += len(from) + len(to)
	if len(from) > maxValue || len(to) > maxValue || d.bytes > maxValues || d.secret(pointer) {
		d.bytes -= len(from) + len(to)
		c.Omitted = true
	} else {
		c.From, c.To = from, to
	}
	d.found = append(d.found, c)
}

// secret reports whether a string at, above or below a pointer looks like a secret.
func (d *differ) secret(pointer string) bool {
	return slices.ContainsFunc(d.secrets, func(s string) bool {
		return s == pointer || strings.HasPrefix(s, pointer+"/") || strings.HasPrefix(pointer, s+"/")
	})
}

// reasonOf returns the field reason of a request; "" if there is none.
func reasonOf(fields map[string]json.RawMessage) string {
	var reason string
	if json.Unmarshal(fields["reason"], &reason) != nil || reason == "" {
		return ""
	}
	if new(secret.Search).InText(false, "", reason) {
		return leftOut
	}
	return strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"punctual/shared/client"
	"punctual/shared/client/rest"
	"punctual/shared/contract"
)

// What becomes of an entry.
const (
	created   = "created"
	changed   = "changed"
	unchanged = "unchanged"
)

// entry is one resource of a file, and what applying it does.
type entry struct {
	document
	resource
	Kind    string   `json:"kind"`
	Name    string   `json:"name"`
	Outcome string   `json:"outcome"`
	Changes []string `json:"changes,omitempty"` // pointers of the fields that become others
	version int64    // before; 0 is none
}

func (e *entry) title() string { return e.Kind + "/" + e.Name }

var entryColumns = []column[*entry]{
	{"KIND", func(e *entry) string { return e.Kind }},
	{"NAME", func(e *entry) string { return e.Name }},
	{"OUTCOME", func(e *entry) string { return e.Outcome }},
	{"CHANGES", func(e *entry) string { return strings.Join(e.Changes, ", ") }},
}

// write puts an entry. Its version says whether it is another one now.
func (s *shell) write(e *entry) error {
	after, err := client.Call[struct {
		Version int64 `json:"version"`
	}](s.ctx, s.client, e.resource.write, e.request())
	switch {
	case err != nil:
		return e.refused(err)
	case e.Outcome != created && after.Version == e.version:
		e.Outcome, e.Changes = unchanged, nil
	case e.Outcome == unchanged:
		e.Outcome = changed
	}
	return nil
}

// checkEntries finds out what each entry would do. It returns those that would do it, and all violations of all others.
func (s *shell) checkEntries(entries []*entry) (good []*entry, refused error) {
	served := &servedSchemas{}
	var failed []error
	var names []string
	for _, e := range entries {
		err := s.checkEntry(e, entries, served)
		if err == nil {
			good = append(good, e)
			continue
		}
		if n := code(err); n != exitUsage && n != exitRefused {
			return nil, err // so would be the others
		}
		failed, names = append(failed, err), append(names, e.title())
	}
	if len(failed) == 0 {
		return good, nil
	}
	last := fmt.Errorf("refused: %s; nothing is changed", strings.Join(names, ", "))
	return good, errors.Join(append(failed, last)...)
}

var validName = regexp.MustCompile(contract.NamePattern)

// checkEntry finds out what an entry would do, which is an error when it would be refused.
func (s *shell) checkEntry(e *entry, entries []*entry, served *servedSchemas) error {
	if !validName.MatchString(e.name) {
		return usage{e.wrong(e.at("/name"), "%q is no name; allowed: 1 to %d of a-z A-Z 0-9 _ -", e.name,
			contract.MaxName)}
	}
	body, err := served.of(s, e.resource.write)
	if err != nil {
		return err
	}
	before, err := client.Call[json.RawMessage](s.ctx, s.client, e.resource.read, client.Request{
		Path: []string{e.name}})
	if err != nil && !errors.Is(err, client.NotFound) {
		return e.refused(err)
	}
	var changes []string
	known := true // whether changes are all that there are
	if e.resource.try != nil {
		changes, err = e.resource.try(s, e.document)
		known = err == nil
		if err = e.withoutThoseOfTheFile(err, entries); err != nil {
			return e.refused(err)
		}
	}
	if e.resource.try == nil || !known { // else the API has seen all of it
		if err := e.fits(s.ctx, body); err != nil {
			return err
		}
	}
	if err := s.knowsLimits(e, entries); err != nil {
		return err
	}
	if before == nil {
		e.Outcome = created
		return nil
	}
	if e.resource.defaults != "" {
		known = true
		if changes, err = e.differences(before, body.fields); err != nil {
			return err
		}
	}
	var view struct {
		Version int64
		BuiltIn bool `json:"built_in"`
	}
	if err := json.Unmarshal(before, &view); err != nil {
		return fmt.Errorf("reading %s: %w", e.title(), err)
	}
	if view.BuiltIn {
		return e.wrong(e.node, "%s is built in and cannot be changed", e.title())
	}
	e.version, e.Changes, e.Outcome = view.Version, changes, changed
	if known && len(changes) == 0 && (e.resource.defaults != "" || !e.follows(entries, settings)) {
		e.Outcome = unchanged
	}
	return nil
}

// A dependence is a check of one resource that depends on fields of another one.
type dependence struct {
	at     *regexp.Regexp // the pointers of the violations
	kind   string         // of the other resource
	fields []string
}

var dependences = []dependence{
	{regexp.MustCompile(`/payload(/|$)`), "task", []string{"/payload_schema", "/executor"}},
	{regexp.MustCompile(`/params(/|$)`), "dag", []string{"/params"}}, // and /params_schema
	{regexp.MustCompile(`/exclude(/|$)|^/calendars?(/\d+)?$`), "exclusion", []string{"/"}},
}

// settings are the fields of a task that a schedule takes over when it is written.
var settings = dependence{kind: "task", fields: []string{"/pool", "/priority", "/timeout", "/retry"}}

// kindOf is the kind of resource that a violation says is unknown; "" for any other violation.
func kindOf(v rest.ProblemError) string {
	if excluded.MatchString(v.Pointer) {
		return "exclusion"
	}
	switch client.Code(v.Code) {
	case client.UnknownTask:
		return "task"
	case client.UnknownDag:
		return "dag"
	case client.UnknownLimit:
		return "limit"
	}
	return ""
}

// excluded is the pointer of the name of an exclusion.
var excluded = regexp.MustCompile(`/exclude/\d+$`)

// withoutThoseOfTheFile leaves out of a refusal what the file itself changes before this entry is written: unknown
// names of its entries, and contents that are checked by an entry which the file changes. When those are wrong, the
// write says so.
func (e *entry) withoutThoseOfTheFile(err error, entries []*entry) error {
	refusal, ok := errors.AsType[*client.Error](err)
	if !ok || len(refusal.Violations()) == 0 {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(refusal.Violations()), func(v rest.ProblemError) bool {
		if kind := kindOf(v); kind != "" {
			return in(entries, kind, e.at(v.Pointer).Value)
		}
		return slices.ContainsFunc(dependences, func(d dependence) bool {
			return d.at.MatchString(v.Pointer) && e.follows(entries, d)
		})
	})
	if len(left) == 0 {
		return nil
	}
	less := *refusal
	less.Errors = &left
	return &less
}

// follows says whether the entry names one of which the file changes such a field.
func (e *entry) follows(entries []*entry, d dependence) bool {
	names := map[string]bool{}
	scalars(e.node, names)
	return slices.ContainsFunc(entries, func(other *entry) bool {
		return other.Kind == d.kind && names[other.Name] && (other.Outcome == created || d.isIn(other.Changes))
	})
}

// isIn says whether a pointer is that of one of the fields, or below it.
func (d dependence) isIn(pointers []string) bool {
	for _, field := range d.fields {
		if slices.ContainsFunc(pointers, func(p string) bool { return strings.HasPrefix(p, field) }) {
			return true
		}
	}
	return false
}

// scalars collects the names and values in a node.
func scalars(n *yaml.Node, values map[string]bool) {
	if n.Kind == yaml.ScalarNode {
		values[n.Value] = true
	}
	for _, child := range n.Content {
		scalars(child, values)
	}
}

func in(entries []*entry, kind, name string) bool {
	return slices.ContainsFunc(entries, func(e *entry) bool { return e.Kind == kind && e.Name == name })
}

// knowsLimits is an error for each limit of a task that neither the API nor the file has: tasks have no dry run.
func (s *shell) knowsLimits(e *entry, entries []*entry) error {
	var body struct{ Limits []struct{ Name string } }
	if e.resource.try != nil || json.Unmarshal(e.body, &body) != nil {
		return nil
	}
	var failed []error
	for i, l := range body.Limits {
		if in(entries, "limit", l.Name) {
			continue
		}
		if _, err := s.client.Limit(s.ctx, l.Name); errors.Is(err, client.NotFound) {
			failed = append(failed, e.violation(rest.ProblemError{Pointer: fmt.Sprintf("/limits/%d/name", i),
				Detail: fmt.Sprintf("there is no limit %q", l.Name)}))
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return usage{errors.Join(failed...)}
}

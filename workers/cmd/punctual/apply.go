package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

type applyFile struct {
	source
	DryRun bool `help:"Show what would be created or changed without changing anything."`
}

// Run checks every entry before it writes one, so that an error that can be found before leaves all as it was. Then it
// writes each after those that it refers to, and stops at the first that is refused.
func (c applyFile) Run(s *shell) error {
	entries, err := c.entries(s)
	if err != nil {
		return usage{err}
	}
	good, refused := s.checkEntries(entries)
	if refused != nil && !c.DryRun {
		return refused
	}
	var failed error
	done := func(yield func(*entry, error) bool) {
		for i, e := range good {
			if !c.DryRun {
				failed = s.write(e)
			}
			if failed != nil {
				failed = notApplied(failed, good[i:])
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
	err = list(s, done, 0, (*entry).title, entryColumns...)
	return errors.Join(err, failed, refused)
}

// notApplied adds to the error of the first entry the names of all that were not written.
func notApplied(err error, entries []*entry) error {
	var titles []string
	for _, e := range entries {
		titles = append(titles, e.title())
	}
	left := "not applied: " + strings.Join(titles, ", ")
	if errors.Is(err, context.Canceled) {
		return interrupted(left)
	}
	return errors.Join(err, errors.New(left))
}

// entries reads the file. Each of its documents is one resource with its kind, or has lists of resources by kind. They
// are in the order of the resources, which refer to earlier ones.
func (c applyFile) entries(s *shell) ([]*entry, error) {
	file, roots, err := c.nodes(s)
	if err != nil {
		return nil, err
	}
	var all []*entry
	var failed []error
	for i, root := range roots {
		d := document{file: file, node: root}
		if len(roots) > 1 {
			d.file = fmt.Sprintf("%s, document %d", file, i+1)
		}
		found, err := d.entries()
		all, failed = append(all, found...), append(failed, err)
	}
	lines := map[string]string{}
	for _, e := range all {
		line := fmt.Sprintf("%s: line %d", e.file, e.node.Line)
		if before := lines[e.title()]; before != "" {
			failed = append(failed, e.wrong(e.node, "%s is in the file twice; before: %s", e.title(), before))
		}
		lines[e.title()] = line
	}
	slices.SortStableFunc(all, func(a, b *entry) int { return order(a.Kind) - order(b.Kind) })
	return all, errors.Join(failed...)
}

// order is the position of a kind among the resources; -1 if there is no such kind.
func order(kind string) int {
	return slices.IndexFunc(resources, func(r resource) bool { return r.kind == kind })
}

// entries reads a document of a file.
func (d document) entries() (all []*entry, err error) {
	if d.node.Kind != yaml.MappingNode {
		return nil, d.wrong(d.node, "want a document with kind and name, or with lists such as tasks")
	}
	var kinds, keys []string
	for _, r := range resources {
		kinds, keys = append(kinds, r.kind), append(keys, r.kind+"s")
	}
	var failed []error
	add := func(kind string, n *yaml.Node) {
		one, err := read(d.file, n, "kind")
		if err != nil {
			failed = append(failed, err)
			return
		}
		all = append(all, &entry{document: one, resource: resources[order(kind)], Kind: kind, Name: one.name})
	}
	for i := 0; i+1 < len(d.node.Content); i += 2 {
		if d.node.Content[i].Value != "kind" {
			continue
		}
		kind := d.node.Content[i+1]
		if order(kind.Value) < 0 {
			return nil, d.wrong(kind, "there is no kind %q%s; allowed: %s", kind.Value, suggestion(kind.Value, kinds),
				strings.Join(kinds, ", "))
		}
		add(kind.Value, d.node)
		return all, errors.Join(failed...)
	}
	for i := 0; i+1 < len(d.node.Content); i += 2 {
		key, values := d.node.Content[i], d.node.Content[i+1]
		kind := strings.TrimSuffix(key.Value, "s")
		switch {
		case !slices.Contains(keys, key.Value):
			failed = append(failed, d.wrong(key, "no key %q is known here%s; allowed: kind and name, or %s", key.Value,
				suggestion(key.Value, append(keys, "kind")), strings.Join(keys, ", ")))
		case values.Kind != yaml.SequenceNode:
			failed = append(failed, d.wrong(values, "%s is no list", key.Value))
		default:
			for _, n := range values.Content {
				add(kind, n)
			}
		}
	}
	return all, errors.Join(failed...)
}

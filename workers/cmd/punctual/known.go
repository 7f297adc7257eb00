package main

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"punctual/shared/client"
	"punctual/shared/text"
)

// unknownKeys is an error for each key of a YAML node that the type, a struct with yaml tags or a map of them, does
// not have. It names the place, the nearest key and those that are allowed.
func unknownKeys(n *yaml.Node, t reflect.Type) error {
	switch {
	case t.Kind() == reflect.Pointer:
		return unknownKeys(n, t.Elem())
	case n.Kind == yaml.DocumentNode && len(n.Content) > 0:
		return unknownKeys(n.Content[0], t)
	case n.Kind != yaml.MappingNode:
		return nil // a value of the wrong kind is an error of its decoding
	}
	fields := map[string]reflect.Type{}
	if t.Kind() == reflect.Struct {
		for f := range t.Fields() {
			fields[f.Tag.Get("yaml")] = f.Type
		}
	}
	allowed := slices.Sorted(maps.Keys(fields))
	var all []error
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		field, known := fields[key.Value]
		switch {
		case t.Kind() == reflect.Map:
			all = append(all, unknownKeys(value, t.Elem()))
		case known:
			all = append(all, unknownKeys(value, field))
		case t.Kind() == reflect.Struct:
			all = append(all, fmt.Errorf("line %d, column %d: no key %q is known here%s; allowed: %s",
				key.Line, key.Column, key.Value, suggestion(key.Value, allowed), strings.Join(allowed, ", ")))
		}
	}
	return errors.Join(all...)
}

// suggestion names the nearest of the known names, if one is near.
func suggestion(name string, known []string) string {
	if near := text.Nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// noJob explains that no job has an identifier where a run has it: verb is what shows or changes the run.
func (s *shell) noJob(id, verb string, err error) error {
	if !errors.Is(err, client.NotFound) {
		return err
	}
	if _, e := s.client.Run(s.ctx, id); e != nil {
		return err // the job is what was asked for
	}
	return fmt.Errorf("a run of a dag has this identifier, not a job; use: punctual %s %s", verb, id)
}

// unknownTask explains that no task has a name, and names the nearest one; nil where one has it, or it is not known
// whether one does.
func (s *shell) unknownTask(name string) error {
	if _, err := s.client.Task(s.ctx, name); !errors.Is(err, client.NotFound) {
		return nil
	}
	var names []string
	for t, err := range s.client.Tasks(s.ctx) {
		if err != nil {
			break // the nearest of those that were read
		}
		names = append(names, t.Name)
	}
	return fmt.Errorf("there is no task %q%s", name, suggestion(name, names))
}

// warnOfTask writes a warning where the task that a filter names is unknown.
func (s *shell) warnOfTask(name string) {
	if name == "" {
		return
	}
	if unknown := s.unknownTask(name); unknown != nil {
		_, _ = fmt.Fprintf(s.err, "warning: %s\n", worded(unknown))
	}
}

// ofTask passes on the values of a filter by task. Where there are none it warns if the task is unknown: the jobs of
// a task that was deleted are still listed.
func ofTask[T any](s *shell, task string, values iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		none := true
		for v, err := range values {
			none = false
			if !yield(v, err) {
				return
			}
		}
		if none {
			s.warnOfTask(task)
		}
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"punctual/shared/text"
)

// column is one of a table.
type column[T any] struct {
	head string
	cell func(T) string
}

// show writes one value in the form that was asked for.
func show[T any](s *shell, v T, name func(T) string, columns ...column[T]) error {
	switch s.output {
	case "json", "yaml":
		return s.encode(v)
	case "name":
		_, err := fmt.Fprintln(s.out, name(v))
		return err
	}
	rows := cells([]T{v}, columns)
	if s.width > 0 && total(s.natural(rows)) > s.width {
		return s.upright(rows)
	}
	return s.grid(rows)
}

// list writes up to limit values in the form that was asked for; 0 is no limit.
func list[T any](
	s *shell, values iter.Seq2[T, error], limit int, name func(T) string, columns ...column[T],
) error {
	all, more := []T{}, false
	for v, err := range values {
		if err != nil {
			return err
		}
		if limit > 0 && len(all) == limit {
			more = true
			break
		}
		all = append(all, v)
	}
	if more {
		_, _ = fmt.Fprintf(s.err, "the first %d; --limit shows more\n", limit)
	}
	switch s.output {
	case "json", "yaml":
		return s.encode(all)
	case "name":
		for _, v := range all {
			if _, err := fmt.Fprintln(s.out, name(v)); err != nil {
				return err
			}
		}
		return nil
	}
	return s.grid(cells(all, columns))
}

// plain keeps a cell on its line, and a terminal from obeying what a tenant wrote.
func plain(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if text.Hidden(r) {
			return ' '
		}
		return r
	}, s)
}

// encode writes a value as JSON, or as the YAML of the same fields in the same order.
func (s *shell) encode(v any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	if s.output == "yaml" {
		var node yaml.Node
		if err := yaml.Unmarshal(text.Bytes(), &node); err != nil {
			return err
		}
		block(&node)
		out, err := yaml.Marshal(&node)
		if err != nil {
			return err
		}
		text = *bytes.NewBuffer(out)
	}
	_, err := s.out.Write(text.Bytes())
	return err
}

// block writes collections one item a line, and strings without quotes where they need none.
func block(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!str" {
		n.Style = 0
	}
	for _, child := range n.Content {
		block(child)
	}
}

func instant(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

func count(n int64) string { return strconv.FormatInt(n, 10) }

func of[T ~string](p *T) string {
	if p == nil {
		return ""
	}
	return string(*p)
}

// ptr is a field of a request: absent when it is the zero value.
func ptr[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

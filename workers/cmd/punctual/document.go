package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

// document is one of a YAML file: a resource by its name.
type document struct {
	file string
	name string
	body []byte // JSON, without the name
	node *yaml.Node
}

// request is that of a put of the document.
func (d document) request() client.Request {
	return client.Request{Path: []string{d.name}, Body: json.RawMessage(d.body)}
}

// source is the file that a verb applies.
type source struct {
	File string `short:"f" required:"" help:"YAML file of one or more documents; - reads standard input."`
}

// documents reads the documents of the file. An error names its line and column.
func (f source) documents(s *shell) ([]document, error) {
	file, roots, err := f.nodes(s)
	if err != nil {
		return nil, usage{err}
	}
	var all []document
	for _, root := range roots {
		doc, err := read(file, root)
		if err != nil {
			return nil, usage{err}
		}
		all = append(all, doc)
	}
	return all, nil
}

// nodes reads the YAML of the file, and returns the root of each document with the name of the file.
func (f source) nodes(s *shell) (file string, roots []*yaml.Node, err error) {
	file = f.File
	var text []byte
	if file == "-" {
		file = "standard input"
		text, err = io.ReadAll(s.in)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return file, nil, err
	}
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var n yaml.Node
		err := d.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return file, nil, fmt.Errorf("%s: %w", file, broken(err))
		}
		if len(n.Content) == 0 || n.Content[0].Tag == "!!null" {
			continue // only comments
		}
		roots = append(roots, n.Content[0])
	}
	if len(roots) == 0 {
		return file, nil, fmt.Errorf("%s holds no document", file)
	}
	return file, roots, nil
}

// check tries each document, and returns all violations of all that are refused.
func (s *shell) check(docs []document, try func(document) error) error {
	var failed []error
	var names []string
	for _, d := range docs {
		err := try(d)
		if err == nil {
			continue
		}
		if n := code(err); n != exitUsage && n != exitRefused {
			return d.refused(err) // so would be the others
		}
		failed, names = append(failed, d.refused(err)), append(names, d.name)
	}
	if len(failed) == 0 {
		return nil
	}
	return errors.Join(append(failed, fmt.Errorf("refused: %s; nothing is changed", strings.Join(names, ", ")))...)
}

// apply lists what put makes of each. It goes on after one that is refused.
func apply[T any](
	s *shell, docs []document, put func(document) (T, error), name func(T) string, columns ...column[T],
) error {
	var failed []error
	applied := func(yield func(T, error) bool) {
		for _, d := range docs {
			view, err := put(d)
			if err != nil {
				failed = append(failed, d.refused(err))
				continue
			}
			if !yield(view, nil) {
				return
			}
		}
	}
	if err := list(s, applied, 0, name, columns...); err != nil {
		return err
	}
	return errors.Join(failed...)
}

// broken is an error in the syntax of YAML, which begins with its place.
func broken(err error) error {
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		return fmt.Errorf("line %d, column %d: %s", e.Mark.Line, e.Mark.Column, e.Message)
	}
	return err
}

// read reads a document. The fields that are apart, and its name, are not in its body.
func read(file string, n *yaml.Node, apart ...string) (document, error) {
	doc := document{file: file, node: n}
	if n.Kind != yaml.MappingNode {
		return doc, doc.wrong(n, "want a document with name and what it names")
	}
	rest := *n
	rest.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		if slices.Contains(apart, n.Content[i].Value) {
			continue
		}
		if n.Content[i].Value != "name" {
			rest.Content = append(rest.Content, n.Content[i], n.Content[i+1])
			continue
		}
		if doc.name = n.Content[i+1].Value; n.Content[i+1].Kind != yaml.ScalarNode || doc.name == "" {
			return doc, doc.wrong(n.Content[i+1], "name is no name")
		}
	}
	if doc.name == "" {
		return doc, doc.wrong(n, "the document has no name")
	}
	var text bytes.Buffer
	if err := doc.encode(&text, &rest, 0); err != nil {
		return doc, err
	}
	doc.body = text.Bytes()
	return doc, nil
}

func (d document) wrong(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s: line %d, column %d: %s", d.file, n.Line, n.Column, fmt.Sprintf(format, args...))
}

// number is what JSON calls one; other spellings of YAML are read and written again.
var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// encode writes a node as JSON. Numbers keep their digits, and times stay as they are spelt.
func (d document) encode(w *bytes.Buffer, n *yaml.Node, depth int) error {
	if depth > 100 {
		return d.wrong(n, "it is nested too deep")
	}
	switch n.Kind {
	case yaml.AliasNode:
		return d.wrong(n, "aliases are not taken: write it out")
	case yaml.MappingNode:
		w.WriteByte('{')
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
				return d.wrong(key, "the name of a field is a string")
			}
			if seen[key.Value] {
				return d.wrong(key, "%s stands twice", key.Value)
			}
			seen[key.Value] = true
			if i > 0 {
				w.WriteByte(',')
			}
			quote(w, key.Value)
			w.WriteByte(':')
			if err := d.encode(w, n.Content[i+1], depth+1); err != nil {
				return err
			}
		}
		w.WriteByte('}')
		return nil
	case yaml.SequenceNode:
		w.WriteByte('[')
		for i, child := range n.Content {
			if i > 0 {
				w.WriteByte(',')
			}
			if err := d.encode(w, child, depth+1); err != nil {
				return err
			}
		}
		w.WriteByte(']')
		return nil
	}
	switch n.ShortTag() {
	case "!!null":
		w.WriteString("null")
	case "!!bool":
		w.WriteString(strings.ToLower(n.Value))
	case "!!int", "!!float":
		if number.MatchString(n.Value) {
			w.WriteString(n.Value)
			return nil
		}
		var v any
		if err := n.Decode(&v); err != nil {
			return d.wrong(n, "%v", err)
		}
		text, err := json.Marshal(v)
		if err != nil {
			return d.wrong(n, "%s is no number of JSON", n.Value)
		}
		w.Write(text)
	default:
		quote(w, n.Value)
	}
	return nil
}

func quote(w *bytes.Buffer, text string) {
	out, _ := json.Marshal(text) // a string always can be
	w.Write(out)
}

// refused says where in the file each violation is that the API has found.
func (d document) refused(err error) error {
	e, ok := errors.AsType[*client.Error](err)
	if !ok || len(e.Violations()) == 0 {
		return fmt.Errorf("%s: %s: %w", d.file, d.name, err)
	}
	var all []error
	for _, m := range e.Violations() {
		all = append(all, d.violation(m))
	}
	return usage{errors.Join(all...)}
}

// violation says where in the file it is.
func (d document) violation(m rest.ProblemError) error {
	n := d.at(m.Pointer)
	if m.Code == rest.ProblemErrorCode(client.UnknownField) {
		n = d.key(m.Pointer)
	}
	text := fmt.Sprintf("%s: line %d, column %d: %s: %s", d.file, n.Line, n.Column, m.Pointer, m.Detail)
	if allowed := of(m.Allowed); allowed != "" {
		text += "; allowed: " + allowed
	}
	return errors.New(text)
}

// key is the name of the field that a JSON pointer names, or what at returns.
func (d document) key(pointer string) *yaml.Node {
	value := d.at(pointer)
	parent := d.at(pointer[:max(0, strings.LastIndexByte(pointer, '/'))])
	for i := 0; parent.Kind == yaml.MappingNode && i+1 < len(parent.Content); i += 2 {
		if parent.Content[i+1] == value {
			return parent.Content[i]
		}
	}
	return value
}

// at is the node that a JSON pointer names, or the last one on the way that is there.
func (d document) at(pointer string) *yaml.Node {
	n := d.node
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		child := (*yaml.Node)(nil)
		switch n.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == name {
					child = n.Content[i+1]
				}
			}
		case yaml.SequenceNode:
			if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(n.Content) {
				child = n.Content[i]
			}
		}
		if child == nil {
			return n
		}
		n = child
	}
	return n
}

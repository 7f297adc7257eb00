package api

import (
	"iter"

	"punctual/shared/executor"
)

// payloadReader lets executors check payloads with a reader; it is an executor.Reader.
type payloadReader struct{ r *reader }

func (p payloadReader) Object(v executor.Value, known []string) map[string]executor.Value {
	f := p.r.object(v.Node, v.Pointer, known)
	if f == nil {
		return nil
	}
	fields := make(map[string]executor.Value, len(f))
	for name, v := range f {
		fields[name] = executor.Value{Node: v.node, Pointer: v.pointer}
	}
	return fields
}

func (p payloadReader) IsObject(v executor.Value, allowed string) bool {
	got := p.r.doc.nodes[v.Node].kind
	if got != kindObject {
		p.r.mistake(v.Pointer, codeInvalidValue, allowed, "%s is given where an object belongs", got)
	}
	return got == kindObject
}

func (p payloadReader) Members(v executor.Value) iter.Seq2[string, int] {
	return iter.Seq2[string, int](p.r.doc.members(v.Node))
}

func (payloadReader) Member(of executor.Value, name string, node int) executor.Value {
	return executor.Value{Node: node, Pointer: of.Pointer + "/" + escapePointer(name)}
}

func (p payloadReader) Repeated(v executor.Value) func(node int) bool {
	repeated := p.r.doc.repeated(v.Node)
	return func(node int) bool { return repeated[int32(node-1)] } // a name stands before its value
}

func (p payloadReader) Text(v executor.Value) (string, bool) {
	return p.r.text(value{v.Node, v.Pointer})
}

func (p payloadReader) Peek(v executor.Value) (s string, ok bool) {
	if v.Pointer == "" || p.r.doc.nodes[v.Node].kind != kindString {
		return "", false
	}
	return p.r.doc.string(v.Node), true
}

func (p payloadReader) Size(v executor.Value) int { return len(p.r.doc.compact(v.Node)) }

func (p payloadReader) OneOf(v executor.Value, words []string) {
	p.r.oneOf(value{v.Node, v.Pointer}, codeInvalidValue, words)
}

func (p payloadReader) Whole(v executor.Value, least, most int) {
	p.r.whole(value{v.Node, v.Pointer}, least, most)
}

func (p payloadReader) Span(v executor.Value) { p.r.span(value{v.Node, v.Pointer}) }

func (p payloadReader) Missing(v executor.Value, name string) { p.r.missing(v.Pointer, name) }

func (p payloadReader) Mistake(v executor.Value, code, allowed, detail string) {
	p.r.mistake(v.Pointer, code, allowed, "%s", detail)
}

func (payloadReader) Quoted(name string) string { return quoted(name) }

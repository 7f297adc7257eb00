package api

import (
	"iter"

	"punctual/functions/api/wire"
	"punctual/shared/executor"
	"punctual/shared/text"
)

// payloadReader is an executor.Reader over a reader, for executors that check payloads.
type payloadReader struct{ r *wire.Reader }

func (p payloadReader) Object(v executor.Value, known []string) map[string]executor.Value {
	f := p.r.Object(v.Node, v.Pointer, known)
	if f == nil {
		return nil
	}
	fields := make(map[string]executor.Value, len(f))
	for name, v := range f {
		fields[name] = executor.Value{Node: v.Node, Pointer: v.Pointer}
	}
	return fields
}

func (p payloadReader) IsObject(v executor.Value, allowed string) bool {
	got := p.r.Doc.Kind(v.Node)
	if got != wire.KindObject {
		p.r.Mistake(v.Pointer, wire.CodeInvalidValue, allowed, "%s is given where an object belongs", got)
	}
	return got == wire.KindObject
}

func (p payloadReader) Members(v executor.Value) iter.Seq2[string, int] {
	return p.r.Doc.Members(v.Node)
}

func (payloadReader) Member(of executor.Value, name string, node int) executor.Value {
	return executor.Value{Node: node, Pointer: of.Pointer + "/" + text.EscapePointer(name)}
}

func (p payloadReader) Repeated(v executor.Value) func(node int) bool {
	repeated := p.r.Doc.Repeated(v.Node)
	return func(node int) bool { return repeated[int32(node-1)] } // the node before a value is its name
}

func (p payloadReader) Text(v executor.Value) (string, bool) {
	return p.r.Text(wire.Value{Node: v.Node, Pointer: v.Pointer})
}

func (p payloadReader) Peek(v executor.Value) (s string, ok bool) {
	if v.Pointer == "" || p.r.Doc.Kind(v.Node) != wire.KindString {
		return "", false
	}
	return p.r.Doc.Text(v.Node), true
}

func (p payloadReader) Size(v executor.Value) int { return len(p.r.Doc.Compact(v.Node)) }

func (p payloadReader) OneOf(v executor.Value, words []string) {
	p.r.OneOf(wire.Value{Node: v.Node, Pointer: v.Pointer}, wire.CodeInvalidValue, words)
}

func (p payloadReader) Whole(v executor.Value, least, most int) {
	p.r.Whole(wire.Value{Node: v.Node, Pointer: v.Pointer}, least, most)
}

func (p payloadReader) Span(v executor.Value) { p.r.Span(wire.Value{Node: v.Node, Pointer: v.Pointer}) }

func (p payloadReader) Missing(v executor.Value, name string) { p.r.Missing(v.Pointer, name) }

func (p payloadReader) Mistake(v executor.Value, code, allowed, detail string) {
	p.r.Mistake(v.Pointer, code, allowed, "%s", detail)
}

func (payloadReader) Quoted(name string) string { return text.Quoted(name) }

package document

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"punctual/shared/text"
)

// Merge is a merge patch of RFC 7396 on JSON texts. It does not change the bytes of what the patch leaves alone.
func Merge(base, patch json.RawMessage) json.RawMessage {
	if len(base) == 0 && !bytes.Contains(patch, []byte("null")) {
		return patch // there is nothing to keep and nothing to remove
	}
	changes, ok := Fields(patch)
	if !ok {
		return patch
	}
	fields, ok := Fields(base)
	if !ok {
		fields = map[string]json.RawMessage{}
	}
	for name, change := range changes {
		if IsNull(change) {
			delete(fields, name)
			continue
		}
		fields[name] = Merge(fields[name], change)
	}
	return EncodeObject(fields)
}

// IsNull reports whether a JSON text is null.
func IsNull(raw json.RawMessage) bool { return bytes.Equal(bytes.TrimSpace(raw), []byte("null")) }

// Fields returns the fields of a JSON object; false for any other value.
func Fields(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	var fields map[string]json.RawMessage
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) { // most values of an object are no objects themselves
		return map[string]json.RawMessage{}, false
	}
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return map[string]json.RawMessage{}, false
	}
	return fields, true
}

// EncodeObject writes fields in the order of their names, with their values unchanged.
func EncodeObject(fields map[string]json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for n, name := range slices.Sorted(maps.Keys(fields)) {
		if n > 0 {
			b.WriteByte(',')
		}
		b.Write(text.MustJSON(name))
		b.WriteByte(':')
		b.Write(fields[name])
	}
	b.WriteByte('}')
	return b.Bytes()
}

// Same reports whether two texts are JSON that means the same.
func Same(a, b []byte) bool {
	x, errX := Read(a)
	y, errY := Read(b)
	return errX == nil && errY == nil && x.Hash(0, "") == y.Hash(0, "")
}

package text

import (
	"strconv"
	"strings"
)

// inspected is how much of a long name is looked at before its beginning is shown: more than any
// token that begins there needs to be known.
const inspected = 512

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// EscapePointer writes a name as a part of a JSON pointer. Names come from strangers: long ones
// are cut, and one that looks like a secret is not shown.
func EscapePointer(name string) string {
	const limit = 128
	switch {
	case TokenShaped(name[:min(len(name), inspected)]):
		return "…"
	case len(name) > limit:
		name = strings.ToValidUTF8(name[:limit], "") + "…"
	}
	return pointerEscapes.Replace(name)
}

// CutName makes a name that came from a stranger fit to be shown: at most 64 bytes, and "…" for one
// that looks like a secret.
func CutName(name string) string {
	const limit = 64
	if TokenShaped(name[:min(len(name), inspected)]) {
		return "…"
	}
	if len(name) > limit {
		name = strings.ToValidUTF8(name[:limit], "") + "…"
	}
	return name
}

// Quoted returns a name that came from a stranger in quotes, as far as CutName shows it.
func Quoted(name string) string { return strconv.Quote(CutName(name)) }

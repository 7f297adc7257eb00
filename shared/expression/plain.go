package expression

import "cel.dev/cel-go/common/types"

// IsPlain reports whether a value is a text, a number or a boolean.
func IsPlain(v any) bool {
	switch v.(type) {
	case types.String, types.Bool, types.Int, types.Uint, types.Double, *Number:
		return true
	}
	return false
}

package text

import (
	"strconv"
	"strings"
)

// CanonicalNumber writes equal numbers the same way, exactly: 1.50e2 and 150 are 15e1. Floats
// would call different large integers equal. An exponent beyond counting is left as written.
func CanonicalNumber(s string) string {
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0"
	}
	e := 0
	if exponent != "" {
		var err error
		if e, err = strconv.Atoi(exponent); err != nil || e > 1<<30 || e < -1<<30 {
			return sign + s
		}
	}
	trimmed := strings.TrimRight(digits, "0")
	e += len(digits) - len(trimmed) - len(fraction)
	return sign + trimmed + "e" + strconv.Itoa(e)
}

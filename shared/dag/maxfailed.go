package dag

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxFailed is how many items of a node with for_each may fail without failing the node; the zero value is none.
// At most one of its fields is not zero.
type MaxFailed struct {
	Count   int `json:",omitempty"`
	Percent int `json:",omitempty"` // of the items
}

// Allows says whether so many of all items may fail.
func (m MaxFailed) Allows(failed, total int) bool {
	if m.Percent > 0 {
		return failed*100 <= m.Percent*total
	}
	return failed <= m.Count
}

// String returns the value as a user writes it: 5 or 10%.
func (m MaxFailed) String() string {
	if m.Percent > 0 {
		return strconv.Itoa(m.Percent) + "%"
	}
	return strconv.Itoa(m.Count)
}

// PercentFailed reads the text of a share, such as 10%. It is false for anything but a whole number of 0 to 100.
func PercentFailed(s string) (MaxFailed, bool) {
	digits, ok := strings.CutSuffix(s, "%")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || n > 100 || strconv.Itoa(n) != digits {
		return MaxFailed{}, false
	}
	return MaxFailed{Percent: n}, true
}

// check adds what is wrong about the max_failed of a node at that pointer.
func (m MaxFailed) check(at string, n Node, wrong *violations) {
	switch {
	case m != MaxFailed{} && n.ForEach == "":
		wrong.add(at, codeInvalidValue, "together with for_each", "only a node with for_each has items that may fail")
	case m.Count < 0 || m.Count > MaxItems || m.Percent < 0 || m.Percent > 100 || m.Count*m.Percent > 0:
		wrong.add(at, codeOutOfRange, fmt.Sprintf(`0 to %d, or "0%%" to "100%%"`, MaxItems), "max_failed is %s", m)
	}
}

package text

import (
	"errors"
	"strconv"
	"strings"
)

// BytesPattern is the form of a size in requests.
const BytesPattern = `^[0-9]{1,9}(B|KB|KiB|MB|MiB)$`

// units are those of sizes, in bytes; of one that ends with another the longer is first.
var units = []struct {
	name  string
	bytes int
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"KB", 1000}, {"MB", 1000 * 1000}, {"B", 1}}

// ErrBytes is the error of a text that is no size.
var ErrBytes = errors.New("this is no size: want a whole number and B, KB, KiB, MB or MiB")

// ParseBytes reads a size such as "16KiB" and returns it in bytes.
func ParseBytes(s string) (int, error) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 32)
		if err != nil || len(digits) > 9 {
			return 0, ErrBytes
		}
		return int(n) * u.bytes, nil
	}
	return 0, ErrBytes
}

// Bytes writes a size as ParseBytes reads it, in the largest binary unit that it is a multiple of.
func Bytes(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return strconv.Itoa(n>>20) + "MiB"
	case n >= 1<<10 && n%(1<<10) == 0:
		return strconv.Itoa(n>>10) + "KiB"
	}
	return strconv.Itoa(n) + "B"
}

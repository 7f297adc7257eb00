package span

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Allowed says what Parse accepts, for the "allowed" of an error.
const Allowed = "whole numbers with a unit of ms, s, m, h or d, such as 90s, 1h30m or 2d"

// MaxText bounds the length of a text; the longest useful one is far shorter.
const MaxText = 64

type unit struct {
	name string
	is   time.Duration
}

// units is in the order in which Format uses them: a day is always 24 hours.
var units = []unit{
	{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond},
}

// Parse reads a length of time written as contract.DurationPattern allows. Units may come in any
// order and more than once; they are added. The error says what is allowed and never repeats s,
// which may come from a stranger.
func Parse(s string) (time.Duration, error) {
	if s == "" || len(s) > MaxText {
		return 0, fmt.Errorf("a length of time is %s", Allowed)
	}
	var sum time.Duration
	for s != "" {
		digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
		rest := s[digits:]
		letters := len(rest) - len(strings.TrimLeft(rest, "mshd"))
		each := unitNamed(rest[:letters])
		if digits == 0 || each == 0 {
			return 0, fmt.Errorf("a length of time is %s", Allowed)
		}
		n, err := strconv.ParseInt(s[:digits], 10, 64)
		if err != nil || n > (math.MaxInt64-int64(sum))/int64(each) {
			return 0, fmt.Errorf("a length of time is at most %s", Format(math.MaxInt64))
		}
		sum += time.Duration(n) * each
		s = rest[letters:]
	}
	return sum, nil
}

// unitNamed returns the length of one unit; 0 for an unknown name.
func unitNamed(name string) time.Duration {
	for _, u := range units {
		if u.name == name {
			return u.is
		}
	}
	return 0
}

// Format returns the shortest text for d: "1m30s" for 90 s, "0s" for nothing. It drops what is less
// than a millisecond, and writes a negative length as "0s": neither can be expressed.
func Format(d time.Duration) string {
	var b strings.Builder
	for _, u := range units {
		if n := d / u.is; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.name)
			d %= u.is
		}
	}
	if b.Len() == 0 {
		return "0s"
	}
	return b.String()
}

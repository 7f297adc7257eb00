package span

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Allowed says what Parse takes, for an error's "allowed".
const Allowed = "whole numbers with a unit of ms, s, m, h or d, such as 90s, 1h30m or 2d"

// MaxText bounds what is looked at; the longest useful length is far shorter.
const MaxText = 64

type unit struct {
	name string
	is   time.Duration
}

// units is in the order in which Format uses them: a day is always 24 hours.
var units = []unit{
	{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond},
}

// Parse reads a length of time written as contract.DurationPattern allows. Units may come in
// any order and more than once; they are added. The error says what is allowed and never
// repeats s, which came from a stranger.
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

// unitNamed returns the length of one unit; 0 for a name that is none.
func unitNamed(name string) time.Duration {
	for _, u := range units {
		if u.name == name {
			return u.is
		}
	}
	return 0
}

// Format writes d the shortest way: 90 s is "1m30s", nothing is "0s". What is less than a
// millisecond is dropped, and a negative length is written as "0s": neither can be said here.
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

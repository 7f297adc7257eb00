package span_test

import (
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"punctual/shared/contract"
	"punctual/shared/span"
)

func TestParse_AcceptsAndRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0s":                    0,
		"250ms":                 250 * time.Millisecond,
		"90s":                   90 * time.Second,
		"1h30m":                 90 * time.Minute,
		"2d":                    48 * time.Hour,
		"30m1h":                 90 * time.Minute,
		"1s1s":                  2 * time.Second,
		"1m1ms":                 time.Minute + time.Millisecond,
		"007s":                  7 * time.Second,
		"106751d23h47m16s854ms": math.MaxInt64 / time.Millisecond * time.Millisecond,
	} {
		t.Run("takes "+text, func(t *testing.T) {
			t.Parallel()
			got, err := span.Parse(text)
			if err != nil || got != want {
				t.Fatalf("Parse(%q) = %v, %v; want %v", text, got, err, want)
			}
		})
	}
	for _, text := range []string{
		"", "s", "5", "5x", "-5s", "+5s", "1.5s", "5 s", " 5s", "5s ", "5S", "5s5", "5sm",
		"1h-5m", "٥s", "1e3s", "NaN",
		"5µs", "5us", "5w", "5smh", "5mss",
		"106751d23h47m16s855ms",    // one millisecond too many
		"99999999999999999999999s", // does not fit an integer
		"9223372036854775807d",     // fits an integer, not a length
		"2562047h2562047h",         // each fits, the sum does not
		"1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s", // too long
	} {
		t.Run("refuses "+text, func(t *testing.T) {
			t.Parallel()
			if got, err := span.Parse(text); err == nil || got != 0 {
				t.Fatalf("Parse(%q) = %v, %v; want an error", text, got, err)
			}
		})
	}
}

const int64ms = int64(time.Millisecond)

func TestFormat_WritesTheShortestText(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0s": 0, "1m30s": 90 * time.Second, "1d": 24 * time.Hour, "1d1ms": 24*time.Hour + time.Millisecond,
		"5m": 5 * time.Minute,
	} {
		if got := span.Format(d); got != want {
			t.Errorf("Format(%v) = %q; want %q", d, got, want)
		}
	}
	if got := span.Format(-time.Second); got != "0s" {
		t.Errorf("a negative length was written as %q", got)
	}
}

func TestParse_ReadsWhatFormatWrote(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, math.MaxInt64/int64ms).Draw(t, "ms")) * time.Millisecond
		got, err := span.Parse(span.Format(d))
		if err != nil || got != d {
			t.Fatalf("%v became %q and then %v, %v", d, span.Format(d), got, err)
		}
	})
}

// The published pattern and the parser accept the same short texts; a text that overflows fits the
// pattern and is refused for its size.
func TestParse_AgreesWithThePattern(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(contract.DurationPattern)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`([0-9]{0,3}(ms|s|m|h|d|x|-|\.)?){0,5}`).Draw(t, "text")
		_, err := span.Parse(s)
		tooLong := err != nil && strings.Contains(err.Error(), "at most")
		if fits := pattern.MatchString(s); fits && err != nil && !tooLong || !fits && err == nil {
			t.Fatalf("Parse(%q) says %v; the pattern says %v", s, err, pattern.MatchString(s))
		}
	})
}

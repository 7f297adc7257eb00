package text_test

import (
	"errors"
	"testing"

	"punctual/shared/text"
)

func TestBytes_AreReadAndWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in    string
		bytes int
		out   string
	}{
		{"16KiB", 16 << 10, "16KiB"}, {"16KB", 16_000, "16000B"}, {"1MiB", 1 << 20, "1MiB"},
		{"1024B", 1024, "1KiB"}, {"7B", 7, "7B"}, {"2MB", 2_000_000, "2000000B"}, {"0B", 0, "0B"},
		{"999999999MiB", 999999999 << 20, "999999999MiB"},
	} {
		got, err := text.ParseBytes(c.in)
		if err != nil || got != c.bytes {
			t.Errorf("%q is %d, %v; want %d", c.in, got, err, c.bytes)
		}
		if s := text.Bytes(c.bytes); s != c.out {
			t.Errorf("%d is written %q; want %q", c.bytes, s, c.out)
		}
	}
	for _, in := range []string{"", "B", "16", "16 KiB", "-1B", "+1B", "1.5KiB", "16kib", "1000000000B", "0x1B",
		"1GiB"} {
		if n, err := text.ParseBytes(in); !errors.Is(err, text.ErrBytes) {
			t.Errorf("%q was read as %d", in, n)
		}
	}
}

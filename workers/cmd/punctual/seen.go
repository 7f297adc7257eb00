package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"punctual/shared/text"
)

// seen is a writer to a terminal or a file that passes on what can be seen. Answers, errors and names may hold what
// a tenant wrote: characters that command a terminal (U+0080 to U+009F) or change the direction of text come out
// as \u0000 escapes, which JSON and YAML strings read back. ASCII passes: the command's own colours and lines are made
// of it, and what others wrote is rid of it by plain, by worded or by JSON.
type seen struct {
	to   io.Writer
	tail []byte // the beginning of a character whose rest is in the next write
}

func (w *seen) Write(b []byte) (int, error) {
	all := slices.Concat(w.tail, b)
	w.tail = nil
	if n := unfinished(all); n > 0 {
		all, w.tail = all[:len(all)-n], bytes.Clone(all[len(all)-n:])
	}
	if _, err := io.WriteString(w.to, escaped(all)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// unfinished returns how many bytes at the end begin a character that is not whole.
func unfinished(b []byte) int {
	for n := 1; n <= min(utf8.UTFMax-1, len(b)); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

func escaped(b []byte) string {
	var out strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1: // no UTF-8: some terminals take such a byte for U+0080 to U+009F
			out.WriteRune(utf8.RuneError)
		case r >= utf8.RuneSelf && text.Hidden(r):
			fmt.Fprintf(&out, "\\u%04x", r)
		default:
			out.Write(b[:n])
		}
		b = b[n:]
	}
	return out.String()
}

// worded is an error as a person reads it. Its lines stay; other characters that cannot be seen, which a server may
// have sent, are spaces.
func worded(err error) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && text.Hidden(r) {
			return ' '
		}
		return r
	}, err.Error())
}

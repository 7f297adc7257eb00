package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"
)

// terminal reports whether a person sits at a stream.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// colours reports whether what is written to out may be coloured: on a terminal, unless NO_COLOR is set to
// anything (no-color.org) or the terminal has none.
func colours(out io.Writer, getenv func(string) string) bool {
	return terminal(out) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// defaultWidth is that of a terminal which does not say how wide it is.
const defaultWidth = 80

// widthOf returns the characters of a line of a terminal: as it says, else COLUMNS, else defaultWidth.
func widthOf(out io.Writer, getenv func(string) string) int {
	if f, ok := out.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	if width, err := strconv.Atoi(getenv("COLUMNS")); err == nil && width > 0 {
		return width
	}
	return defaultWidth
}

// colourOf are the colours of words, by their number in ANSI escapes: green is well, red is not, yellow wants a
// look, cyan is under way.
var colourOf = map[string]int{
	"SUCCEEDED": 32, "yes": 32, "ran": 32,
	"DEAD": 31, "FAILED": 31, "NO": 31, "missed": 31,
	"CANCELLED": 33, "EXPIRED": 33, "SKIPPED": 33, "HELD": 33, "RETRIES": 33, "skipped": 33, "superseded": 33,
	"WARNING": 33,
	"RUNNING": 36,
}

// paint colours a word that has a colour; blanks around it stay.
func (s *shell) paint(word string) string {
	n := colourOf[strings.TrimSpace(word)]
	if !s.colour || n == 0 {
		return word
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", n, word)
}

// redraw is how long progress stays as it is at least: no eye reads faster.
const redraw = 100 * time.Millisecond

// progress writes over the last line of a terminal how far long work has got; "" ends it. Elsewhere it is silent.
func (s *shell) progress(format string, args ...any) {
	if !s.moves {
		return
	}
	if format == "" {
		s.drawn = time.Time{}
		_, _ = fmt.Fprint(s.err, "\r\x1b[K")
		return
	}
	if time.Since(s.drawn) < redraw {
		return
	}
	s.drawn = time.Now()
	_, _ = fmt.Fprintf(s.err, "\r\x1b[K"+format, args...)
}

// confirm lets a person say no to what would be done. Where no person can be asked it wants yes, the flag.
func (s *shell) confirm(yes bool, would, no string) error {
	if yes {
		return nil
	}
	if !s.asks {
		return usage{fmt.Errorf("%s, and there is no terminal to ask at: give --yes", would)}
	}
	_, _ = fmt.Fprintf(s.err, "%s. Go on? [y/N] ", would)
	answer, _ := bufio.NewReader(s.in).ReadString('\n') // its end is no
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return usage{errors.New(no)}
	}
	return nil
}

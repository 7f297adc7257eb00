package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Widths of a table, in characters: gap separates columns, a column of prose is cut to proseLeast at the least, and
// identifiers are as wide as identifier.
const (
	gap        = 2
	proseLeast = 12
	identifier = 26
)

// cells are the rows of a table, the heads first.
func cells[T any](values []T, columns []column[T]) [][]string {
	rows := make([][]string, 0, len(values)+1)
	add := func(cell func(column[T]) string) {
		row := make([]string, len(columns))
		for i, c := range columns {
			row[i] = cell(c)
		}
		rows = append(rows, row)
	}
	add(func(c column[T]) string { return c.head })
	for _, v := range values {
		add(func(c column[T]) string { return plain(c.cell(v)) })
	}
	return rows
}

// natural are the widths at which nothing is cut.
func (s *shell) natural(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(s.withLocal(cell)))
		}
	}
	return widths
}

// least are the widths below which no column is cut. Only cells with spaces are: they are prose, while names,
// identifiers and times are copied from the table, and stay whole.
func (s *shell) least(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for n, row := range rows {
		for i, cell := range row {
			width := utf8.RuneCountInString(s.withLocal(cell))
			if n > 0 && strings.Contains(cell, " ") {
				width = min(width, proseLeast)
			}
			widths[i] = max(widths[i], width)
		}
	}
	return widths
}

func total(widths []int) int {
	sum := gap * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

// grid writes columns as wide as their widest cell, or as the terminal has room for. Words with a colour get it, but
// not in the heads; no width counts it.
func (s *shell) grid(rows [][]string) error {
	rows, left := s.fitting(rows)
	widths := s.fitted(rows)
	var text strings.Builder
	for n, row := range rows {
		for i, cell := range row {
			cell = cut(s.withLocal(cell), widths[i])
			if n == 0 {
				text.WriteString(cell)
			} else {
				text.WriteString(s.paint(cell))
			}
			if i < len(row)-1 {
				text.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+gap))
			}
		}
		text.WriteByte('\n')
	}
	if _, err := io.WriteString(s.out, text.String()); err != nil {
		return err
	}
	if len(left) > 0 {
		_, _ = fmt.Fprintf(s.err, "left out for want of room: %s; --wide shows all\n", strings.Join(left, ", "))
	}
	return nil
}

// upright writes a single value with a line for each column, where a row has no room for it.
func (s *shell) upright(rows [][]string) error {
	width := 0
	for _, head := range rows[0] {
		width = max(width, utf8.RuneCountInString(head))
	}
	var text strings.Builder
	for i, head := range rows[0] {
		fmt.Fprintf(&text, "%-*s%s\n", width+gap, head, s.paint(s.withLocal(rows[1][i])))
	}
	_, err := io.WriteString(s.out, text.String())
	return err
}

// fitting leaves out columns for which the terminal has no room, and returns their heads: those of times or of
// nothing first, then short ones, each from the right. The first column and outcomes, which have a colour, stay.
func (s *shell) fitting(rows [][]string) (fit [][]string, left []string) {
	if s.width == 0 {
		return rows, nil
	}
	fit = rows
	times := func(cell string) bool { return cell == "-" || timeIn.FindString(cell) == cell }
	short := func(cell string) bool {
		return !strings.Contains(cell, " ") && len(cell) < identifier && colourOf[cell] == 0
	}
	for _, goes := range []func(string) bool{times, short} {
		for i := len(fit[0]) - 1; i > 0 && total(s.least(fit)) > s.width; i-- {
			if slices.ContainsFunc(fit[1:], func(row []string) bool { return !goes(row[i]) }) {
				continue
			}
			left = append(left, fit[0][i])
			narrower := make([][]string, len(fit))
			for n, row := range fit {
				narrower[n] = slices.Delete(slices.Clone(row), i, i+1)
			}
			fit = narrower
		}
	}
	return fit, left
}

// fitted are the widths of the columns: the widest ones that may be cut are, until the rows have room.
func (s *shell) fitted(rows [][]string) []int {
	widths, least := s.natural(rows), s.least(rows)
	for excess := total(widths) - s.width; s.width > 0 && excess > 0; excess-- {
		widest := -1
		for i, w := range widths {
			if w > least[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return widths // the terminal wraps what cannot be cut
		}
		widths[widest]--
	}
	return widths
}

// cut shortens a cell to a width.
func cut(cell string, width int) string {
	if utf8.RuneCountInString(cell) <= width {
		return cell
	}
	return string([]rune(cell)[:width-1]) + "…"
}

// timeIn finds the times that instant writes.
var timeIn = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// withLocal adds to each time in a text what the clock of this machine shows then, for a person in another zone.
func (s *shell) withLocal(text string) string {
	if s.zone == nil || !strings.Contains(text, "Z") {
		return text
	}
	return timeIn.ReplaceAllStringFunc(text, func(utc string) string {
		at, err := time.Parse(time.RFC3339, utc)
		here := at.In(s.zone)
		_, offset := here.Zone()
		switch {
		case err != nil || offset == 0:
			return utc
		case here.YearDay() == at.YearDay():
			return utc + here.Format(" (15:04)")
		}
		return utc + here.Format(" (01-02 15:04)")
	})
}

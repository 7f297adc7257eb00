package show

import (
	"context"
	"strconv"
	"strings"
	"time"

	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// LetterFilter selects dead letters.
type LetterFilter struct {
	Task          string
	After, Before time.Time
	Waiting       bool               // only jobs that were not redriven yet
	row           func(job.Row) bool // nil: any row
}

// mayShow reports whether the list may have a row: deliveries are only in that of their task.
func (f LetterFilter) mayShow(r job.Row) bool { return f.row != nil || r.ShownIn(f.Task) }

// LetterPosition is the position of a dead job in the list.
func LetterPosition(deadAt time.Time, id job.ID) string {
	return strconv.Itoa(int(deadAt.UnixMilli())) + "#" + string(id)
}

// DeadLetters reads dead jobs after a position, and returns where the next page begins; "" is the end.
func (s *Reader) DeadLetters(
	ctx context.Context, t tenant.ID, f LetterFilter, position string, limit int,
) (rows []job.Row, next string, err error) {
	before := f.Before
	var lastAt int64
	lastID := ""
	if at, id, ok := strings.Cut(position, "#"); ok {
		lastAt, lastID = number(at), id
		before = time.UnixMilli(lastAt + 1) // include that millisecond: others may have died in it
	}
	read := 0
	var lot []store.DeadLetter
	take := func() error {
		keys := make([]job.Key, len(lot))
		for i, d := range lot {
			keys[i] = d.Key
		}
		found, there, err := s.Rows(ctx, keys)
		if err != nil {
			return err
		}
		for i, row := range found {
			position = LetterPosition(lot[i].DeadAt, lot[i].ID)
			if !there[i] || row.Status != job.Dead || f.Task != "" && row.Task != f.Task || !f.mayShow(row) ||
				f.Waiting && row.RedrivenBy != "" || f.row != nil && !f.row(row) {
				continue
			}
			if rows = append(rows, row); len(rows) == limit {
				break
			}
		}
		lot = lot[:0]
		return nil
	}
	for d, err := range s.Store.DeadLetters(ctx, t, f.After, before, limit) {
		if fault.KindOf(err) == fault.Undecodable {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		if d.DeadAt.UnixMilli() == lastAt && string(d.ID) >= lastID {
			continue // the page before had it
		}
		read++
		if lot = append(lot, d); len(lot) == store.ReadAtOnce || len(lot) >= limit-len(rows) || read >= MaxRead {
			if err := take(); err != nil {
				return nil, "", err
			}
			if len(rows) == limit || read >= MaxRead {
				return rows, position, nil
			}
		}
	}
	return rows, "", take()
}

// number reads a number in a position; 0 for anything else.
func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

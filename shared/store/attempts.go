package store

import (
	"context"
	"encoding/json"
	"strings"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
)

// startsMost is more entries than one attempt can have. Within an attempt, sibling items do not sort by
// place.
const startsMost = 1 << 8

// Attempts implements JobLists.
func (s *Store) Attempts(
	ctx context.Context, r job.Row, after int64, limit int,
) (attempts []job.Attempt, more bool, err error) {
	ref := r.ContentRef(job.AttemptContent(after / startsMost))
	prefix, _, _ := strings.Cut(job.AttemptContent(0), "#")
	q := item.Query{
		Table: contract.Jobs, PK: ref.PK, Limit: limit + startsMost, Consistent: true,
		From: ref.SK, To: r.ContentRef(prefix + "$").SK, // '$' follows '#'
	}
	sibling := map[int64]bool{}
	for {
		page, err := s.table.Query(ctx, q)
		if err != nil {
			return nil, false, err
		}
		for _, i := range page.Items {
			var a job.Attempt
			if err := json.Unmarshal([]byte(i.Str("body")), &a); err != nil {
				continue
			}
			if a.Position() > after {
				attempts = insert(attempts, a)
			}
			sibling[a.Attempt] = sibling[a.Attempt] || a.Start == 0
		}
		if page.Cursor == "" || len(attempts) >= limit+startsMost {
			break
		}
		q.Cursor = page.Cursor
	}
	if len(attempts) <= limit+startsMost { // the row's are the newest: they come last
		for _, a := range r.Attempts {
			if a.Position() > after && !sibling[a.Attempt] {
				attempts = insert(attempts, a)
			}
		}
	}
	if len(attempts) > limit {
		return attempts[:limit], true, nil
	}
	return attempts, false, nil
}

// insert keeps attempts in order of their place.
func insert(attempts []job.Attempt, a job.Attempt) []job.Attempt {
	at := len(attempts)
	for at > 0 && attempts[at-1].Position() > a.Position() {
		at--
	}
	attempts = append(attempts, job.Attempt{})
	copy(attempts[at+1:], attempts[at:])
	attempts[at] = a
	return attempts
}

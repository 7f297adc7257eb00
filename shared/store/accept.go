package store

import (
	"context"
	"iter"
	"strings"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

// Accept puts a new job, in one transaction with what is written beside it. It is the only way in:
// before the row it notes in which stretch of time its task has jobs, so that Stretches finds them.
// A refusal is an *item.Refused in which the row is write 0.
func (s *Store) Accept(ctx context.Context, r job.Row, beside ...item.Write) error {
	if err := s.noteTask(ctx, r); err != nil {
		return err
	}
	if len(beside) == 0 {
		return s.Put(ctx, job.Accept(r))
	}
	return s.Commit(ctx, append([]item.Write{job.Accept(r)}, beside...)...)
}

// stretchLayout is a stretch's sort key: its beginning.
const stretchLayout = "2006-01-02T15:04"

// stretchKept outlives every row that a note is about.
const stretchKept = contract.MaxAhead + contract.DeadKept

func taskedRef(t tenant.ID, task string, at time.Time) item.Ref {
	return item.Ref{Table: contract.Tasks, PK: "tasked#" + string(t) + "#" + task, SK: at.UTC().Truncate(contract.TaskStretch).Format(stretchLayout)}
}

// noteTask writes one note for a task and a stretch of ids, once for each process.
func (s *Store) noteTask(ctx context.Context, r job.Row) error {
	ref := taskedRef(r.Tenant, r.Task, r.ID.At())
	if s.taskNotes.has(ref) {
		return nil
	}
	err := s.Put(ctx, item.Write{Ref: ref, Name: "task.note", Set: map[string]any{contract.AttrExpiresAt: r.ID.At().Add(stretchKept).Unix()}})
	if err == nil {
		s.taskNotes.add(ref)
	}
	return err
}

// Stretch is a stretch of time in which a task has jobs by the time in their ids; to is not included.
type Stretch struct{ From, To time.Time }

// Stretches iterates over the stretches in which a tenant's task may have jobs that are older than
// before (zero: any), the newest first. Those that touch are one.
func (s *Store) Stretches(ctx context.Context, t tenant.ID, task string, before time.Time) iter.Seq2[Stretch, error] {
	return func(yield func(Stretch, error) bool) {
		q := item.Query{Table: contract.Tasks, PK: taskedRef(t, task, before).PK, Descending: true, Limit: maxPage, Consistent: true}
		if !before.IsZero() { // the stretch of before itself is included
			q.To = before.UTC().Format(stretchLayout) + "\x00"
		}
		var open Stretch
		for {
			page, err := s.table.Query(ctx, q)
			if err != nil {
				yield(Stretch{}, err)
				return
			}
			for _, i := range page.Items {
				from, err := time.Parse(stretchLayout, i.Str(contract.AttrSK))
				if err != nil {
					continue // nobody writes such a note
				}
				to := from.Add(contract.TaskStretch)
				switch {
				case to.Equal(open.From):
					open.From = from
					continue
				case !open.To.IsZero():
					if !yield(open, nil) {
						return
					}
				}
				open = Stretch{from, to}
			}
			if q.Cursor = page.Cursor; q.Cursor == "" {
				break
			}
		}
		if !open.To.IsZero() {
			yield(open, nil)
		}
	}
}

// refs remembers what was written, so that it is not written again; it forgets all once it is full.
type refs struct {
	mu   sync.Mutex
	seen map[item.Ref]bool
}

// maxRefs bounds what is remembered: about 2 MB.
const maxRefs = 10_000

func (r *refs) has(ref item.Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[ref]
}

func (r *refs) add(ref item.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil || len(r.seen) >= maxRefs {
		r.seen = map[item.Ref]bool{}
	}
	ref.PK, ref.SK = strings.Clone(ref.PK), strings.Clone(ref.SK)
	r.seen[ref] = true
}

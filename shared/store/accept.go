package store

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/limit"
	"punctual/shared/tenant"
)

// Accept implements JobWriter.
func (s *Store) Accept(ctx context.Context, r job.Row, more ...item.Write) error {
	if err := s.PrepareAccept(ctx, r); err != nil {
		return err
	}
	if len(more) == 0 {
		return s.Put(ctx, job.Accept(r))
	}
	return s.Commit(ctx, append([]item.Write{job.Accept(r)}, more...)...)
}

// PrepareAccept implements OperationWriter.
func (s *Store) PrepareAccept(ctx context.Context, r job.Row) error {
	if !r.StartsRun() { // it is in no list of jobs
		if err := s.noteTask(ctx, r); err != nil {
			return err
		}
	}
	for _, l := range r.Limits.List() {
		if err := s.NoteLimitKey(ctx, limit.Key{Tenant: r.Tenant, LimitKey: l}, r.CreatedAt); err != nil {
			return err
		}
	}
	return nil
}

// stretchLayout is the first part of a note's sort key, the beginning of its stretch; the second is
// the partition, in two digits.
const stretchLayout = "2006-01-02T15:04"

// How long a note is kept. One about jobs with a time outlives their longest retries, and then the longest time that a
// dead job is kept. One about jobs that wait for something else, such as parents or the end of a pause, is kept for as
// long as a job may wait at all.
const (
	retriesTake = contract.MaxAttempts * (contract.MaxRetryDelay + contract.MaxTimeoutLong)
	notedKept   = retriesTake + contract.DeadKept
	openKept    = contract.TaskStretch + contract.MaxAhead + contract.DeadKept
	// noteStep is to what a note's end is rounded up, so that few jobs of a stretch prolong it.
	noteStep = 30 * 24 * time.Hour
)

func taskedKey(t tenant.ID, task string) string { return "tasked#" + string(t) + "#" + task }

// noteTask notes that a task has jobs in a stretch of ids and a partition.
func (s *Store) noteTask(ctx context.Context, r job.Row) error {
	until := r.DueAt
	if until.Before(r.CreatedAt) {
		until = r.CreatedAt
	}
	if r.Status == job.Blocked {
		return s.NoteOpen(ctx, r)
	}
	return s.noteUntil(ctx, r, until.Add(notedKept))
}

// NoteOpen implements JobWriter.
func (s *Store) NoteOpen(ctx context.Context, r job.Row) error {
	if r.StartsRun() { // it is in no list of jobs
		return nil
	}
	return s.noteUntil(ctx, r, r.ID.At().Add(openKept))
}

// noteUntil writes one note for a task, a stretch of ids and a partition, unless this process knows that it is there
// for long enough. A note is never shortened.
func (s *Store) noteUntil(ctx context.Context, r job.Row, until time.Time) error {
	_, part, _ := strings.Cut(r.Ref().PK, "#")
	if len(part) == 1 {
		part = "0" + part
	}
	from := r.ID.At().UTC().Truncate(contract.TaskStretch)
	ref := item.Ref{Table: contract.Tasks, PK: taskedKey(r.Tenant, r.Task), SK: from.Format(stretchLayout) + "#" + part}
	until = until.Truncate(noteStep).Add(noteStep)
	if !s.taskNotes.until(ref).Before(until) {
		return nil
	}
	at := until.Unix()
	err := s.Put(ctx, item.Write{
		Ref: ref, Name: WriteTaskNote, Set: map[string]any{contract.AttrExpiresAt: at}, When: []item.All{
			{{Attr: contract.AttrPK, Op: item.Missing}}, {{Attr: contract.AttrExpiresAt, Op: item.Le, Value: at}},
		},
	})
	if err == nil || Refused(err) != nil {
		s.taskNotes.add(ref, until)
		return nil
	}
	return err
}

// Stretch is a stretch of time in which a task has jobs by the time in their ids, and the partitions
// in which these lie; To is not included.
type Stretch struct {
	From, To time.Time
	Parts    []int
}

// Stretches implements JobLists.
func (s *Store) Stretches(ctx context.Context, t tenant.ID, task string, before time.Time) iter.Seq2[Stretch, error] {
	return func(yield func(Stretch, error) bool) {
		var wide, open Stretch // wide is made of those that touch; open is still being read
		join := func() bool {
			switch {
			case open.To.IsZero():
			case open.To.Equal(wide.From) && slices.Equal(open.Parts, wide.Parts):
				wide.From = open.From
			default:
				if !wide.To.IsZero() && !yield(wide, nil) {
					return false
				}
				wide = open
			}
			return true
		}
		for n, err := range s.tasked(ctx, t, task, before) {
			if err != nil {
				yield(Stretch{}, err)
				return
			}
			if n.From.Equal(open.From) {
				open.Parts = append(open.Parts, n.Parts...)
				continue
			}
			if !join() {
				return
			}
			open = n
		}
		if join() && !wide.To.IsZero() {
			yield(wide, nil)
		}
	}
}

// tasked iterates over the notes of a task, the latest stretch first.
func (s *Store) tasked(ctx context.Context, t tenant.ID, task string, before time.Time) iter.Seq2[Stretch, error] {
	return func(yield func(Stretch, error) bool) {
		q := item.Query{Table: contract.Tasks, PK: taskedKey(t, task), Descending: true, Limit: maxPage,
			Consistent: true}
		if !before.IsZero() { // the stretch of before itself is included
			q.To = before.UTC().Format(stretchLayout) + "$" // comes after "#"
		}
		for {
			page, err := s.table.Query(ctx, q)
			if err != nil {
				yield(Stretch{}, err)
				return
			}
			for _, i := range page.Items {
				minute, number, _ := strings.Cut(i.Str(contract.AttrSK), "#")
				from, errMinute := time.Parse(stretchLayout, minute)
				part, errPart := strconv.Atoi(number)
				if errMinute != nil || errPart != nil || part >= contract.Partitions {
					continue // no writer makes such a note
				}
				if !yield(Stretch{from, from.Add(contract.TaskStretch), []int{part}}, nil) {
					return
				}
			}
			if q.Cursor = page.Cursor; q.Cursor == "" {
				return
			}
		}
	}
}

// refs remembers what was written, so that it is written once; it forgets all once it is full.
type refs struct {
	mu   sync.Mutex
	seen map[item.Ref]time.Time
}

// maxRefs bounds what is remembered: about 4 MB.
const maxRefs = 20_000

// until returns until when a note is known to be kept; the zero time if nothing is known.
func (r *refs) until(ref item.Ref) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[ref]
}

func (r *refs) add(ref item.Ref, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil || len(r.seen) >= maxRefs {
		r.seen = map[item.Ref]time.Time{}
	}
	ref.PK, ref.SK = strings.Clone(ref.PK), strings.Clone(ref.SK)
	if r.seen[ref].Before(until) {
		r.seen[ref] = until
	}
}

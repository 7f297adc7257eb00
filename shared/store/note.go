package store

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/limit"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

// Notes show the sweeper where something is in the due index that no minute leads to: whose
// parking places, and whose lines. Jobs are parked by the thousand, and all tenants' notes would
// share one partition, which takes a thousand writes a second. So a process writes the note of a
// place at most once in a while, and notes are spread by whose they are.
const (
	parkedNotes = "parked"
	queueNotes  = "line"
	limitNotes  = "limit_waiting"

	operationNotes = "operation"
)

// noteShards is how many partitions the notes of one kind are spread over.
const noteShards = 4

// Notes go once nothing is left in their place and they are older than NoteKept. That is longer
// than any invocation, any lag of the index, and the time for which one note speaks for others.
const (
	NoteKept = time.Hour
	notedFor = 10 * time.Minute
	noteMost = 10_000 // notes remembered to have been written
)

func noteKey(kind string, shard int) string { return kind + "#" + strconv.Itoa(shard) }

func noteRef(kind, name string) item.Ref {
	return system(noteKey(kind, horizon.ShardOf(name, noteShards)), name)
}

// noted remembers which notes this process wrote a moment ago.
type noted struct {
	mu sync.Mutex
	at map[item.Ref]time.Time
}

func (n *noted) within(ref item.Ref, recent time.Duration, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	age := now.Sub(n.at[ref])
	return age >= 0 && age < recent
}

func (n *noted) add(ref item.Ref, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.at == nil || len(n.at) >= noteMost {
		n.at = map[item.Ref]time.Time{}
	}
	n.at[ref] = now
}

// note writes a note, unless this process did a moment ago.
func (s *Store) note(ctx context.Context, kind, name string, now time.Time) error {
	ref := noteRef(kind, name)
	if s.noted.within(ref, notedFor, now) {
		return nil
	}
	w := item.Write{Ref: ref, Name: kind + ".note", Set: map[string]any{"at": now.UnixMilli()}}
	if err := s.Put(ctx, w); err != nil {
		return err
	}
	s.noted.add(ref, now)
	return nil
}

// forgetNote undoes a note older than NoteKept; a newer one stays, because what it announced may
// not be in the index yet.
func (s *Store) forgetNote(ctx context.Context, kind, name string, now time.Time) error {
	before := now.Add(-NoteKept).UnixMilli()
	err := s.Put(ctx, item.Write{
		Ref: noteRef(kind, name), Name: kind + ".forget", Delete: true,
		When: []item.All{{{Attr: "at", Op: item.Lt, Value: before}}, {{Attr: "at", Op: item.Missing}}},
	})
	if Refused(err) != nil {
		return nil
	}
	return err
}

// notes reads all notes of a kind. One that does not show yet is found by the next who looks.
func (s *Store) notes(ctx context.Context, kind string) ([]item.Item, error) {
	found, errs := make([][]item.Item, noteShards), make([]error, noteShards)
	var all sync.WaitGroup
	for shard := range noteShards {
		all.Go(func() {
			q := item.Query{Table: contract.Tasks, PK: system(noteKey(kind, shard), "").PK}
			for {
				page, err := s.table.Query(ctx, q)
				found[shard], errs[shard] = append(found[shard], page.Items...), err
				if err != nil || page.Cursor == "" {
					return
				}
				q.Cursor = page.Cursor
			}
		})
	}
	all.Wait()
	return slices.Concat(found...), errors.Join(errs...)
}

// NoteParked implements NoteWriter.
func (s *Store) NoteParked(ctx context.Context, t tenant.ID, now time.Time) error {
	return s.note(ctx, parkedNotes, string(t), now)
}

// ForgetParked implements Notes.
func (s *Store) ForgetParked(ctx context.Context, t tenant.ID, now time.Time) error {
	return s.forgetNote(ctx, parkedNotes, string(t), now)
}

// Parked is a tenant that may have something in its parking places.
type Parked struct {
	tenant.ID
	NotedAt time.Time
}

// ParkedTenants implements Notes.
func (s *Store) ParkedTenants(ctx context.Context) (tenants []Parked, err error) {
	found, err := s.notes(ctx, parkedNotes)
	for _, i := range found {
		tenants = append(tenants, Parked{tenant.ID(i.Str(contract.AttrSK)), i.Time("at")})
	}
	return tenants, err
}

// NoteQueue implements NoteWriter.
func (s *Store) NoteQueue(ctx context.Context, k schedule.Key, now time.Time) error {
	return s.note(ctx, queueNotes, k.ID(), now)
}

// ForgetQueue implements Notes.
func (s *Store) ForgetQueue(ctx context.Context, k schedule.Key, now time.Time) error {
	return s.forgetNote(ctx, queueNotes, k.ID(), now)
}

// Queues implements Notes.
func (s *Store) Queues(ctx context.Context) (keys []schedule.Key, err error) {
	found, err := s.notes(ctx, queueNotes)
	for _, i := range found {
		if t, name, ok := strings.Cut(i.Str(contract.AttrSK), "#"); ok {
			keys = append(keys, schedule.Key{Tenant: tenant.ID(t), Name: name})
		}
	}
	return keys, err
}

func waitingName(k limit.Key) string { return string(k.Tenant) + "#" + k.Name + "#" + k.Key }

// NoteWaitingKey implements WaitingKeys.
func (s *Store) NoteWaitingKey(ctx context.Context, k limit.Key, now time.Time) error {
	if err := s.NoteLimitKey(ctx, k, now); err != nil { // for a job that got its limits later
		return err
	}
	return s.note(ctx, limitNotes, waitingName(k), now)
}

// ForgetWaitingKey implements WaitingKeys.
func (s *Store) ForgetWaitingKey(ctx context.Context, k limit.Key, now time.Time) error {
	return s.forgetNote(ctx, limitNotes, waitingName(k), now)
}

// WaitingKeys implements WaitingKeys.
func (s *Store) WaitingKeys(ctx context.Context) (keys []limit.Key, err error) {
	found, err := s.notes(ctx, limitNotes)
	for _, i := range found {
		if parts := strings.SplitN(i.Str(contract.AttrSK), "#", 3); len(parts) == 3 {
			keys = append(keys, limit.Key{
				Tenant: tenant.ID(parts[0]), LimitKey: job.LimitKey{Name: parts[1], Key: parts[2]},
			})
		}
	}
	return keys, err
}

package store

import (
	"context"
	"errors"
	"iter"
	"maps"
	"time"

	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

// ReadAtOnce is how many items one read of many may ask for.
const ReadAtOnce = 100

// Table is what the store needs of a table: shared/aws/table and shared/memory give it.
type Table interface {
	// Get reads one item, strongly consistent; nil is absent and no error.
	Get(ctx context.Context, ref item.Ref) (item.Item, error)
	// GetMany reads up to ReadAtOnce items, strongly consistent, in the order asked; nil is absent.
	GetMany(ctx context.Context, refs []item.Ref) ([]item.Item, error)
	// Write does one conditional write and returns the item as it then is (nil after a delete).
	// A condition that does not hold is an *item.Refused with the item as it was.
	Write(ctx context.Context, w item.Write) (item.Item, error)
	// Commit does up to 100 writes, all or none.
	Commit(ctx context.Context, writes ...item.Write) error
	// Query reads one page.
	Query(ctx context.Context, q item.Query) (item.Page, error)
	// Identity says which table has that logical name now. An absent one is a fault.NotFound.
	Identity(ctx context.Context, table string) (item.Identity, error)
}

// Blobs keeps what is too large for an item. Get of an absent key is a fault.NotFound.
type Blobs interface {
	Put(ctx context.Context, key string, body []byte) error
	Get(ctx context.Context, key string) ([]byte, error)
	Delete(ctx context.Context, key string) error // of an absent key: no error
}

// Store is the typed access to the tables. No caller sees by it what has outlived its expires_at. It
// is safe for concurrent use.
type Store struct {
	table     Table
	clock     clock.Clock
	blobs     Blobs
	noted     noted
	taskNotes refs // notes of tasks that this process wrote
}

// New returns a Store over a table and a blob store. What has outlived its expires_at by the system's clock is absent.
func New(t Table, b Blobs) *Store { return By(clock.System{}, t, b) }

// By is New by another clock, such as that of a laptop that is set to another time. A nil clock is the system's.
func By(c clock.Clock, t Table, b Blobs) *Store {
	if c == nil {
		c = clock.System{}
	}
	return &Store{table: audited{present{t, c}}, clock: c, blobs: b}
}

// Row implements JobReader.
func (s *Store) Row(ctx context.Context, k job.Key) (job.Row, error) {
	i, err := s.table.Get(ctx, k.Ref())
	if err != nil {
		return job.Row{}, err
	}
	return rowOf(i, k)
}

func rowOf(i item.Item, k job.Key) (job.Row, error) {
	if i == nil || job.IsGone(i) {
		return job.Row{}, fault.New(fault.NotFound, nil, "reading job %s", k.ID)
	}
	return job.ParseRow(i)
}

// Claim implements ClaimReader.
func (s *Store) Claim(ctx context.Context, k job.Key) (job.Claim, error) {
	i, err := s.table.Get(ctx, k.ClaimRef())
	if err != nil {
		return job.Claim{}, err
	}
	return job.ParseClaim(i)
}

// PeekClaim implements ClaimReader.
func (s *Store) PeekClaim(ctx context.Context, k job.Key) (job.Claim, error) {
	page, err := s.table.Query(ctx, item.Query{Table: contract.Claims, PK: k.ClaimRef().PK, Limit: 1})
	if err != nil || len(page.Items) == 0 {
		return job.Claim{}, err
	}
	return job.ParseClaim(page.Items[0])
}

// Claims implements ClaimReader.
func (s *Store) Claims(ctx context.Context, keys []job.Key) ([]job.Claim, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	refs := make([]item.Ref, len(keys))
	for n, k := range keys {
		refs[n] = k.ClaimRef()
	}
	items, err := s.table.GetMany(ctx, refs)
	if err != nil {
		return nil, err
	}
	claims := make([]job.Claim, len(keys))
	for n, i := range items {
		if c, err := job.ParseClaim(i); err == nil {
			claims[n] = c
		}
	}
	return claims, nil
}

// WriteRow implements JobWriter.
func (s *Store) WriteRow(ctx context.Context, w item.Write) (job.Row, error) {
	i, err := s.table.Write(ctx, w)
	if err != nil {
		return job.Row{}, err
	}
	return job.ParseRow(i)
}

// WriteClaim implements Claims.
func (s *Store) WriteClaim(ctx context.Context, w item.Write) (job.Claim, error) {
	i, err := s.table.Write(ctx, w)
	if err != nil {
		return job.Claim{}, err
	}
	return job.ParseClaim(i)
}

// Put implements Writes.
func (s *Store) Put(ctx context.Context, w item.Write) error {
	_, err := s.table.Write(ctx, w)
	return err
}

// PutRow implements JobWriter.
func (s *Store) PutRow(ctx context.Context, after job.Row, w item.Write) error {
	err := s.Put(ctx, w)
	if refused := Refused(err); refused != nil && isWritten(refused, after) {
		return nil
	}
	return err
}

// isWritten says whether what was in the way is what was to be written.
func isWritten(r *item.Refused, after job.Row) bool {
	old, err := OldRow(r, 0, after.Key)
	return err == nil && maps.Equal(old.Item(), after.Item())
}

// Commit implements Writes.
func (s *Store) Commit(ctx context.Context, writes ...item.Write) error {
	return s.table.Commit(ctx, writes...)
}

// Refused returns the refusal in err, nil if there is none.
func Refused(err error) *item.Refused {
	var r *item.Refused
	if errors.As(err, &r) {
		return r
	}
	return nil
}

// OldRow is the row that was in the way of write number n of a refused write.
func OldRow(r *item.Refused, n int, k job.Key) (job.Row, error) { return rowOf(r.Olds[n], k) }

// OldClaim is the claim that was in the way of write number n.
func OldClaim(r *item.Refused, n int) (job.Claim, error) { return job.ParseClaim(r.Olds[n]) }

// Entry is one wake-up in the due index. The index lags: the row decides.
type Entry struct {
	job.Key
	Version, Attempt int64
	Pool, Priority   string
	DueAt, WakeAt    time.Time
}

// Due implements DueReader.
func (s *Store) Due(ctx context.Context, slice string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		q := item.Query{Table: contract.Jobs, Index: contract.DueIndex, PK: slice}
		for {
			page, err := s.table.Query(ctx, q)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, i := range page.Items {
				k, err := job.KeyOf(i)
				e := Entry{
					Key: k, Version: i.Int("version"), Attempt: i.Int("attempt"), Pool: i.Str("pool"),
					Priority: i.Str("priority"), DueAt: i.Time("due_at"), WakeAt: i.Time(contract.AttrWakeAt),
				}
				if !yield(e, err) {
					return
				}
			}
			if page.Cursor == "" {
				return
			}
			q.Cursor = page.Cursor
		}
	}
}

// Pauses implements PauseReader.
func (s *Store) Pauses(ctx context.Context, t tenant.ID) (job.Pauses, error) {
	everyone, err := s.PausesOf(ctx, job.Everyone)
	if err != nil {
		return nil, err
	}
	own, err := s.PausesOf(ctx, t)
	return append(everyone, own...), err
}

// PausesOf implements PauseReader.
func (s *Store) PausesOf(ctx context.Context, owner tenant.ID) (job.Pauses, error) {
	var pauses job.Pauses
	q := item.Query{Table: contract.Tasks, PK: job.PausesKey(owner), Consistent: true}
	for {
		page, err := s.table.Query(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, i := range page.Items {
			p, _ := job.ParsePause(i) // what is wrong with it, it says itself
			pauses = append(pauses, p)
		}
		if page.Cursor == "" {
			return pauses, nil
		}
		q.Cursor = page.Cursor
	}
}

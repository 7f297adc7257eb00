package submit

import (
	"context"
	"time"

	"punctual/shared/audit"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/operation"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// Backfill makes the backfill that read describes, without its id, unless an earlier request with the key has made one,
// and takes its first steps. It returns the operation as it then is.
func (s *Submitter) Backfill(
	ctx context.Context, r Request, read func(now time.Time) (operation.Operation, error),
) (o operation.Operation, replayed bool, err error) {
	o, replayed, err = s.operation(ctx, r, read, s.Backfills.Create)
	if err != nil {
		return o, false, err
	}
	return s.advanced(ctx, r.Who.Tenant, o), replayed, nil
}

// Operation makes the operation on rows that read describes, without its id, unless an earlier request with the key has
// made one, and has it begin. named are the rows, newest first, if the request names them.
func (s *Submitter) Operation(
	ctx context.Context, r Request, read func(now time.Time) (o operation.Operation, named []job.ID, err error),
) (o operation.Operation, replayed bool, err error) {
	var named []job.ID
	o, replayed, err = s.operation(ctx, r, func(now time.Time) (o operation.Operation, err error) {
		o, named, err = read(now)
		return o, err
	}, func(ctx context.Context, o operation.Operation, with ...item.Write) error {
		audit.From(ctx).Names("operation/" + string(o.ID))
		pages, _ := o.Pages(0, nil, named, o.CreatedAt)
		return s.Bulk.Create(ctx, o, append(with, pages...)...)
	})
	if err == nil && !o.Status.Over() {
		s.Bulk.Ask(ctx, o.Key, 0)
	}
	return o, replayed, err
}

// operation makes the operation that read describes, unless an earlier request with the key has made one.
func (s *Submitter) operation(
	ctx context.Context, r Request, read func(now time.Time) (operation.Operation, error),
	create func(ctx context.Context, o operation.Operation, with ...item.Write) error,
) (o operation.Operation, replayed bool, err error) {
	now := s.now()
	earlier, err := s.once(ctx, r, now, func(id job.ID) (err error) {
		o, err = s.Store.Operation(ctx, operation.Key{Tenant: r.Who.Tenant, ID: id})
		return err
	}, func(with keyWrite) (taken bool, err error) {
		if o, err = read(now); err != nil {
			return false, err
		}
		if o.ID, err = s.newID(now); err != nil {
			return false, err
		}
		var writes []item.Write
		if with != nil {
			writes = append(writes, with(o.ID, false, nil))
		}
		err = create(ctx, o, writes...)
		return with != nil && store.Refused(err) != nil, err
	})
	return o, earlier.JobID != "", err
}

// advanced takes steps of a new operation. If that fails, the sweeper does it.
func (s *Submitter) advanced(ctx context.Context, t tenant.ID, o operation.Operation) operation.Operation {
	if o.Status != operation.Running || !o.Cursor.IsZero() {
		return o
	}
	_, err := s.Backfills.Advance(ctx, o.Key)
	if err == nil {
		var is operation.Operation
		if is, err = s.Store.Operation(ctx, o.Key); err == nil {
			return is
		}
	}
	s.Log.WarnContext(ctx, "a new backfill waits for the sweeper",
		telemetry.Tenant, t, "operation", o.ID, telemetry.Err, err.Error())
	return o
}

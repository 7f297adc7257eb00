package store

import (
	"context"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/operation"
	"punctual/shared/tenant"
)

// Operation implements OperationReader.
func (s *Store) Operation(ctx context.Context, k operation.Key) (operation.Operation, error) {
	i, err := s.table.Get(ctx, k.Ref())
	if err != nil {
		return operation.Operation{}, err
	}
	return operationOf(i, k)
}

func operationOf(i item.Item, k operation.Key) (operation.Operation, error) {
	if i == nil {
		return operation.Operation{}, fault.New(fault.NotFound, nil, "reading operation %s", k.ID)
	}
	return operation.Parse(i, k.Tenant)
}

// Operations implements OperationReader.
func (s *Store) Operations(
	ctx context.Context, t tenant.ID, before job.ID, most int,
) (list []operation.Operation, more bool, err error) {
	q := item.Query{Table: contract.Tasks, PK: operation.ListKey(t), Limit: most + 1, Descending: true,
		Consistent: true}
	if before != "" {
		q.To = string(before)
	}
	return upTo(ctx, s.table, q, most, func(i item.Item) (operation.Operation, bool) {
		o, err := operation.Parse(i, t)
		return o, err == nil
	})
}

// OperationPage implements OperationPages.
func (s *Store) OperationPage(ctx context.Context, k operation.Key, n int) ([]job.ID, error) {
	i, err := s.table.Get(ctx, k.PageRef(n))
	if err != nil {
		return nil, err
	}
	return operation.ParsePage(i)
}

// CreateOperation implements OperationWriter.
func (s *Store) CreateOperation(ctx context.Context, o operation.Operation, with ...item.Write) error {
	if len(with) == 0 {
		return s.Put(ctx, o.Create())
	}
	return s.Commit(ctx, append([]item.Write{o.Create()}, with...)...)
}

// UpdateOperation implements OperationWriter.
func (s *Store) UpdateOperation(
	ctx context.Context, k operation.Key, decide func(operation.Operation) ([]item.Write, error),
) (operation.Operation, error) {
	parse := func(i item.Item) (operation.Operation, error) { return operationOf(i, k) }
	return update(ctx, s.table, k.Ref(), "operation "+string(k.ID), parse, decide)
}

// Existing implements OperationWriter.
func (s *Store) Existing(ctx context.Context, keys []job.Key) ([]Existing, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	refs := make([]item.Ref, len(keys))
	for n, k := range keys {
		refs[n] = k.Ref()
	}
	items, err := s.getAll(ctx, refs)
	if err != nil {
		return nil, err
	}
	found := make([]Existing, len(keys))
	for n, i := range items {
		switch row, err := rowOf(i, keys[n]); {
		case i == nil:
		case job.IsGone(i):
			found[n].Gone = true
		case err != nil:
			found[n].Err = err
		default:
			found[n].Row = &row
		}
	}
	return found, nil
}

func operationName(k operation.Key) string { return string(k.Tenant) + "#" + string(k.ID) }

// NoteOperation implements OperationWriter.
func (s *Store) NoteOperation(ctx context.Context, k operation.Key, now time.Time) error {
	return s.note(ctx, operationNotes, operationName(k), now)
}

// ForgetOperation implements OperationNotes.
func (s *Store) ForgetOperation(ctx context.Context, k operation.Key, now time.Time) error {
	return s.forgetNote(ctx, operationNotes, operationName(k), now)
}

// NotedOperations implements OperationNotes.
func (s *Store) NotedOperations(ctx context.Context) (noted []NotedOperation, err error) {
	found, err := s.notes(ctx, operationNotes)
	for _, i := range found {
		if t, id, ok := strings.Cut(i.Str(contract.AttrSK), "#"); ok {
			k := operation.Key{Tenant: tenant.ID(t), ID: job.ID(id)}
			noted = append(noted, NotedOperation{k, i.Time("at")})
		}
	}
	return noted, err
}

package store

import (
	"context"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

// Pause reads a tenant's pause of that scope; an absent one is a fault.NotFound.
func (s *Store) Pause(ctx context.Context, t tenant.ID, scope string) (job.Pause, error) {
	i, err := s.table.Get(ctx, job.PauseRef(t, scope))
	if err != nil {
		return job.Pause{}, err
	}
	if i == nil {
		return job.Pause{}, fault.New(fault.NotFound, nil, "reading pause %q", scope)
	}
	return job.ParsePause(i)
}

// PutPause puts a tenant's pause in place of the one of its scope, if there is one.
func (s *Store) PutPause(ctx context.Context, t tenant.ID, p job.Pause) error {
	return s.Put(ctx, item.Write{Ref: job.PauseRef(t, p.Scope), Name: "pause.put", Put: p.Item(t)})
}

// DeletePause lifts a tenant's pause; an absent one is a fault.NotFound.
func (s *Store) DeletePause(ctx context.Context, t tenant.ID, scope string) error {
	err := s.Put(ctx, item.Write{
		Ref: job.PauseRef(t, scope), Name: "pause.delete", Delete: true,
		When: []item.All{{{Attr: contract.AttrPK, Op: item.Exists}}},
	})
	if Refused(err) != nil {
		return fault.New(fault.NotFound, nil, "lifting pause %q", scope)
	}
	return err
}

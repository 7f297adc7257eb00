package store

import (
	"context"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

// Pause implements Pauses.
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

// PutPause implements Pauses.
func (s *Store) PutPause(ctx context.Context, t tenant.ID, p job.Pause) error {
	return s.Put(ctx, item.Write{Ref: job.PauseRef(t, p.Scope), Name: WritePausePut, Put: p.Item(t)})
}

// DeletePause implements Pauses.
func (s *Store) DeletePause(ctx context.Context, t tenant.ID, scope string, now time.Time) error {
	p, err := s.Pause(ctx, t, scope)
	if err != nil && fault.KindOf(err) != fault.Undecodable { // that one must go all the same
		return err
	}
	if err == nil {
		p.LiftedAt = now
		i := p.Item(t)
		delete(i, contract.AttrExpiresAt)
		i[contract.AttrPK] = liftedKey(t)
		if err := s.Put(ctx, item.Write{Ref: item.Ref{Table: contract.Tasks, PK: liftedKey(t), SK: scope},
			Name: WritePauseLifted, Put: i}); err != nil {
			return err
		}
	}
	err = s.Put(ctx, item.Write{
		Ref: job.PauseRef(t, scope), Name: WritePauseDelete, Delete: true,
		When: []item.All{{{Attr: contract.AttrPK, Op: item.Exists}}},
	})
	if Refused(err) != nil {
		return fault.New(fault.NotFound, nil, "lifting pause %q", scope)
	}
	return err
}

func liftedKey(t tenant.ID) string { return "lifted#" + string(t) }

// Lifted implements PauseReader.
func (s *Store) Lifted(ctx context.Context, t tenant.ID, task string, now time.Time) (job.Pauses, error) {
	var refs []item.Ref
	for _, scope := range []string{job.PauseAll, job.PauseTaskPrefix + task} {
		refs = append(refs, item.Ref{Table: contract.Tasks, PK: liftedKey(t), SK: scope}, job.PauseRef(t, scope))
	}
	var lifted job.Pauses
	for n, ref := range refs { // one by one, which is all that a worker and the promoter may read here
		i, err := s.table.Get(ctx, ref)
		if err != nil {
			return nil, err
		}
		if i == nil {
			continue
		}
		p, err := job.ParsePause(i)
		if err != nil { // one that is lifted says nothing any more, one that was not lifted still holds
			continue
		}
		if n%2 == 0 || !p.Until.IsZero() && !now.Before(p.Until) {
			lifted = append(lifted, p)
		}
	}
	return lifted, nil
}

package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/tenant"
)

// Dag is a tenant's dag at one of its versions: the newest, or the one asked for.
type Dag struct {
	Name       string
	Version    int64  // from 1
	Definition string // its hash: Definition reads what it says
	CreatedAt  time.Time
	UpdatedAt  time.Time // when the version was made
	Deleted    bool      // the name goes on counting versions

	rev int64 // grows with every write
}

func dagRef(t tenant.ID, name string) item.Ref {
	return item.Ref{Table: contract.Dags, PK: "dag#" + string(t), SK: name}
}

func dagVersionRef(t tenant.ID, name string, version int64) item.Ref {
	return item.Ref{
		Table: contract.Dags, PK: "version#" + string(t) + "#" + name, SK: fmt.Sprintf("%010d", version),
	}
}

func (d Dag) item(ref item.Ref) item.Item {
	i := item.Item{
		contract.AttrPK: ref.PK, contract.AttrSK: ref.SK, "name": d.Name, "version": d.Version,
		"definition": d.Definition, "created_at": d.CreatedAt.UnixMilli(), "updated_at": d.UpdatedAt.UnixMilli(),
		"rev": d.rev,
	}
	if d.Deleted {
		i["deleted"] = "1"
	}
	return i
}

// dagOf decodes a dag; nil is the zero Dag.
func dagOf(i item.Item) (Dag, error) {
	if i == nil {
		return Dag{}, nil
	}
	d := Dag{
		Name: i.Str("name"), Version: i.Int("version"), Definition: i.Str("definition"),
		CreatedAt: i.Time("created_at"), UpdatedAt: i.Time("updated_at"), Deleted: i.Str("deleted") != "",
		rev: i.Int("rev"),
	}
	if d.Name == "" || d.Version < 1 || d.Definition == "" {
		return d, fault.New(fault.Undecodable, nil, "reading dag %q", d.Name)
	}
	return d, nil
}

// write replaces what old was by d.
func (d Dag) write(name string, ref item.Ref, old Dag) item.Write {
	when := item.Cond{Attr: "rev", Op: item.Eq, Value: old.rev}
	if old.Version == 0 {
		when = item.Cond{Attr: contract.AttrPK, Op: item.Missing}
	}
	d.rev = old.rev + 1
	return item.Write{Ref: ref, Name: name, Put: d.item(ref), When: []item.All{{when}}}
}

// PutDag implements Dags.
func (s *Store) PutDag(
	ctx context.Context, t tenant.ID, name, definition string, now time.Time, before func(old Dag, created bool) error,
) (d Dag, created bool, err error) {
	ref := dagRef(t, name)
	d, err = update(ctx, s.table, ref, "dag "+strconv.Quote(name), dagOf, func(old Dag) ([]item.Write, error) {
		created = old.Version == 0 || old.Deleted
		if !created && old.Definition == definition {
			return nil, nil
		}
		next := Dag{Name: name, Version: old.Version + 1, Definition: definition, CreatedAt: old.CreatedAt,
			UpdatedAt: now}
		if created {
			next.CreatedAt = now
		}
		if before != nil {
			if err := before(old, created); err != nil {
				return nil, err
			}
		}
		version := dagVersionRef(t, name, next.Version)
		return []item.Write{
			next.write(WriteDagPut, ref, old), next.write(WriteDagPutVersion, version, Dag{}),
		}, nil
	})
	return d, created, err
}

// Dag implements DagReader.
func (s *Store) Dag(ctx context.Context, t tenant.ID, name string) (Dag, error) {
	i, err := s.table.Get(ctx, dagRef(t, name))
	if err != nil {
		return Dag{}, err
	}
	d, err := dagOf(i)
	if err == nil && (d.Version == 0 || d.Deleted) {
		err = fault.New(fault.NotFound, nil, "reading dag %q", name)
	}
	return d, err
}

// DagVersion implements DagReader.
func (s *Store) DagVersion(ctx context.Context, t tenant.ID, name string, version int64) (Dag, error) {
	newest, err := s.Dag(ctx, t, name)
	if err != nil || newest.Version == version {
		return newest, err
	}
	i, err := s.table.Get(ctx, dagVersionRef(t, name, version))
	if err != nil {
		return Dag{}, err
	}
	d, err := dagOf(i)
	if err == nil && d.Version == 0 {
		err = fault.New(fault.NotFound, nil, "reading version %d of dag %q", version, name)
	}
	d.CreatedAt = newest.CreatedAt
	return d, err
}

// DagVersions implements Dags.
func (s *Store) DagVersions(
	ctx context.Context, t tenant.ID, name string, below int64, limit int,
) (versions []Dag, more bool, err error) {
	ref := dagVersionRef(t, name, below)
	q := item.Query{Table: contract.Dags, PK: ref.PK, Descending: true, Limit: limit + 1, Consistent: true}
	if below > 0 {
		q.To = ref.SK
	}
	return upTo(ctx, s.table, q, limit, listed)
}

// Dags implements Dags.
func (s *Store) Dags(ctx context.Context, t tenant.ID, after string, limit int) (dags []Dag, more bool, err error) {
	return byName(ctx, s.table, contract.Dags, dagRef(t, "").PK, after, limit, listed)
}

// listed reads a dag of a list. One that is deleted, or cannot be read, is left out.
func listed(i item.Item) (Dag, bool) {
	d, err := dagOf(i)
	return d, err == nil && !d.Deleted
}

// UseDag is part of each write of a schedule that makes runs of a dag: the dag must be there, and the process that
// deletes it at the same time finds it changed, and reads the schedules again.
func UseDag(t tenant.ID, name string) item.Write {
	return item.Write{
		Ref: dagRef(t, name), Name: WriteDagUse, Add: map[string]int64{"rev": 1},
		When: []item.All{{
			{Attr: contract.AttrPK, Op: item.Exists}, {Attr: "deleted", Op: item.Missing},
		}},
	}
}

// DeleteDag implements Dags.
func (s *Store) DeleteDag(
	ctx context.Context, t tenant.ID, name string, now time.Time, free func() error,
) error {
	ref := dagRef(t, name)
	_, err := update(ctx, s.table, ref, "dag "+strconv.Quote(name), dagOf, func(old Dag) ([]item.Write, error) {
		if old.Version == 0 || old.Deleted {
			return nil, fault.New(fault.NotFound, nil, "deleting dag %q", name)
		}
		if err := free(); err != nil {
			return nil, err
		}
		next := old
		next.Deleted, next.UpdatedAt = true, now
		return []item.Write{next.write(WriteDagDelete, ref, old)}, nil
	})
	return err
}

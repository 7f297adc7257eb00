package store

import (
	"context"
	"encoding/json"

	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Exclusion is a tenant's exclusion under its name.
type Exclusion struct {
	Name string
	calendar.Exclusion
	Version int64 // grows with every change
}

func exclusionsKey(t tenant.ID) string { return "exclusion#" + string(t) }

func exclusionRef(t tenant.ID, name string) item.Ref {
	return item.Ref{Table: contract.Tasks, PK: exclusionsKey(t), SK: name}
}

func parseExclusion(i item.Item) (Exclusion, error) {
	e := Exclusion{Name: i.Str(contract.AttrSK), Version: i.Int("version")}
	if err := json.Unmarshal([]byte(i.Str("body")), &e.Exclusion); err != nil {
		return e, fault.New(fault.Undecodable, err, "reading exclusion %q", e.Name)
	}
	return e, nil
}

// Exclusion implements Exclusions.
func (s *Store) Exclusion(ctx context.Context, t tenant.ID, name string) (Exclusion, error) {
	i, err := s.table.Get(ctx, exclusionRef(t, name))
	if err != nil {
		return Exclusion{}, err
	}
	if i == nil {
		return Exclusion{}, fault.New(fault.NotFound, nil, "reading exclusion %q", name)
	}
	return parseExclusion(i)
}

// ExclusionsNamed implements Exclusions.
func (s *Store) ExclusionsNamed(ctx context.Context, t tenant.ID, names []string) ([]Exclusion, error) {
	if len(names) == 0 {
		return nil, nil
	}
	refs := make([]item.Ref, len(names))
	for n, name := range names {
		refs[n] = exclusionRef(t, name)
	}
	items, err := s.table.GetMany(ctx, refs)
	if err != nil {
		return nil, err
	}
	var found []Exclusion
	for _, i := range items {
		if i == nil {
			continue
		}
		e, err := parseExclusion(i)
		if err != nil {
			return nil, err
		}
		found = append(found, e)
	}
	return found, nil
}

// Is is the part of a transaction that asks for the exclusion as it was read: what copies it
// must not copy what is replaced meanwhile.
func (e Exclusion) Is(t tenant.ID) item.Write {
	return item.Write{
		Ref: exclusionRef(t, e.Name), Name: WriteExclusionCheck, Check: true,
		When: []item.All{{{Attr: "version", Op: item.Eq, Value: e.Version}}},
	}
}

// Exclusions implements Exclusions.
func (s *Store) Exclusions(
	ctx context.Context, t tenant.ID, after string, limit int,
) (list []Exclusion, more bool, err error) {
	return byName(ctx, s.table, contract.Tasks, exclusionsKey(t), after, limit, func(i item.Item) (Exclusion, bool) {
		e, err := parseExclusion(i)
		return e, err == nil
	})
}

// item encodes the exclusion of a tenant.
func (e Exclusion) item(t tenant.ID) (item.Item, error) {
	body, err := text.JSON(e.Exclusion)
	if err != nil {
		return nil, fault.New(fault.Invalid, err, "writing exclusion %q", e.Name)
	}
	ref := exclusionRef(t, e.Name)
	return item.Item{
		contract.AttrPK: ref.PK, contract.AttrSK: ref.SK, "body": string(body), "version": e.Version,
	}, nil
}

// DeleteExclusion implements Exclusions.
func (s *Store) DeleteExclusion(ctx context.Context, t tenant.ID, name string) error {
	err := s.Put(ctx, item.Write{
		Ref: exclusionRef(t, name), Name: WriteExclusionDelete, Delete: true,
		When: []item.All{{{Attr: contract.AttrPK, Op: item.Exists}}},
	})
	if Refused(err) != nil {
		return fault.New(fault.NotFound, nil, "deleting exclusion %q", name)
	}
	return err
}

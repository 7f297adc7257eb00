package store

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

// updateTries is how often one update decides, at most, when others keep changing the item.
const updateTries = 8

// Update implements JobWriter.
func (s *Store) Update(
	ctx context.Context, k job.Key, decide func(job.Row) ([]item.Write, error),
) (job.Row, error) {
	parse := func(i item.Item) (job.Row, error) { return rowOf(i, k) }
	return update(ctx, s.table, k.Ref(), "job "+string(k.ID), parse, decide)
}

// UpdateWithClaim implements JobWriter.
// Row and claim are passed by pointer, as each report has a goroutine of its own, and rows by value in six frames make
// its stack outgrow the 16 KB that the runtime provides cheaply.
func (s *Store) UpdateWithClaim(
	ctx context.Context, k job.Key, decide func(*job.Row, *job.Claim) ([]item.Write, error),
) (*job.Row, error) {
	read, err := s.table.GetMany(ctx, []item.Ref{k.Ref(), k.ClaimRef()})
	if err != nil {
		return nil, err
	}
	c, err := job.ParseClaim(read[1])
	if err != nil {
		return nil, err
	}
	parse := func(i item.Item) (*job.Row, error) {
		row, err := rowOf(i, k)
		return &row, err
	}
	row, _, err := updateFrom(ctx, s.table, k.Ref(), "job "+string(k.ID), read[0], parse,
		func(row *job.Row) ([]item.Write, error) { return decide(row, &c) })
	return row, err
}

// UpdateSchedule implements ScheduleWriter.
func (s *Store) UpdateSchedule(
	ctx context.Context, k schedule.Key, decide func(*schedule.Schedule) ([]item.Write, error),
) (schedule.Schedule, error) {
	parse := func(i item.Item) (*schedule.Schedule, error) {
		if i == nil {
			return nil, nil
		}
		found, err := schedule.Parse(i)
		return &found, err
	}
	after, err := update(ctx, s.table, k.Ref(), "schedule "+k.Name, parse, decide)
	if after == nil {
		return schedule.Schedule{Key: k}, err
	}
	return *after, err
}

// UpdateTask implements Tasks.
func (s *Store) UpdateTask(
	ctx context.Context, t tenant.ID, name string, decide func(*job.Task) (job.Task, error),
) (job.Task, error) {
	if b := slices.IndexFunc(builtIn, func(b job.Task) bool { return b.Name == name }); b >= 0 {
		old := builtIn[b]
		next, err := decide(&old)
		if err == nil && !reflect.DeepEqual(next, builtIn[b]) {
			err = fault.New(fault.Refused, nil, "changing task %q, which is built in", name)
		}
		return builtIn[b], err
	}
	unreadable := func(i item.Item) job.Task { return job.Task{Name: name, Version: i.Int("version")} }
	return replace(ctx, s.table, versioned[job.Task]{
		ref: job.TaskRef(t, name), kind: "task", put: WriteTaskPut,
		parse:   parsed(job.ParseTask, unreadable),
		version: func(task *job.Task) *int64 { return &task.Version },
		encode:  func(task job.Task) (item.Item, error) { return task.Item(t), nil },
	}, decide)
}

// UpdateExclusion implements Exclusions.
func (s *Store) UpdateExclusion(
	ctx context.Context, t tenant.ID, name string, decide func(*Exclusion) (Exclusion, error),
) (Exclusion, error) {
	unreadable := func(i item.Item) Exclusion { return Exclusion{Name: name, Version: i.Int("version")} }
	return replace(ctx, s.table, versioned[Exclusion]{
		ref: exclusionRef(t, name), kind: "exclusion", put: WriteExclusionPut,
		parse:   parsed(parseExclusion, unreadable),
		version: func(e *Exclusion) *int64 { return &e.Version },
		encode:  func(e Exclusion) (item.Item, error) { return e.item(t) },
	}, decide)
}

// versioned describes an item that has a version and is always put whole.
type versioned[T any] struct {
	ref     item.Ref
	kind    string // names it in errors
	put     string // the name of its write
	parse   func(item.Item) (*T, error)
	version func(*T) *int64
	encode  func(T) (item.Item, error)
	// guard returns a write that goes with that of a new one. It is called before decide, so that it is refused if what
	// decide then reads of others has changed. Nil: there is none.
	guard func() (item.Write, error)
}

// parsed reads an item: nil when it is absent, and what unreadable makes of it when it cannot be read.
func parsed[T any](parse func(item.Item) (T, error), unreadable func(item.Item) T) func(item.Item) (*T, error) {
	return func(i item.Item) (*T, error) {
		if i == nil {
			return nil, nil
		}
		v, err := parse(i)
		if err != nil {
			v = unreadable(i)
		}
		return &v, nil
	}
}

// replace is the update of an item that has a version and is put whole.
func replace[T any](ctx context.Context, table Table, v versioned[T], decide func(*T) (T, error)) (T, error) {
	after, err := update(ctx, table, v.ref, v.kind+" "+v.ref.SK, v.parse, func(old *T) ([]item.Write, error) {
		var guards []item.Write
		if old == nil && v.guard != nil {
			guard, err := v.guard()
			if err != nil {
				return nil, err
			}
			guards = append(guards, guard)
		}
		next, err := decide(old)
		if err != nil {
			return nil, err
		}
		version := v.version(&next)
		*version = 0
		when := item.Cond{Attr: contract.AttrPK, Op: item.Missing}
		if old != nil {
			*version = *v.version(old)
			if reflect.DeepEqual(next, *old) {
				return nil, nil
			}
			when = item.Cond{Attr: "version", Op: item.Eq, Value: *version}
			if *version == 0 { // it cannot be read, and has none
				when.Op = item.Missing
			}
		}
		*version++
		put, err := v.encode(next)
		return append([]item.Write{{Ref: v.ref, Name: v.put, Put: put, When: []item.All{{when}}}}, guards...), err
	})
	if after == nil {
		return *new(T), err
	}
	return *after, err
}

// update reads an item, changes it as decide says and returns it as it is then, or the item that decide
// saw where nothing is left or written.
func update[T any](
	ctx context.Context, table Table, ref item.Ref, what string,
	parse func(item.Item) (T, error), decide func(T) ([]item.Write, error),
) (T, error) {
	current, err := table.Get(ctx, ref)
	if err != nil {
		return *new(T), err
	}
	old, after, err := updateFrom(ctx, table, ref, what, current, parse, decide)
	if err != nil || after == nil {
		return old, err
	}
	return parse(after)
}

// updateFrom is the one loop of compare and set, from an item as it was read. parse gets nil for an
// absent item. what names the item in errors. old is what decide saw last; after is nil where nothing is
// left or written.
func updateFrom[T any](
	ctx context.Context, table Table, ref item.Ref, what string, current item.Item,
	parse func(item.Item) (T, error), decide func(T) ([]item.Write, error),
) (old T, after item.Item, err error) {
	for range updateTries {
		if old, err = parse(current); err != nil {
			return old, nil, err
		}
		writes, err := decide(old)
		if Refused(err) != nil {
			if current, err = table.Get(ctx, ref); err != nil {
				return old, nil, err
			}
			continue
		}
		if err != nil || len(writes) == 0 {
			return old, nil, err
		}
		own := slices.IndexFunc(writes, func(w item.Write) bool { return w.Ref == ref })
		if own < 0 {
			return old, nil, fault.New(fault.Invalid, nil, "changing %s: none of the writes is its own", what)
		}
		after, err = write(ctx, table, current, writes, own)
		if refused := Refused(err); refused != nil {
			if stop := only(refused, writes); stop != nil {
				return old, nil, stop
			}
			var done bool
			if current, done, err = reread(ctx, table, refused, current, writes, own); err == nil && !done {
				continue
			}
			after = current
		}
		if err != nil || taken(after) {
			return old, nil, err
		}
		return old, after, nil
	}
	return old, nil, fault.New(fault.Conflict, nil, "changing %s: it changed %d times meanwhile", what, updateTries)
}

// only is what the refusal means when a single write of a transaction was refused and says what that
// means; nil otherwise.
func only(r *item.Refused, writes []item.Write) error {
	if len(r.Olds) == 1 {
		for n := range r.Olds {
			return writes[n].Else
		}
	}
	return nil
}

// taken says that nothing is left of an item, or only the tombstone of a job.
func taken(i item.Item) bool { return i == nil || job.IsGone(i) }

// write writes all or nothing and returns the item of write number own as it then is.
func write(ctx context.Context, table Table, current item.Item, writes []item.Write, own int) (item.Item, error) {
	if len(writes) == 1 {
		return table.Write(ctx, writes[0])
	}
	return applied(writes[own], current), table.Commit(ctx, writes...)
}

// applied is what a write makes of an item.
func applied(w item.Write, old item.Item) item.Item {
	sk := contract.AttrSK
	if w.Table == contract.Jobs {
		sk = contract.AttrJobID
	}
	return w.Applied(old, contract.AttrPK, sk)
}

// reread returns the item that a refused update decides about next. done says that there is nothing to
// decide: everything is as it was to become, so our own first try refused the second.
func reread(
	ctx context.Context, table Table, r *item.Refused, stood item.Item, writes []item.Write, own int,
) (current item.Item, done bool, err error) {
	current, blamed := r.Olds[own]
	if !blamed { // another item of the transaction was in the way
		current, err = table.Get(ctx, writes[own].Ref)
		return current, false, err
	}
	if !maps.Equal(current, applied(writes[own], stood)) {
		return current, false, nil
	}
	for n, w := range writes {
		if n == own || w.Put == nil {
			continue
		}
		if put, err := table.Get(ctx, w.Ref); err != nil || !maps.Equal(put, w.Put) {
			return current, false, err
		}
	}
	return current, true, nil
}

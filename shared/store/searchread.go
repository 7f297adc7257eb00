package store

import (
	"context"
	"slices"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/search"
	"punctual/shared/tenant"
)

// What one page of a search reads at most, before it ends without having found enough.
const (
	maxEntriesRead    = 5000 // as they are, which costs a read unit for some of them
	maxReferencesRead = 1000 // of which each entry is read by its key
)

// Search implements SearchReader. It reads references to the jobs with a tag or of the task that the filter names, if
// it names one, and else all entries of the tenant.
func (x *SearchTable) Search(ctx context.Context, t tenant.ID, q search.Query) (page search.Page, err error) {
	page.AsOf = x.asOf()
	part := x.partOf(q)
	if part == "" {
		return x.entries(ctx, t, q, page)
	}
	return x.referred(ctx, t, part, q, page)
}

// partOf says which references a query reads; "" for none.
func (x *SearchTable) partOf(q search.Query) string {
	names := make([]string, 0, len(q.Tags))
	for name := range q.Tags {
		names = append(names, name)
	}
	slices.Sort(names)
	switch {
	case q.Order == search.LastDead:
		return ofDeaths
	case len(names) > 0:
		return ofTag(names[0], q.Tags[names[0]])
	case q.Task != "":
		return ofTask(q.Task)
	}
	return ""
}

// runs are the sorted items of a query's partitions, in its order and from its position on.
func (x *SearchTable) runs(t tenant.ID, part string, q search.Query) []*run {
	base := item.Query{Table: contract.Search, Descending: q.Order != search.OldestFirst,
		Limit: min(max(2*q.Limit/contract.Partitions, 2), maxPage)}
	from, to := bounds(q)
	if from != "" {
		base.From = from
	}
	if to != "" {
		base.To = to
	}
	runs := make([]*run, contract.Partitions)
	for p := range runs {
		each := base
		each.PK = job.PartitionKey(t, p) + part
		runs[p] = &run{query: each, key: func(i item.Item) string { return i.Str(contract.AttrSK) }}
	}
	return runs
}

// bounds are the sort keys that a query reads: from ≤ key < to, where "" is open.
func bounds(q search.Query) (from, to string) {
	if q.Order == search.LastDead {
		at := func(t time.Time) string {
			if t.IsZero() {
				return ""
			}
			return deathKey(t, "")
		}
		from, to = at(q.DeadAfter), at(q.DeadBefore)
		if q.Position != "" {
			to = q.Position // earlier than DeadBefore, which the page before has heeded
		}
		return from, to
	}
	to = string(q.Before)
	if q.IDPrefix != "" {
		from = q.IDPrefix
		to = lower(to, q.IDPrefix+"~") // above all ids that begin so
	}
	switch {
	case q.Position == "":
	case q.Order == search.OldestFirst:
		from = max(from, q.Position+"\x00") // the first key that can follow
	default:
		to = lower(to, q.Position)
	}
	return from, to
}

// lower is the lower of two upper bounds, of which "" is open.
func lower(a, b string) string {
	if a == "" || b != "" && b < a {
		return b
	}
	return a
}

// takes reports whether a query selects an entry.
func takes(q search.Query, e search.Entry) bool {
	return q.Matches(e) && (q.Before == "" || e.ID < q.Before)
}

// entries finds a page among all entries.
func (x *SearchTable) entries(
	ctx context.Context, t tenant.ID, q search.Query, page search.Page,
) (search.Page, error) {
	read, last := 0, ""
	for i, err := range x.store.merge(ctx, x.runs(t, "", q)) {
		if err != nil {
			return search.Page{}, err
		}
		e := parseEntry(i)
		is := takes(q, e)
		if is && len(page.Entries) == q.Limit || read == maxEntriesRead {
			page.Next = last
			return page, nil
		}
		if is {
			page.Entries = append(page.Entries, e)
		}
		read, last = read+1, string(e.ID)
	}
	return page, nil
}

// referred finds a page among the entries that references lead to.
func (x *SearchTable) referred(
	ctx context.Context, t tenant.ID, part string, q search.Query, page search.Page,
) (search.Page, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := finding{x: x, tenant: t, part: part, query: q, page: page}
	seen, read, last := 0, 0, ""
	for i, err := range x.store.merge(ctx, x.runs(t, part, q)) {
		if err != nil {
			return search.Page{}, err
		}
		if seen == maxEntriesRead || read == maxReferencesRead {
			full, err := f.read(ctx)
			if !full {
				f.page.Next = last
			}
			return f.page, err
		}
		seen, last = seen+1, i.Str(contract.AttrSK)
		if part == ofDeaths && !mayBe(q, i) {
			continue
		}
		read++
		if f.lot = append(f.lot, last); len(f.lot) == min(q.Limit+1, ReadAtOnce) {
			if full, err := f.read(ctx); full || err != nil {
				return f.page, err
			}
		}
	}
	_, err := f.read(ctx)
	return f.page, err
}

// finding is a page that is being filled from references.
type finding struct {
	x      *SearchTable
	tenant tenant.ID
	part   string
	query  search.Query
	page   search.Page
	lot    []string // sort keys of references whose entries were not read yet
	last   string   // of the last one whose entry was read
}

// read adds the entries of the lot that the query selects, and reports whether there are more than the page takes.
func (f *finding) read(ctx context.Context) (full bool, err error) {
	if len(f.lot) == 0 {
		return false, nil
	}
	refs := make([]item.Ref, len(f.lot))
	for n, key := range f.lot {
		id := job.ID(key)
		if f.part == ofDeaths {
			_, id = deathAt(key)
		}
		refs[n] = entryRef(job.Key{Tenant: f.tenant, ID: id})
	}
	items, err := f.x.store.getAll(ctx, refs)
	if err != nil {
		return false, err
	}
	for n, i := range items {
		if e := parseEntry(i); i != nil && takes(f.query, e) && f.leadsTo(f.lot[n], e) {
			if len(f.page.Entries) == f.query.Limit {
				f.page.Next = f.last
				return true, nil
			}
			f.page.Entries = append(f.page.Entries, e)
		}
		f.last = f.lot[n]
	}
	f.lot = f.lot[:0]
	return false, nil
}

// leadsTo reports whether a reference is still one of the entry's: a job that was dead may have another death, or none.
func (f *finding) leadsTo(key string, e search.Entry) bool {
	return f.part != ofDeaths || !e.DeadAt.IsZero() && deathKey(e.DeadAt, e.ID) == key
}

// mayBe leaves out deaths by what the reference itself says.
func mayBe(q search.Query, i item.Item) bool {
	is := func(want, has string) bool { return want == "" || want == has }
	return is(q.Group, i.Str(attrCause)) && is(q.Task, i.Str(attrTask)) && is(q.Code, i.Str(attrCode))
}

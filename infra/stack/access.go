package stack

import (
	"slices"

	"punctual/infra/construct"
	"punctual/shared/contract"
)

// access is everything that a function may do beyond writing its log. AWS refuses everything else.
type access struct {
	items       []items  // single items of tables
	queries     []query  // ranges of tables and indexes
	sends       []string // queues by logical name
	asks        []string // whose depth it may ask for
	visibility  []string // whose messages it may hide or show
	receives    []string // whose messages it may take by itself
	listsTables bool     // asks which tables there are, to do nothing after one was restored
	under       []under  // items of tables whose partitions' names begin so
	timers      bool     // timers
	blobs       blobs
}

type items struct {
	table string
	verbs []construct.Verb
}

type query struct {
	table   string
	indexes []string // "" is the table itself
}

type under struct {
	table, begins string
	verbs         []construct.Verb
}

// blobs is what may be done with large payloads and results.
type blobs struct{ read, write, remove bool }

// jobAccess is what a decision about a job takes, with every step that may follow.
func jobAccess() access {
	return access{
		items: []items{
			{contract.Jobs, []construct.Verb{construct.Get, construct.GetMany, construct.Put, construct.Update,
				construct.Delete}}, // the entries of jobs that come after one
			{contract.Claims, []construct.Verb{construct.Get, construct.GetMany, construct.Put, construct.Update}},
			{contract.Schedules, []construct.Verb{construct.Get, construct.Put, construct.Update, construct.Check}},
			{contract.Tasks, []construct.Verb{construct.Get, construct.Put, construct.Update, construct.Delete}},
			{contract.Runs, []construct.Verb{construct.Get, construct.GetMany, construct.Put, construct.Update}},
			{contract.Dags, []construct.Verb{construct.Get}},
		},
		queries: []query{
			{contract.Jobs, []string{"", contract.DueIndex}}, {contract.Schedules, []string{contract.DueIndex}},
			{contract.Runs, []string{"", contract.DueIndex}}, // the events of a run that ends
			{contract.Tasks, []string{""}},
		},
		sends: append(contract.FiringQueues(), contract.ReportQueue, contract.RedriveQueue, contract.DispatchQueue),
		asks:  contract.FiringQueues(),
		blobs: blobs{read: true, write: true},
	}
}

// bulkAccess is what an operation on many jobs takes: what a decision about one does, and the lists that it reads.
func bulkAccess() access {
	a := jobAccess().withVisibility(contract.BulkQueue).withBlobDeletion().withSends(contract.BulkQueue)
	a.items[3].verbs = append(a.items[3].verbs, construct.GetMany) // tasks
	a.items[4].verbs = append(a.items[4].verbs, construct.Delete, construct.Check)
	a.queries[0].indexes = append(a.queries[0].indexes, contract.GroupIndex, contract.DeadIndex)
	a.items = append(a.items, items{contract.Search, []construct.Verb{construct.Get, construct.GetMany}})
	a.queries = append(a.queries, query{contract.Search, []string{""}})
	return a
}

// searchAccess is what lists and searches of jobs take.
func searchAccess() access {
	return access{
		items: []items{
			{contract.Jobs, []construct.Verb{construct.Get, construct.GetMany}},
			{contract.Claims, []construct.Verb{construct.GetMany}},
			{contract.Tasks, []construct.Verb{construct.Get}},
			{contract.Search, []construct.Verb{construct.Get, construct.GetMany}},
		},
		queries: []query{
			{contract.Jobs, []string{"", contract.GroupIndex, contract.DeadIndex, contract.DueIndex}},
			{contract.Tasks, []string{""}}, {contract.Search, []string{""}},
		},
		under: []under{{contract.Tasks, "quota#", []construct.Verb{construct.Update}}},
	}
}

// without is a without the rights to a table.
func (a access) without(table string) access {
	a.items = slices.DeleteFunc(slices.Clone(a.items), func(i items) bool { return i.table == table })
	a.queries = slices.DeleteFunc(slices.Clone(a.queries), func(q query) bool { return q.table == table })
	return a
}

// withSends is a with the right to send to those queues, too.
func (a access) withSends(queues ...string) access {
	a.sends = append(slices.Clone(a.sends), queues...)
	return a
}

// withVisibility is a with the right to change the visibility of messages of those queues.
func (a access) withVisibility(queues ...string) access {
	a.visibility = queues
	return a
}

// withBlobDeletion is a with the right to delete the large payloads of expired rows.
func (a access) withBlobDeletion() access {
	a.blobs.remove = true
	return a
}

// withTimers is a with the right to make timers.
func (a access) withTimers() access {
	a.timers = true
	return a
}

// withTableList is a with the right to ask which tables there are.
func (a access) withTableList() access {
	a.listsTables = true
	return a
}

// withReceive is a with the right to take messages of those queues by itself.
func (a access) withReceive(queues ...string) access {
	a.receives = queues
	return a
}

// grant gives a function what it may do.
func (d Data) grant(f construct.Function, timers construct.Timers, a access) {
	var services []string
	for _, i := range a.items {
		d.Tables.GrantItems(f.Role, i.table, i.verbs...)
	}
	for _, q := range a.queries {
		d.Tables.GrantQuery(f.Role, q.table, q.indexes...)
	}
	if len(a.items)+len(a.queries)+len(a.under) > 0 {
		services = append(services, construct.DynamoDB)
	}
	if a.listsTables {
		d.Tables.GrantIdentify(f.Role, contract.Guarded...)
	}
	for _, u := range a.under {
		d.Tables.GrantUnder(f.Role, u.table, u.begins, u.verbs...)
	}
	if len(a.receives) > 0 {
		d.Queues.GrantTake(f.Role, a.receives...)
	}
	if len(a.sends) > 0 {
		d.Queues.GrantSend(f.Role, a.sends...)
	}
	if len(a.asks) > 0 {
		d.Queues.GrantMeasure(f.Role, a.asks...)
	}
	if len(a.visibility) > 0 {
		d.Queues.GrantHide(f.Role, a.visibility...)
	}
	if len(a.sends)+len(a.visibility) > 0 {
		services = append(services, construct.SQS)
	}
	if a.timers {
		timers.GrantArm(f.Role)
	}
	if a.blobs.read {
		d.Bucket.GrantRead(f.Role)
		d.Bucket.GrantList(f.Role)
	}
	if a.blobs.write {
		d.Bucket.GrantWrite(f.Role)
	}
	if a.blobs.remove {
		d.Bucket.GrantDelete(f.Role)
	}
	if a.blobs != (blobs{}) {
		services = append(services, construct.S3)
	}
	if len(services) > 0 {
		d.Key.GrantUse(f.Role, services...)
	}
}

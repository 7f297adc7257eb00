package stack

import (
	"punctual/infra/construct"
	"punctual/shared/contract"
)

// access is everything that a function may do beyond writing its log. AWS refuses everything else.
type access struct {
	items   []items  // single items of tables
	queries []query  // ranges of tables and indexes
	sends   []string // queues by logical name
	asks    []string // whose depth it may ask for
	hides   []string // whose messages it may hide or show
	takes   []string // whose messages it may take by itself
	knows   bool     // asks which tables there are, to do nothing after one was restored
	counts  bool     // requests of tenants
	arms    bool     // timers
	blobs   blobs
}

type items struct {
	table string
	verbs []construct.Verb
}

type query struct {
	table   string
	indexes []string // "" is the table itself
}

// blobs is what may be done with large payloads and results.
type blobs struct{ read, write, remove bool }

// deciding is what deciding about a job takes, with every step that may follow.
func deciding() access {
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

// hiding is a with the right to change the visibility of messages of those queues.
func (a access) hiding(queues ...string) access {
	a.hides = queues
	return a
}

// forgetting is a with the right to delete the large payloads of expired rows.
func (a access) forgetting() access {
	a.blobs.remove = true
	return a
}

// arming is a with the right to make timers.
func (a access) arming() access {
	a.arms = true
	return a
}

// knowing is a with the right to ask which tables there are.
func (a access) knowing() access {
	a.knows = true
	return a
}

// taking is a with the right to take messages of those queues by itself.
func (a access) taking(queues ...string) access {
	a.takes = queues
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
	if len(a.items)+len(a.queries) > 0 {
		services = append(services, construct.DynamoDB)
	}
	if a.knows {
		d.Tables.GrantIdentify(f.Role, contract.Guarded...)
	}
	if a.counts {
		d.Tables.GrantUnder(f.Role, contract.Tasks, "quota#", construct.Update)
	}
	if len(a.takes) > 0 {
		d.Queues.GrantTake(f.Role, a.takes...)
	}
	if len(a.sends) > 0 {
		d.Queues.GrantSend(f.Role, a.sends...)
	}
	if len(a.asks) > 0 {
		d.Queues.GrantMeasure(f.Role, a.asks...)
	}
	if len(a.hides) > 0 {
		d.Queues.GrantHide(f.Role, a.hides...)
	}
	if len(a.sends)+len(a.hides) > 0 {
		services = append(services, construct.SQS)
	}
	if a.arms {
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

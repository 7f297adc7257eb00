package stack

import (
	"punctual/infra/construct"
	"punctual/shared/contract"
)

// access is everything that a function may do, beyond writing its log. What is not listed is
// refused by AWS.
type access struct {
	items   []items  // single items of tables
	queries []query  // ranges of tables and indexes
	sends   []string // queues by logical name
	asks    []string // whose depth it may ask for
	hides   []string // whose messages it may hide or show
	arms    bool     // timers
	disarms bool
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

var (
	read  = []construct.Verb{construct.Get, construct.GetMany}
	write = []construct.Verb{construct.Put, construct.Update, construct.Delete, construct.Check}
	all   = append(append([]construct.Verb{}, read...), write...)
)

// deciding is what deciding about a job takes: its row, claim and contents, the pauses and the
// notes of the system, and the firing that may follow.
func deciding(more access) access {
	a := access{
		items:   []items{{contract.Jobs, all}, {contract.Claims, all}, {contract.Tasks, all}},
		queries: []query{{contract.Tasks, []string{""}}},
		sends:   append(contract.FiringQueues(), contract.RedriveQueue),
		asks:    contract.FiringQueues(),
		blobs:   blobs{read: true, write: true},
	}
	a.items = append(a.items, more.items...)
	a.queries = append(a.queries, more.queries...)
	a.sends = append(a.sends, more.sends...)
	a.hides, a.arms, a.disarms, a.blobs.remove = more.hides, more.arms, more.disarms, more.blobs.remove
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
	if a.disarms {
		timers.GrantDisarm(f.Role)
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

package job

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// LimitKey is a limit of work that a job counts under, with its key; "" is the key of those that name none.
type LimitKey struct {
	Name string `json:"name"`
	Key  string `json:"key,omitempty"`
}

// String names the limit and its key for a sentence.
func (l LimitKey) String() string {
	if l.Key == "" {
		return "limit " + l.Name
	}
	return "limit " + l.Name + ", key " + l.Key
}

// Limits are the limits of work of a job: a text, so that what holds them can be compared.
type Limits string

// No name and no key has a control character.
const (
	betweenLimits = "\n"
	beforeKey     = "\t"
)

// LimitsOf encodes a list.
func LimitsOf(list ...LimitKey) Limits {
	each := make([]string, len(list))
	for n, l := range list {
		each[n] = l.Name + beforeKey + l.Key
	}
	return Limits(strings.Join(each, betweenLimits))
}

// List decodes what LimitsOf has encoded.
func (l Limits) List() (list []LimitKey) {
	for each := range strings.SplitSeq(string(l), betweenLimits) {
		if name, key, _ := strings.Cut(each, beforeKey); name != "" {
			list = append(list, LimitKey{name, key})
		}
	}
	return list
}

// IsLimitKey reports whether a text can be the key of a limit of work.
func IsLimitKey(key string) bool { return isKey(key, contract.MaxLimitKey) }

// isKey reports whether a text has 1 to most characters, all of which can be seen.
func isKey(key string, most int) bool {
	n := utf8.RuneCountInString(key)
	return n >= 1 && n <= most && utf8.ValidString(key) && !strings.ContainsFunc(key, text.Hidden)
}

// rank orders the queues of a limit: what has a higher priority is served first.
func (p Priority) rank() int {
	switch p {
	case Critical:
		return 0
	case High:
		return 1
	case Low:
		return 3
	}
	return 2
}

// FullLimit is the limit of work for which the row waits; false if it waits for none.
func (r Row) FullLimit() (l LimitKey, waits bool) {
	list := r.Limits.List()
	if !r.Parked || r.WaitsLimit < 1 || int(r.WaitsLimit) > len(list) {
		return l, false
	}
	return list[r.WaitsLimit-1], true
}

// waiterQueue is the key in the due index of the queue in which the row waits for a permit.
func (r Row) waiterQueue() string {
	list := r.Limits.List()
	if len(list) == 0 { // no transition writes that
		return horizon.Parking(string(r.Tenant), r.Shard)
	}
	l := list[min(int(r.WaitsLimit), len(list))-1]
	return horizon.LimitQueue(string(r.Tenant), l.Name, l.Key, r.Priority.rank())
}

// WaiterQueues are the keys in the due index of the jobs that wait for a permit of a key, in the order in which they
// are served.
func WaiterQueues(t tenant.ID, l LimitKey) []string {
	return WaiterQueuesUpTo(t, l, Low)
}

// WaiterQueuesUpTo are those that are served before a job of that priority, or with it.
func WaiterQueuesUpTo(t tenant.ID, l LimitKey, p Priority) []string {
	var queues []string
	for rank := range p.rank() + 1 {
		queues = append(queues, horizon.LimitQueue(string(t), l.Name, l.Key, rank))
	}
	return queues
}

// ServedBefore reports whether of two jobs that wait for a permit of one key the first is served first: by priority,
// and then by due time.
func ServedBefore(p Priority, dueAt time.Time, id ID, otherP Priority, otherDueAt time.Time, otherID ID) bool {
	return cmp.Or(cmp.Compare(p.rank(), otherP.rank()), dueAt.Compare(otherDueAt), cmp.Compare(id, otherID)) < 0
}

package run

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
)

// A limit has places. A job that is open under it holds one. The places of a limit are spread over buckets: items that
// name their holders. A bucket is one unit to write and names few jobs, so transactions of jobs that end at the same
// time seldom meet, and taking, passing on and giving back a place touch one bucket however wide the limit is.

// permitsPerBucket is how many places share a bucket, at most.
const permitsPerBucket = 8

// Buckets is the number of buckets of a limit of n places.
func Buckets(n int) int { return (n + permitsPerBucket - 1) / permitsPerBucket }

// Bucket is one bucket of a limit's places.
type Bucket struct {
	Key
	Owner string // the mapped node that the limit is of; "" for the run itself
	No    int    // from 0
}

// Ref is where the bucket is.
func (b Bucket) Ref() item.Ref { return b.ref("place#" + b.Owner + "#" + strconv.Itoa(b.No)) }

// Capacity is how many places the bucket has of a limit of n places, when open of them are in use outside of the
// buckets. The sum over all buckets is n − open, and a bucket only grows while open falls.
func (b Bucket) Capacity(n, open int) int {
	buckets := Buckets(n)
	n = max(0, n-open)
	permits := n / buckets
	if b.No < n%buckets {
		permits++
	}
	return permits
}

// holderPrefix begins the attributes of a bucket that name the jobs which hold its places.
const holderPrefix = "h#"

func holder(id job.ID) string { return holderPrefix + string(id) }

// Take gives a place of the bucket, which has that capacity, to a job that holds none of it. It goes in one transaction
// with the job's row.
func (b Bucket) Take(capacity int, to job.ID, now time.Time) item.Write {
	free := item.Cond{Attr: holder(to), Op: item.Missing}
	w := item.Write{
		Ref: b.Ref(), Name: WriteTakeSlot,
		Set: map[string]any{holder(to): int64(1), contract.AttrExpiresAt: keptFrom(now)},
		Add: map[string]int64{"n": 1},
		When: []item.All{
			{free, {Attr: "n", Op: item.Lt, Value: int64(capacity)}}, {free, {Attr: "n", Op: item.Missing}},
		},
	}
	if capacity == 0 {
		w.When = []item.All{{{Attr: "n", Op: item.Exists}, {Attr: "n", Op: item.Missing}}} // never
	}
	return w
}

// Pass gives the place of a job that has ended to another. It goes in one transaction with the other's row.
func (b Bucket) Pass(from, to job.ID) item.Write {
	return item.Write{
		Ref: b.Ref(), Name: WritePassSlot,
		Set:  map[string]any{holder(from): nil, holder(to): int64(1)},
		When: []item.All{{{Attr: holder(from), Op: item.Exists}, {Attr: holder(to), Op: item.Missing}}},
	}
}

// Free gives back the place of a job that has ended. Refused, it holds none.
func (b Bucket) Free(from job.ID) item.Write {
	return item.Write{
		Ref: b.Ref(), Name: WriteFreeSlot, Set: map[string]any{holder(from): nil}, Add: map[string]int64{"n": -1},
		When: []item.All{{{Attr: holder(from), Op: item.Exists}}},
	}
}

// Holders reads from the item of a bucket which jobs hold its places, in order.
func Holders(i item.Item) []job.ID {
	var ids []job.ID
	for name := range i {
		if id, is := strings.CutPrefix(name, holderPrefix); is {
			ids = append(ids, job.ID(id))
		}
	}
	slices.Sort(ids)
	return ids
}

package limit

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

// A job holds one permit of each of its limits while an attempt of it runs. The permits of a key are kept in buckets:
// items that name their holders. A bucket is one unit to write, so taking a permit and giving it back cost the same
// however wide the limit is. The first buckets are full before the next one is used, so a limit that grows only adds
// permits.

// permitsPerBucket is how many permits a bucket has, at most: with that many holders it is still one unit to write.
const permitsPerBucket = 16

// Buckets is the number of buckets of a limit of n permits.
func Buckets(n int) int { return (n + permitsPerBucket - 1) / permitsPerBucket }

// Key is one key of a limit, which counts by itself.
type Key struct {
	Tenant tenant.ID
	job.LimitKey
}

// ref is the item of that name of the key. The key itself comes last: it may hold any character.
func (k Key) ref(name string) item.Ref {
	return item.Ref{Table: contract.Claims, PK: "limit#" + string(k.Tenant) + "#" + k.Name + "#" + name + "#" + k.Key}
}

// Bucket is one bucket of a key's permits.
type Bucket struct {
	Key
	No int // from 0
}

// Ref is where the bucket is.
func (b Bucket) Ref() item.Ref { return b.ref(strconv.Itoa(b.No)) }

// kept is how long an item of a key is kept after it was last written: longer than any attempt.
const kept = 7 * 24 * time.Hour

// capacity is how many permits the bucket has of n.
func (b Bucket) capacity(n int) int {
	return min(max(n-b.No*permitsPerBucket, 0), permitsPerBucket)
}

// holderPrefix begins the attributes of a bucket that name its holders.
const holderPrefix = "h#"

func holder(id job.ID) string { return holderPrefix + string(id) }

// A holder's value is the attempt that holds the permit and when it took it, in seconds: the older the smaller, of one
// attempt.
const attemptShift = 32

func holding(attempt int64, at time.Time) int64 { return attempt<<attemptShift | at.Unix() }

// Holder is a job that holds a permit.
type Holder struct {
	ID      job.ID
	Attempt int64
	Since   time.Time // to the second
	Bucket  int
}

// Permits is what a bucket's item says.
type Permits struct {
	N       int
	Holders []Holder // in the order of their ids
	Epoch   int64
	Absent  bool      // there is no such item
	Mark    time.Time // of the first bucket: when a job was last put among those that wait; zero if none waits
	NextAt  time.Time // of the first bucket: when those that wait are looked at next; zero for no such time
}

// ParseBucket reads the item of a bucket; nil is an empty bucket.
func ParseBucket(i item.Item, no int) Permits {
	p := Permits{
		N: int(i.Int("n")), Epoch: i.Int("epoch"), Absent: i == nil, Mark: i.Time("mark"),
		NextAt: i.Time("next_at"),
	}
	for name, v := range i {
		id, is := strings.CutPrefix(name, holderPrefix)
		if n, isNumber := v.(int64); is && isNumber {
			p.Holders = append(p.Holders, Holder{
				job.ID(id), n >> attemptShift, time.Unix(n&(1<<attemptShift-1), 0).UTC(), no,
			})
		}
	}
	slices.SortFunc(p.Holders, func(a, b Holder) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return p
}

// Take gives a permit of the bucket, which has that capacity of a limit that has no epoch, to an attempt of a job that
// holds none of it. Refused: the bucket is full or frozen, or the job is there.
func (b Bucket) Take(capacity int, to job.ID, attempt int64, now time.Time) item.Write {
	return b.take(capacity, to, attempt, now, item.Cond{Attr: "frozen", Op: item.Missing})
}

// TakePlanned is Take by the plan of an epoch. Refused, too: the bucket is of another epoch.
func (b Bucket) TakePlanned(capacity int, epoch int64, to job.ID, attempt int64, now time.Time) item.Write {
	w := b.take(capacity, to, attempt, now, item.Cond{Attr: "epoch", Op: item.Eq, Value: epoch})
	w.Set["epoch"], w.Set["frozen"] = epoch, int64(1)
	if capacity > 0 { // when the plan was made, nothing had ever been taken of it
		w.When = append(w.When, item.All{{Attr: "n", Op: item.Missing}, {Attr: "epoch", Op: item.Missing}})
	}
	return w
}

// take gives a permit where as holds.
func (b Bucket) take(capacity int, to job.ID, attempt int64, now time.Time, as item.Cond) item.Write {
	free, none := item.Cond{Attr: holder(to), Op: item.Missing}, item.Cond{Attr: "n", Op: item.Missing}
	when := []item.All{{free, as, {Attr: "n", Op: item.Lt, Value: int64(capacity)}}, {free, as, none}}
	if capacity == 0 {
		when = []item.All{{none, {Attr: "n", Op: item.Exists}}} // never
	}
	return item.Write{
		Ref: b.Ref(), Name: WriteTake, Add: map[string]int64{"n": 1}, When: when,
		Set: map[string]any{holder(to): holding(attempt, now), contract.AttrExpiresAt: now.Add(kept).Unix()},
	}
}

// Retake gives a permit that an earlier attempt of the job has left to the next one.
func (b Bucket) Retake(to job.ID, attempt int64, now time.Time) item.Write {
	return item.Write{
		Ref: b.Ref(), Name: WriteTake,
		Set: map[string]any{
			holder(to): holding(attempt, now), contract.AttrExpiresAt: now.Add(kept).Unix(),
		},
		When: []item.All{{{Attr: holder(to), Op: item.Lt, Value: attempt << attemptShift}}},
	}
}

// Free gives back the permit that a job holds for that attempt or an earlier one. Refused, it holds none.
func (b Bucket) Free(from job.ID, attempt int64) item.Write {
	return item.Write{
		Ref: b.Ref(), Name: WriteFree, Set: map[string]any{holder(from): nil}, Add: map[string]int64{"n": -1},
		When: []item.All{{{Attr: holder(from), Op: item.Lt, Value: (attempt + 1) << attemptShift}}},
	}
}

// Freeze keeps any permit of the bucket from being taken until a plan of that epoch is there. Refused: it is frozen, or
// of that epoch, already.
func (b Bucket) Freeze(epoch int64, now time.Time) item.Write {
	return item.Write{
		Ref: b.Ref(), Name: WriteFreeze,
		Set: map[string]any{"epoch": epoch, "frozen": int64(1), contract.AttrExpiresAt: now.Add(kept).Unix()},
		When: []item.All{
			{{Attr: "epoch", Op: item.Missing}}, {{Attr: "epoch", Op: item.Lt, Value: epoch}},
		},
	}
}

// A Plan says how many permits each bucket of a key has in an epoch. It is written once, when all of its buckets are
// frozen, so of two processes that make one, both go by the first.
type Plan struct {
	Epoch int64
	Each  []int // by bucket
}

// PlanRef is where the plan of a key is.
func (k Key) PlanRef() item.Ref { return k.ref("plan") }

// ParsePlan reads a plan; nil is none.
func ParsePlan(i item.Item) Plan {
	p := Plan{Epoch: i.Int("epoch")}
	for _, n := range strings.Fields(i.Str("each")) {
		permits, _ := strconv.Atoi(n)
		p.Each = append(p.Each, permits)
	}
	return p
}

// PutPlan writes a plan. Refused: there is one of its epoch, or of a newer one.
func (k Key) PutPlan(p Plan, now time.Time) item.Write {
	each := make([]string, len(p.Each))
	for n, permits := range p.Each {
		each[n] = strconv.Itoa(permits)
	}
	return item.Write{
		Ref: k.PlanRef(), Name: WritePlan,
		Set: map[string]any{
			"epoch": p.Epoch, "each": strings.Join(each, " "),
			contract.AttrExpiresAt: now.AddDate(100, 0, 0).Unix(), // never
		},
		When: []item.All{{{Attr: "epoch", Op: item.Missing}}, {{Attr: "epoch", Op: item.Lt, Value: p.Epoch}}},
	}
}

// Share gives out n permits over buckets that are frozen and have so many holders, which only become fewer. The permits
// that it gives, and those that are held beyond them, are n at most. nil: as many as n are held already, so none can be
// given out until some are given back.
func Share(held []int, n int) []int {
	left := n
	for _, h := range held {
		left -= h
	}
	if left <= 0 {
		return nil
	}
	each := slices.Clone(held)
	for b := range each {
		more := min(max(permitsPerBucket-each[b], 0), left)
		each[b] += more
		left -= more
	}
	return each
}

// Standard is how many permits each bucket has of a limit of n, unless a plan says otherwise.
func Standard(n int) []int {
	each := make([]int, Buckets(n))
	for no := range each {
		each[no] = Bucket{No: no}.capacity(n)
	}
	return each
}

// Holds reports whether a job holds a permit of the bucket.
func (p Permits) Holds(id job.ID) bool {
	return slices.ContainsFunc(p.Holders, func(h Holder) bool { return h.ID == id })
}

package job

import (
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
)

// A job that comes after others is BLOCKED from the start. Its row names them, as package dag writes
// them, and has a wake-up of its own. Each of them has an attached entry that names the job, and their rows
// say that they are followed: the process that ends one notifies those whose entries it finds.

// entryPrefix begins the name of an entry, which goes on with the id of the job that waits.
const entryPrefix = "after#"

// entryRange is where the entries of a job lie; '$' comes after '#'.
func (k Key) entryRange() (first, end item.Ref) {
	return k.ContentRef(entryPrefix), k.ContentRef(strings.TrimSuffix(entryPrefix, "#") + "$")
}

// Followers asks for the entries of the jobs that come after k.
func (k Key) Followers(limit int) item.Query {
	first, end := k.entryRange()
	return item.Query{
		Table: contract.Jobs, PK: first.PK, From: first.SK, To: end.SK, Limit: limit, Consistent: true,
	}
}

// FollowerOf is the job of an entry of parent.
func FollowerOf(parent Key, i item.Item) (Key, error) {
	_, name, _ := strings.Cut(i.Str(contract.AttrJobID), "#")
	id, err := ParseID(strings.TrimPrefix(name, entryPrefix))
	return Key{Tenant: parent.Tenant, ID: id}, err
}

// PutFollower writes the entry of a job that comes after parent. It outlives every wait, and goes as soon
// as the job was notified.
func PutFollower(parent, child Key, now time.Time) item.Write {
	ref := parent.ContentRef(entryPrefix + string(child.ID))
	return item.Write{Ref: ref, Name: WriteFollowerPut, Put: item.Item{
		contract.AttrPK: ref.PK, contract.AttrJobID: ref.SK, contract.AttrExpiresAt: now.Add(contentKept).Unix(),
	}}
}

// DeleteFollower takes the entry back.
func DeleteFollower(parent, child Key) item.Write {
	return item.Write{Ref: parent.ContentRef(entryPrefix + string(child.ID)), Name: WriteFollowerDelete, Delete: true}
}

// Follow marks a job that has not ended as one that others come after: the process that ends it notifies them.
func Follow(parent Key) item.Write {
	set := map[string]any{"followed": "1"}
	return item.Write{Ref: parent.Ref(), Name: WriteFollow, When: from(WriteFollow), Set: set}
}

// followedAsRead refuses the end of a job that another process has begun to follow since it was read: its row
// would not say that they are to be notified.
func followedAsRead(r Row) item.Cond {
	if r.Followed {
		return item.Cond{Attr: "followed", Op: item.Exists}
	}
	return item.Cond{Attr: "followed", Op: item.Missing}
}

// Release makes a job due whose parents have ended as its rule asks. parents is what is known of them by
// now. send says whether the writer must send the firing itself.
func Release(r Row, due time.Time, parents string, now time.Time) (after Row, w item.Write, send bool) {
	after = r
	after.Status, after.DueAt, after.Parents = Scheduled, due, parents
	if after.ExpireAfter > 0 {
		after.ExpiryAt = due.Add(after.ExpireAfter)
	}
	send = Route(&after, now)
	return after, change(WriteRelease, r, after, from(WriteRelease, atVersion(r.Version))), send
}

// EndBlocked ends a job whose parents have not ended as its rule asks.
func EndBlocked(r Row, s Status, why Reason, parents string, now time.Time) (Row, item.Write) {
	after := r
	after.Reason, after.Parents = why, parents
	finish(&after, s, now)
	return after, change(WriteEndBlocked, r, after, from(WriteEndBlocked, followedAsRead(r)))
}

// EditBlocked edits a job that still waits. When it is due is said by parents; e has no time. The write
// goes in one transaction with the items of the new payload and labels. No firing was sent, so there is
// nothing to fence.
func EditBlocked(r Row, e Edit, parents string) (Row, item.Write) {
	after := r
	after.Version++
	after.Parents = parents
	e.applySettings(&after)
	e.apply(&after)
	return after, change(WriteEditBlocked, r, after, from(WriteEditBlocked, atVersion(r.Version)))
}

// KeepBlocked gives a job that still waits its next wake-up, and keeps what is known of its parents: the
// table may forget one that has ended before the last has ended.
func KeepBlocked(r Row, parents string, now time.Time) (Row, item.Write) {
	after := r
	after.Parents, after.WakeAt, after.Postponed = parents, now.Add(Postpone(r.Postponed)), r.Postponed+1
	return after, change(WriteKeepBlocked, r, after, from(WriteKeepBlocked, atVersion(r.Version), wakeAsRead(r)))
}

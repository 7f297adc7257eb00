package job

import (
	"fmt"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Unique is the key that at most one open job of a tenant holds; the zero Unique is no key.
type Unique struct {
	Key        string     `json:"key"`
	Until      Until      `json:"until"`
	OnConflict OnConflict `json:"on_conflict"`
}

// Until is how long a job holds its unique key.
type Until string

// A job holds its key until it has ended, or until it has started.
const (
	UntilDone    Until = "done"
	UntilStarted Until = "started"
)

// OnConflict is what becomes of a job whose unique key another job holds.
type OnConflict string

// The other job is returned, the new one is refused, or the other one takes the fields of the new one.
const (
	ConflictReturn  OnConflict = "return"
	ConflictReject  OnConflict = "reject"
	ConflictReplace OnConflict = "replace"
)

// The values that a request may have.
var (
	Untils      = []Until{UntilDone, UntilStarted}
	OnConflicts = []OnConflict{ConflictReturn, ConflictReject, ConflictReplace}
)

// IsUniqueKey reports whether a text can be the unique key of a job.
func IsUniqueKey(key string) bool { return isKey(key, contract.MaxUniqueKey) }

// HoldsKey reports whether the row has its unique key to itself, by the claim that was read after it. A row that is
// final never holds it again, and neither does one that holds it until its start and whose start was marked: so the
// answer false stays true, and no write frees a key.
func (r Row) HoldsKey(c Claim) bool {
	if r.Unique.Key == "" || r.Status == "" || r.Status.Final() {
		return false
	}
	begun := r.Attempt > 1 || c.Attempt > r.Attempt || c.Begun > 0 || !r.StartedAt.IsZero()
	return r.Unique.Until != UntilStarted || !begun
}

// TakesKeyWhenDue reports whether the row takes its unique key just before it starts: a job of a schedule, which is
// made long before it falls due. Any other job takes it in the transaction that puts its row.
func (r Row) TakesKeyWhenDue() bool { return r.Unique.Key != "" && r.Schedule() != "" }

// MarksStart reports whether the start of the row's attempt is marked on its claim before it happens, because the
// unique key is free from then on.
func (r Row) MarksStart() bool { return r.Unique.Until == UntilStarted && r.Attempt == 1 }

// uniqueKept is how long after its holder was due a key is kept at least. A job may wait for the end of a pause or for
// its retries meanwhile; its contents are kept no longer.
const uniqueKept = contract.MaxAhead + contract.MaxAttempts*(contract.MaxRetryDelay+contract.MaxTimeoutLong) +
	contract.DeadKept

// UniqueRef is where the holder of a key is kept. The key comes last, as it may have any character.
func UniqueRef(t tenant.ID, key string) item.Ref {
	return item.Ref{Table: contract.Claims, PK: "unique#" + string(t) + "#" + key}
}

const attrHolder = "job"

// TakeKey gives the row its unique key. gone is the job that was read as its holder and does not hold it; "" for none.
// Refused means that another job was faster, or that gone was not read at last.
func TakeKey(r Row, gone ID, now time.Time) item.Write {
	w := keepKey(r, now)
	w.Name, w.When = WriteUniqueTake, append(w.When, item.All{{Attr: contract.AttrPK, Op: item.Missing}})
	if gone != "" {
		w.When = append(w.When, item.All{{Attr: attrHolder, Op: item.Eq, Value: string(gone)}})
	}
	return w
}

// keepKey has the row keep the unique key that it holds for as long as it may need it.
func keepKey(r Row, now time.Time) item.Write {
	ref, until := UniqueRef(r.Tenant, r.Unique.Key), r.DueAt
	if until.Before(now) {
		until = now
	}
	return item.Write{
		Ref: ref, Name: WriteUniqueKeep,
		Put: item.Item{contract.AttrPK: ref.PK, attrHolder: string(r.ID),
			contract.AttrExpiresAt: until.Add(uniqueKept).Unix()},
		When: []item.All{{{Attr: attrHolder, Op: item.Eq, Value: string(r.ID)}}},
	}
}

// KeepKey lets the key of a row live long enough that was edited to a later time; c is its claim as read. false: it
// does already, or the row holds none. It goes in one transaction with the edit.
func KeepKey(r Row, c Claim, now time.Time) (w item.Write, needed bool) {
	if !r.HoldsKey(c) || r.TakesKeyWhenDue() || !r.DueAt.After(r.CreatedAt.Add(contract.MaxAhead)) {
		return w, false
	}
	return keepKey(r, now), true
}

// HolderOf is the job that an item at UniqueRef names; "" for no item.
func HolderOf(i item.Item) ID { return ID(i.Str(attrHolder)) }

// NotUnique says, in a sentence, which job holds the unique key that another job wants.
func NotUnique(holder ID, key string) string {
	return fmt.Sprintf("job %s holds the unique key %s", holder, text.Quoted(key))
}

package operation

import (
	"fmt"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
)

// PageRef is where a page of the ids of an operation's rows is.
func (k Key) PageRef(n int) item.Ref {
	return item.Ref{Table: contract.Tasks, PK: "operation-rows#" + string(k.Tenant) + "#" + string(k.ID),
		SK: fmt.Sprintf("%06d", n)}
}

// PutPage writes a page of ids, each of which has the length of a ULID. It goes in one transaction with the operation.
func (k Key) PutPage(n int, ids []job.ID, now time.Time) item.Write {
	ref := k.PageRef(n)
	var all strings.Builder
	for _, id := range ids {
		all.WriteString(string(id))
	}
	return item.Write{Ref: ref, Name: WritePage, Put: item.Item{
		contract.AttrPK: ref.PK, contract.AttrSK: ref.SK, "ids": all.String(),
		contract.AttrExpiresAt: now.Add(PagesKept).Unix(),
	}}
}

// idLength is how many characters an id has.
const idLength = 26

// ParsePage reads the ids of a page. A page that is gone is a fault.NotFound.
func ParsePage(i item.Item) ([]job.ID, error) {
	if i == nil {
		return nil, fault.New(fault.NotFound, nil, "reading the rows of an operation")
	}
	all := i.Str("ids")
	if len(all)%idLength != 0 || all == "" {
		return nil, fault.New(fault.Undecodable, nil, "reading the rows of an operation")
	}
	ids := make([]job.ID, 0, len(all)/idLength)
	for ; all != ""; all = all[idLength:] {
		ids = append(ids, job.ID(all[:idLength]))
	}
	return ids, nil
}

// Pages returns the writes of the pages that new ids go to, after count that are noted already, of which last are on
// the last page that is not full.
func (k Key) Pages(count int, last, ids []job.ID, now time.Time) (writes []item.Write, rest []job.ID) {
	rest = append(append(rest, last...), ids...)
	for n := count / PageRows; len(rest) > 0; n++ {
		on := rest[:min(len(rest), PageRows)]
		writes = append(writes, k.PutPage(n, on, now))
		if len(on) < PageRows {
			return writes, on
		}
		rest = rest[len(on):]
	}
	return writes, nil
}

package audit

import (
	"encoding/json"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Via is how a caller has shown who they are.
type Via string

// The ways to show it.
const (
	ViaToken     Via = "token"
	ViaSignature Via = "signature"
	ViaLaptop    Via = "laptop" // no sign-in is needed there
)

// Actor is who made a change.
type Actor struct {
	Subject string `json:"sub"`
	Via     Via    `json:"via"`
}

// Entry is a change that a caller made.
type Entry struct {
	At        time.Time
	Tenant    tenant.ID
	Actor     Actor
	Action    Action
	Resource  string // kind and name, such as schedule/morning
	RequestID string
	Reason    string // that the caller gave; "" for none
	Changes   []Change
	More      int // changes beyond MaxChanges, which are left out
}

// written is an entry in the table, and in the log group.
type written struct {
	At        string    `json:"at"`
	Tenant    tenant.ID `json:"tenant_id"`
	Actor     Actor     `json:"actor"`
	Action    Action    `json:"action"`
	Resource  string    `json:"resource"`
	RequestID string    `json:"request_id"`
	Reason    string    `json:"reason,omitempty"`
	Changes   []Change  `json:"changes"`
	More      int       `json:"more_changes,omitempty"`
}

// dayLayout and timeLayout make the keys of an entry: a partition for each day of a tenant, in the order of time.
const (
	dayLayout  = time.DateOnly
	timeLayout = "15:04:05.000"
)

// Partition is where the entries of one day of a tenant are, in UTC.
func Partition(t tenant.ID, day time.Time) string {
	return "audit#" + string(t) + "#" + day.UTC().Format(dayLayout)
}

// SortFrom is the sort key from which the entries of a time begin, in the partition of its day.
func SortFrom(at time.Time) string { return at.UTC().Format(timeLayout) }

// write returns the write of an entry. No two entries have the same id; a repeated write changes nothing.
func (e Entry) write(id string, kept time.Duration) item.Write {
	ref := item.Ref{Table: contract.Audit, PK: Partition(e.Tenant, e.At), SK: SortFrom(e.At) + "#" + id}
	body := text.MustJSON(written{
		At: e.At.UTC().Format(text.InstantLayout), Tenant: e.Tenant, Actor: e.Actor, Action: e.Action,
		Resource: e.Resource, RequestID: e.RequestID, Reason: e.Reason, Changes: append([]Change{}, e.Changes...),
		More: e.More,
	})
	return item.Write{Ref: ref, Name: WriteEntry, Put: item.Item{
		contract.AttrPK: ref.PK, contract.AttrSK: ref.SK, contract.AttrEntry: string(body),
		contract.AttrExpiresAt: e.At.Add(kept).Unix(),
	}}
}

// Parse decodes an entry.
func Parse(i item.Item) (Entry, error) {
	var w written
	err := json.Unmarshal([]byte(i.Str(contract.AttrEntry)), &w)
	at, wrong := time.Parse(text.InstantLayout, w.At)
	if err != nil || wrong != nil {
		return Entry{}, fault.New(fault.Undecodable, err, "reading entry %s of the audit", i.Str(contract.AttrSK))
	}
	return Entry{At: at, Tenant: w.Tenant, Actor: w.Actor, Action: w.Action, Resource: w.Resource,
		RequestID: w.RequestID, Reason: w.Reason, Changes: w.Changes, More: w.More}, nil
}

// Filter selects entries; zero values select all.
type Filter struct {
	Actor    string // its subject
	Action   Action
	Resource string // itself, or what it is part of: run/ID also selects its nodes
}

// Selects reports whether the filter selects an entry.
func (f Filter) Selects(e Entry) bool {
	within := e.Resource == f.Resource || strings.HasPrefix(e.Resource, f.Resource+"/")
	return (f.Actor == "" || e.Actor.Subject == f.Actor) && (f.Action == "" || e.Action == f.Action) &&
		(f.Resource == "" || within)
}

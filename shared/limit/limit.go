package limit

import (
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// Policy says what becomes of a job whose key has no permit for it.
type Policy string

// The policies.
const (
	Wait         Policy = "wait"          // it waits, behind those that waited before
	Skip         Policy = "skip"          // it ends as skipped
	CancelOldest Policy = "cancel_oldest" // the job that runs longest is asked to stop, and it waits
)

// Policies lists the policies, the default first.
var Policies = []Policy{Wait, Skip, CancelOldest}

// Rate is how many attempts may start in any window of the length Per. The zero Rate is no bound.
type Rate struct {
	Count int
	Per   time.Duration
}

// Limit bounds the jobs of each key that names it.
type Limit struct {
	Tenant     tenant.ID
	Name       string
	MaxRunning int // at a time; 0: no bound
	Rate       Rate
	WhenFull   Policy
	Version    int64 // grows with every change
	CreatedAt  time.Time
	UpdatedAt  time.Time

	// Widest is the largest MaxRunning that the limit ever had: permits may be held in as many buckets.
	Widest int
	// Epoch is when the permits of the limit were last given out anew, in Unix milliseconds; 0 if they never were.
	// Before a permit of another epoch's bucket is taken, the buckets of its key are brought into this one.
	Epoch int64
	// Deleted says that only this note is left, for a limit of the same name that is made later.
	Deleted bool
}

// body is what is stored of a limit.
type body struct {
	MaxRunning int    `json:"max_running,omitempty"`
	Count      int    `json:"count,omitempty"`
	PerMS      int64  `json:"per_ms,omitempty"`
	WhenFull   Policy `json:"when_full"`
	Created    int64  `json:"created_at"`
	Updated    int64  `json:"updated_at"`
	Widest     int    `json:"widest,omitempty"`
	Epoch      int64  `json:"epoch,omitempty"`
	Deleted    bool   `json:"deleted,omitempty"`
}

// ListKey is the partition of a tenant's limits, in the order of their names.
func ListKey(t tenant.ID) string { return "limit#" + string(t) }

// Ref is where a tenant's limit of that name is.
func Ref(t tenant.ID, name string) item.Ref {
	return item.Ref{Table: contract.Tasks, PK: ListKey(t), SK: name}
}

// Item encodes the limit.
func (l Limit) Item() item.Item {
	b := text.MustJSON(body{l.MaxRunning, l.Rate.Count, l.Rate.Per.Milliseconds(), l.WhenFull,
		l.CreatedAt.UnixMilli(), l.UpdatedAt.UnixMilli(), l.Widest, l.Epoch, l.Deleted})
	ref := Ref(l.Tenant, l.Name)
	return item.Item{contract.AttrPK: ref.PK, contract.AttrSK: ref.SK, "body": string(b), "version": l.Version}
}

// Parse decodes what Item encoded, of a tenant.
func Parse(i item.Item, t tenant.ID) (Limit, error) {
	var b body
	l := Limit{Tenant: t, Name: i.Str(contract.AttrSK), Version: i.Int("version")}
	if err := text.Read([]byte(i.Str("body")), &b); err != nil {
		return l, fault.New(fault.Undecodable, err, "reading limit %q", l.Name)
	}
	l.MaxRunning, l.Rate = b.MaxRunning, Rate{b.Count, time.Duration(b.PerMS) * time.Millisecond}
	l.WhenFull, l.Widest, l.Epoch, l.Deleted = b.WhenFull, b.Widest, b.Epoch, b.Deleted
	l.CreatedAt, l.UpdatedAt = time.UnixMilli(b.Created).UTC(), time.UnixMilli(b.Updated).UTC()
	return l, nil
}

// SameBounds reports whether another limit bounds jobs as this one does.
func (l Limit) SameBounds(as Limit) bool {
	return l.MaxRunning == as.MaxRunning && l.Rate == as.Rate && l.WhenFull == as.WhenFull
}

// Becomes is the limit after a change of its bounds, or after it is made (was is the zero Limit, or a deleted one). A
// change that could let more than MaxRunning hold a permit, as they were given out otherwise before, begins an epoch.
func (l Limit) Becomes(was Limit, now time.Time) Limit {
	l.Version, l.Widest, l.Epoch = was.Version+1, max(was.Widest, l.MaxRunning), was.Epoch
	l.UpdatedAt, l.CreatedAt, l.Deleted = now, was.CreatedAt, false
	if was.Version == 0 || was.Deleted {
		l.CreatedAt = now
	}
	lowered := l.MaxRunning < was.Widest
	if Buckets(l.Widest) > 1 && (lowered || was.Epoch > 0) && (l.MaxRunning != was.MaxRunning || was.Deleted) {
		l.Epoch = max(now.UnixMilli(), was.Epoch+1)
	}
	return l
}

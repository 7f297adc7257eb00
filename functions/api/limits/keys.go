package limits

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"punctual/functions/api/rest"
	"punctual/shared/limit"
	"punctual/shared/store"
	"punctual/shared/tenant"
)

// Bounds of the work for a list of keys.
const (
	// KeysRead is how many keys of a limit are read.
	KeysRead = 1000
	// KeysShown is how many of them are listed. Only of these the jobs that wait are counted.
	KeysShown = 200
	// itemsRead bounds the items that are read. A limit that is wide keeps each key in many.
	itemsRead = 5000
)

type limitKeyView struct {
	Key            *string      `json:"key" doc:"Key; null for the jobs without one"`
	Running        int          `json:"running" doc:"Number of jobs that run, or are about to"`
	Waiting        int          `json:"waiting" doc:"Number of jobs that wait, counted up to {=waiters}"`
	StartsInWindow *int         `json:"starts_in_window,omitempty" doc:"Number of starts that count in the window now; absent without a rate"`
	NextStartAt    rest.Instant `json:"next_start_at,omitzero" doc:"Time from which the rate lets the next job start; absent without a rate"`
}

type keysInput struct {
	rest.Named
	rest.Paging
}

// use is how much of a key is used.
type use struct {
	store.LimitUse
	waiting int
	share   float64 // of what the limit allows
}

func (s *Handler) listKeys(
	ctx context.Context, who tenant.Identity, in *keysInput, after string, most int,
) (page rest.Found[limitKeyView], err error) {
	l, err := s.find(ctx, who.Tenant, in.Name)
	if err != nil {
		return page, err
	}
	now := s.Now()
	uses, err := s.busiest(ctx, l, now)
	if err != nil {
		return page, err
	}
	from := min(int(rest.CursorNumber(after)), len(uses))
	to := min(from+most, len(uses))
	for _, u := range uses[from:to] {
		page.Items = append(page.Items, viewKey(l, u, now))
	}
	if to < len(uses) {
		page.Next = strconv.Itoa(to)
	}
	return page, nil
}

// busiest returns the keys of a limit that are used most, busiest first.
func (s *Handler) busiest(ctx context.Context, l limit.Limit, now time.Time) ([]use, error) {
	read := max(1, min(KeysRead, itemsRead/(limit.Buckets(l.Widest)+1)))
	keys, _, err := s.Store.LimitKeys(ctx, l.Tenant, l.Name, read)
	if err != nil {
		return nil, err
	}
	found, err := s.Store.LimitUses(ctx, l, keys)
	if err != nil {
		return nil, err
	}
	uses := make([]use, len(found))
	for n, u := range found {
		uses[n] = use{LimitUse: u, share: share(l, u, now)}
	}
	slices.SortFunc(uses, busier)
	uses = uses[:min(len(uses), KeysShown)]
	keys = make([]limit.Key, len(uses))
	for n, u := range uses {
		keys[n] = u.Key
	}
	waiting, err := s.Read.Waiting(ctx, keys)
	for n := range waiting {
		uses[n].waiting = waiting[n]
	}
	slices.SortFunc(uses, busier)
	return uses, err
}

// share is the part of what a limit allows that a key uses.
func share(l limit.Limit, u store.LimitUse, now time.Time) (part float64) {
	if l.MaxRunning > 0 {
		part = float64(u.Running) / float64(l.MaxRunning)
	}
	if l.Rate.Count > 0 {
		part = max(part, float64(u.Window.Started(l.Rate, now))/float64(l.Rate.Count))
	}
	return part
}

func busier(a, b use) int {
	return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(b.Running+b.waiting, a.Running+a.waiting),
		strings.Compare(a.Key.Key, b.Key.Key))
}

func viewKey(l limit.Limit, u use, now time.Time) limitKeyView {
	v := limitKeyView{Running: u.Running, Waiting: u.waiting}
	if u.Key.Key != "" {
		v.Key = &u.Key.Key
	}
	if l.Rate.Count > 0 {
		v.StartsInWindow = new(u.Window.Started(l.Rate, now))
		v.NextStartAt = rest.At(u.Window.Next(l.Rate, now))
	}
	return v
}

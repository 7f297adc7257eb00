package audit

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"punctual/shared/document"
	"punctual/shared/item"
	"punctual/shared/text"
)

// Intent is the entry of a request until its change is written. A nil Intent takes everything and keeps nothing: a
// change that no caller made has no entry. It is safe for concurrent use.
type Intent struct {
	mu       sync.Mutex
	entry    Entry
	id       string
	kept     time.Duration
	from, to json.RawMessage // what changes
	done     bool
}

// NewIntent returns the intent of a request. id differs from that of any other; kept is how long the entry is.
func NewIntent(e Entry, id string, kept time.Duration) *Intent {
	return &Intent{entry: e, id: id, kept: kept}
}

type intentKey struct{}

// With returns a context whose change leaves that entry.
func With(ctx context.Context, i *Intent) context.Context {
	return context.WithValue(ctx, intentKey{}, i)
}

// Without returns a context for what a request does besides its change: it leaves no entry.
func Without(ctx context.Context) context.Context { return With(ctx, nil) }

// From returns the intent of a context; nil for none.
func From(ctx context.Context) *Intent {
	i, _ := ctx.Value(intentKey{}).(*Intent)
	return i
}

// Action returns what the request does; "" for nil.
func (i *Intent) Action() Action {
	if i == nil {
		return ""
	}
	return i.entry.Action
}

// Asked notes the body of the request: its reason, and its other fields as changes unless Changed says more.
func (i *Intent) Asked(body json.RawMessage) {
	fields, ok := document.Fields(body)
	if i == nil || !ok {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.entry.Reason = reasonOf(fields)
	delete(fields, "reason")
	if i.to = nil; len(fields) > 0 {
		i.to = document.EncodeObject(fields)
	}
}

// Changed notes what the change makes of what there is, in place of what was noted before; nil is nothing. It is called
// for each decision, because another writer may come first.
func (i *Intent) Changed(from, to any) {
	if i == nil {
		return
	}
	was, is := encoded(from), encoded(to)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.from, i.to = was, is
}

// encoded returns a value as JSON; nil if it has none.
func encoded(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	body, err := text.JSON(v)
	if err != nil {
		return nil
	}
	return body
}

// Names says what the change is about, where the path of the request does not.
func (i *Intent) Names(resource string) {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.entry.Resource = resource
}

// Write returns the write of the entry; false if it is written already, or nil.
func (i *Intent) Write() (item.Write, bool) {
	if i == nil {
		return item.Write{}, false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.done {
		return item.Write{}, false
	}
	e := i.entry
	e.Changes, e.More = differences(i.from, i.to)
	return e.write(i.id, i.kept), true
}

// Written says that the entry is written: what the request changes from now on belongs to it.
func (i *Intent) Written() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.done = true
}

// IsWritten reports whether it is; true for nil.
func (i *Intent) IsWritten() bool {
	if i == nil {
		return true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.done
}

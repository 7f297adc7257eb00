package limit

import (
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
)

// The process that gives back a permit has to know whether a job waits for it: the first bucket of a key has a mark of
// that. It is written after a job was put among those that wait, and removed once an index that is read later shows
// none.

// Head is the first bucket of the key.
func (k Key) Head() Bucket { return Bucket{Key: k} }

// MarkWaiting notes that a job waits for a permit of the key.
func (k Key) MarkWaiting(now time.Time) item.Write {
	return item.Write{
		Ref: k.Head().Ref(), Name: WriteMark,
		Set: map[string]any{"mark": now.UnixMilli(), contract.AttrExpiresAt: now.Add(kept).Unix()},
	}
}

// Unmark notes that none waits any more, if no other one was put there since the mark was read.
func (k Key) Unmark(seen time.Time) item.Write {
	return item.Write{
		Ref: k.Head().Ref(), Name: WriteUnmark, Set: map[string]any{"mark": nil},
		When: []item.All{{{Attr: "mark", Op: item.Eq, Value: seen.UnixMilli()}}},
	}
}

// RecheckAt notes that those that wait are looked at at that time. Refused: they are by then.
func (k Key) RecheckAt(at, now time.Time) item.Write {
	return item.Write{
		Ref: k.Head().Ref(), Name: WriteRecheck,
		Set: map[string]any{"next_at": at.UnixMilli(), contract.AttrExpiresAt: at.Add(kept).Unix()},
		When: []item.All{
			{{Attr: "next_at", Op: item.Missing}}, {{Attr: "next_at", Op: item.Lt, Value: now.UnixMilli()}},
			{{Attr: "next_at", Op: item.Gt, Value: at.UnixMilli()}},
		},
	}
}

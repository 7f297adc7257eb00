package store

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
)

func system(kind, name string) item.Ref {
	return item.Ref{Table: contract.Tasks, PK: "system#" + kind, SK: name}
}

// Watermark says which of the two passes a mark is of. A mark is a hint, never a proof.
type Watermark string

// The two watermarks of every shard.
const (
	Promoted Watermark = "promoted" // ahead, at the horizon
	Swept    Watermark = "swept"    // behind, at the grace
)

// Mark says how far a shard's pass has come.
type Mark struct {
	At     time.Time   // the slices up to this minute were visited; zero: none ever
	Behind []time.Time // minutes up to At that could not be handled whole, oldest first
}

// Whole is how far the shard has come without a gap.
func (m Mark) Whole() time.Time {
	if len(m.Behind) == 0 {
		return m.At
	}
	return m.Behind[0].Add(-time.Minute)
}

// Passed is the mark after a pass that came to at, handled the minutes done after all, and could
// not handle those that failed. A mark that is further ahead stays there.
//
// What is behind is listed, so that a slice which fails costs each pass one visit and not that
// of all the minutes since. With too many the mark stays where it is, and the next pass walks
// them again.
func (m Mark) Passed(at time.Time, done, failed []time.Time) Mark {
	isDone := func(t time.Time) bool { return slices.ContainsFunc(done, t.Equal) }
	left := slices.DeleteFunc(slices.Clone(m.Behind), isDone)
	behind := slices.Concat(left, failed)
	slices.SortFunc(behind, time.Time.Compare)
	behind = slices.CompactFunc(behind, time.Time.Equal)
	if len(behind) > maxBehind || at.Before(m.At) {
		at = m.At
	}
	if len(behind) > maxBehind {
		behind = slices.DeleteFunc(behind, func(t time.Time) bool { return t.After(m.At) })
	}
	return Mark{At: at, Behind: behind}
}

// maxBehind is a day of minutes: a mark of about 13 KB.
const maxBehind = 24 * 60

func (m Mark) behind() string {
	minutes := make([]string, len(m.Behind))
	for n, t := range m.Behind {
		minutes[n] = strconv.FormatInt(t.Unix()/60, 10)
	}
	return strings.Join(minutes, ",")
}

// parseMark reads a mark. What of it cannot be read counts as absent: the pass begins as if it
// never ran, and writes the mark anew.
func parseMark(i item.Item) Mark {
	m := Mark{At: i.Time("at")}
	for text := range strings.SplitSeq(i.Str("behind"), ",") {
		if minute, err := strconv.ParseInt(text, 10, 64); err == nil {
			m.Behind = append(m.Behind, time.Unix(60*minute, 0).UTC())
		}
	}
	return m
}

func markRef(w Watermark, shard int) item.Ref { return system(string(w), strconv.Itoa(shard)) }

// Watermark implements MarkReader.
func (s *Store) Watermark(ctx context.Context, w Watermark, shard int) (Mark, error) {
	i, err := s.table.Get(ctx, markRef(w, shard))
	return parseMark(i), err
}

// SetWatermark moves a watermark forward; one that is further ahead stays.
func (s *Store) SetWatermark(ctx context.Context, w Watermark, shard int, at time.Time) error {
	return s.Pass(ctx, w, shard, at, nil, nil)
}

// blindFrom is the try from which a mark that cannot be read is written over, whatever it is.
const blindFrom = 4

// Pass implements Marks.
func (s *Store) Pass(ctx context.Context, w Watermark, shard int, at time.Time, done, failed []time.Time) error {
	write := item.Write{Ref: markRef(w, shard), Name: "watermark." + string(w)}
	if len(done)+len(failed) == 0 {
		write.Set = map[string]any{"at": at.UnixMilli()}
		write.When = []item.All{{{Attr: "at", Op: item.Missing}}, {{Attr: "at", Op: item.Lt, Value: at.UnixMilli()}}}
		err := s.Put(ctx, write)
		refused := Refused(err)
		if refused == nil {
			return err
		}
		if _, readable := refused.Olds[0]["at"].(int64); readable {
			return nil
		}
	}
	raw := func(i item.Item) (item.Item, error) { return i, nil }
	decided := 0
	_, err := update(ctx, s.table, write.Ref, string(w)+" mark of shard "+strconv.Itoa(shard), raw,
		func(i item.Item) ([]item.Write, error) {
			next := parseMark(i).Passed(at, done, failed)
			write.Set = map[string]any{"at": nil, "behind": nil}
			if !next.At.IsZero() {
				write.Set["at"] = next.At.UnixMilli()
			}
			if text := next.behind(); text != "" {
				write.Set["behind"] = text
			}
			write.When = []item.All{{is(i, "at"), is(i, "behind")}}
			decided++
			if _, readable := i["at"].(int64); !readable && decided >= blindFrom {
				write.When = nil // of a type that no condition of ours knows: it can only be written over
			}
			return []item.Write{write}, nil
		})
	return err
}

// is asks that an attribute still is what it was read to be.
func is(i item.Item, attr string) item.Cond {
	if v, there := i[attr]; there {
		return item.Cond{Attr: attr, Op: item.Eq, Value: v}
	}
	return item.Cond{Attr: attr, Op: item.Missing}
}

// Shards implements Shards.
func (s *Store) Shards(ctx context.Context, n int) (int, error) {
	write := item.Write{
		Ref: system("setting", "shards"), Name: WriteSettingShards, Set: map[string]any{"n": int64(n)},
		When: []item.All{{{Attr: "n", Op: item.Missing}}, {{Attr: "n", Op: item.Lt, Value: int64(n)}}},
	}
	err := s.Put(ctx, write)
	refused := Refused(err)
	if refused == nil {
		return n, err
	}
	if recorded, readable := refused.Olds[0]["n"].(int64); readable {
		return int(recorded), nil
	}
	write.When = nil
	return n, s.Put(ctx, write)
}

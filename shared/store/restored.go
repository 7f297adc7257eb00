package store

import (
	"context"
	"strings"
	"sync"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
)

// The note of the tables says which table had each guarded name when it was last let run: attributes
// named like the tables, with their ids. An operator writes an id there to let a restored table run;
// infra/runbook/restore.md has the command.
func tablesRef() item.Ref { return system("setting", "tables") }

// attrHeld of that note lists what the passes hold everything for, with commas between.
const attrHeld = "held"

// Restored implements RestoredTables.
func (s *Store) Restored(ctx context.Context) ([]string, error) {
	_, _, held, err := s.tables(ctx)
	return held, err
}

// Recognize implements Recognizer.
func (s *Store) Recognize(ctx context.Context) ([]string, error) {
	note, fresh, held, err := s.tables(ctx)
	if err != nil {
		return nil, err
	}
	for _, table := range contract.Guarded { // in that order, so that two passes go the same way
		id, isFresh := fresh[table]
		if !isFresh {
			continue
		}
		err := s.Put(ctx, item.Write{
			Ref: tablesRef(), Name: WriteSettingTables, Set: map[string]any{table: id},
			When: []item.All{{{Attr: table, Op: item.Missing}}},
		})
		if err != nil && Refused(err) == nil { // refused: another pass was first
			return nil, err
		}
	}
	if text := strings.Join(held, ","); text != note.Str(attrHeld) {
		write := item.Write{Ref: tablesRef(), Name: WriteSettingHeld, Set: map[string]any{attrHeld: text}}
		if text == "" {
			write.Set[attrHeld] = nil
		}
		if err := s.Put(ctx, write); err != nil {
			return nil, err
		}
	}
	return held, nil
}

// Held implements RestoredTables.
func (s *Store) Held(ctx context.Context) ([]string, error) {
	note, err := s.table.Get(ctx, tablesRef())
	if err != nil || note.Str(attrHeld) == "" {
		return nil, err
	}
	return strings.Split(note.Str(attrHeld), ","), nil
}

// tables compares the note with the tables that there are: fresh are those that it does not know, with
// their ids, held those that were restored.
func (s *Store) tables(ctx context.Context) (note item.Item, fresh map[string]string, held []string, err error) {
	if note, err = s.table.Get(ctx, tablesRef()); err != nil {
		return nil, nil, nil, err
	}
	fresh = map[string]string{}
	for _, table := range contract.Guarded {
		is, err := s.table.Identity(ctx, table)
		if err != nil {
			return nil, nil, nil, err
		}
		if is.ID == "" {
			return nil, nil, nil, fault.New(fault.Invalid, nil, "asking which table is %s: it has no id", table)
		}
		switch known := note.Str(table); {
		case known == is.ID:
		case known == "" && !is.Restored:
			fresh[table] = is.ID
		default:
			held = append(held, table)
		}
	}
	return note, fresh, held, nil
}

// Gate keeps a process that takes work all the time from starting any by a restored table. The zero
// Gate is open; it is safe for concurrent use.
type Gate struct {
	Store RestoredTables

	mu    sync.Mutex
	asked time.Time
	held  []string
	known bool
}

// RestoredKnownFor is how long a Gate goes by its last answer. A restore takes DynamoDB minutes, in
// which there is no table of that name.
const RestoredKnownFor = 15 * time.Second

// Shut lists the restored tables for which nothing may start now; none: all may. It fails only until
// it was answered once: later on it keeps to the answer that it has, so that trouble of DynamoDB's
// control plane stops no work.
func (g *Gate) Shut(ctx context.Context, now time.Time) ([]string, error) {
	if held, fresh := g.last(now); fresh {
		return held, nil
	}
	held, err := g.Store.Restored(ctx) // without the lock: it may take long
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil {
		g.held, g.known = held, true
	} else if !g.known {
		return nil, err
	}
	return g.held, nil
}

// last is the answer to go by: a young one, or any while another call asks anew.
func (g *Gate) last(now time.Time) (held []string, fresh bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Store == nil || g.known && now.Sub(g.asked) < RestoredKnownFor {
		return g.held, true
	}
	g.asked = now
	return nil, false
}

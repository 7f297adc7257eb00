package job

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"punctual/shared/contract"
	"punctual/shared/item"
)

// The log of an attempt is kept in the claims table, in items that only the worker of a start writes. One item of the
// attempt names the starts that wrote something, and holds the first page of each. The other pages are items of their
// own, named by start, token and slot. What became of the attempt does not depend on any of them.

// LogStart is one start of an attempt. The token is part of all names, so that no other owner overwrites them.
type LogStart struct {
	Key
	Attempt int64
	Start   int64 // number of the start in its attempt, from 1
	Token   int64
}

// StartAfter is the number of a start that follows the starts which the claim remembers.
func StartAfter(lost []Attempt) int64 {
	if n := len(lost); n > 0 {
		return lost[n-1].Start + 1
	}
	return 1
}

const (
	// smallPage is how many bytes of text fit into an item of one write unit, with any names that it can have.
	smallPage = 760
	// logStride is how far the positions of two starts are apart, so that a late write of one does not move the other.
	logStride = 1 << 40
)

// MaxLogPosition is beyond every position in a log.
const MaxLogPosition = 1 << 53

func logKey(k Key, attempt int64) string {
	return "log#" + string(k.Tenant) + "#" + string(k.ID) + "#" + strconv.FormatInt(attempt, 10)
}

// LogRef is the item of an attempt's log that names its starts.
func LogRef(k Key, attempt int64) item.Ref {
	return item.Ref{Table: contract.Claims, PK: logKey(k, attempt)}
}

// PageRef is the item of a page of a start.
func (s LogStart) PageRef(slot int) item.Ref {
	return item.Ref{Table: contract.Claims, PK: logKey(s.Key, s.Attempt) + "#" + s.name() + "#" + strconv.Itoa(slot)}
}

func (s LogStart) name() string {
	return strconv.FormatInt(s.Start, 10) + "." + strconv.FormatInt(s.Token, 10)
}

// The attributes of a start in the first item begin with these.
const (
	attrLogText = "text"
	attrLogEnd  = "end"
)

// LogText is what is left of the lines of one start: its first bytes, and its last ones, which begin at TailAt.
type LogText struct {
	Head, Tail string
	TailAt     int64
}

// LogPage is a stretch of a start's text, as it is stored.
type LogPage struct {
	At   int64 // position of its first byte among all bytes of the start
	Text string
}

func (p LogPage) end() int64 { return p.At + int64(len(p.Text)) }

// LogPages decides in which items the text of one start is written. Pages grow while they are small, so that a slow
// log has few; those of the last bytes take the slots of pages that are no longer among them. It is for one caller at
// a time.
type LogPages struct {
	Start LogStart
	pages []storedPage
	end   int64 // what is before is stored, or left out
	slots int   // that were used
}

type storedPage struct {
	LogPage
	slot int // firstPage: the attempt's item
	head bool
}

const firstPage = -1

// LogWrite is one write of a page.
type LogWrite struct {
	item.Write
	page    storedPage
	extends bool
}

// Next returns the write that comes next for a text; false if all of it is stored. until is when the table may forget
// the page.
func (l *LogPages) Next(t LogText, until time.Time) (LogWrite, bool) {
	at, piece := l.end, ""
	head := at < int64(len(t.Head))
	if head {
		piece = t.Head[at:]
	} else if at = max(at, t.TailAt); at < t.TailAt+int64(len(t.Tail)) {
		piece = t.Tail[at-t.TailAt:]
	}
	if piece == "" {
		return LogWrite{}, false
	}
	w := LogWrite{page: storedPage{LogPage{at, piece}, firstPage, head}}
	switch last := len(l.pages) - 1; {
	case last < 0:
		w.page.Text = l.Start.first(piece)
	case l.pages[last].grows(l.Start, w.page):
		w.extends, w.page = true, l.pages[last]
		w.page.Text += piece
	default:
		w.page.slot = l.slotFor(w.page)
	}
	w.Write = l.Start.put(w.page, until)
	return w, true
}

// first returns the lines of a text that the attempt's item holds. Of a later start that is its first line alone,
// which marks the start: each of its writes would cost as much as the pages of all starts before.
func (s LogStart) first(text string) string {
	if s.Start == 1 && len(text) <= smallPage {
		return text
	}
	end := strings.IndexByte(text, '\n') + 1
	if s.Start == 1 {
		end = max(end, strings.LastIndexByte(text[:smallPage], '\n')+1)
	}
	return text[:end]
}

// grows reports whether a page can take the next one in.
func (p storedPage) grows(s LogStart, next storedPage) bool {
	return p.head == next.head && p.end() == next.At && len(p.Text)+len(next.Text) <= smallPage &&
		(p.slot != firstPage || s.Start == 1)
}

// slotFor returns the slot of a new page: one whose bytes are no longer among the last, or else a new one.
func (l *LogPages) slotFor(next storedPage) int {
	kept := next.end() - contract.LogTail
	for _, p := range l.pages {
		if !next.head && !p.head && p.end() <= kept {
			return p.slot
		}
	}
	return l.slots
}

// put writes a page, unless what is there goes further: an earlier request, whose answer was lost, came late.
func (s LogStart) put(p storedPage, until time.Time) item.Write {
	if p.slot == firstPage {
		end := attrLogEnd + s.name()
		return item.Write{
			Ref: LogRef(s.Key, s.Attempt), Name: WriteLogStart,
			Set: map[string]any{attrLogText + s.name(): p.Text, end: p.end(),
				contract.AttrExpiresAt: until.Unix()},
			When: notBeyond(end, p.end()),
		}
	}
	ref := s.PageRef(p.slot)
	return item.Write{
		Ref: ref, Name: WriteLogPage,
		Put: item.Item{contract.AttrPK: ref.PK, "at": p.At, attrLogText: p.Text, attrLogEnd: p.end(),
			contract.AttrExpiresAt: until.Unix()},
		When: notBeyond(attrLogEnd, p.end()),
	}
}

func notBeyond(attr string, end int64) []item.All {
	return []item.All{{{Attr: attr, Op: item.Missing}}, {{Attr: attr, Op: item.Lt, Value: end}}}
}

// Stored notes that a write of Next was made, or refused because it had been made before.
func (l *LogPages) Stored(w LogWrite) {
	if w.extends {
		l.pages[len(l.pages)-1] = w.page
	} else {
		l.pages = slices.DeleteFunc(l.pages, func(p storedPage) bool { return p.slot == w.page.slot })
		l.pages = append(l.pages, w.page)
	}
	l.slots, l.end = max(l.slots, w.page.slot+1), w.page.end()
}

// LogUntil is how long what is written now of an attempt's log is kept: as long as the row can be, whatever becomes of
// the attempt. Pauses and snoozes of a job that go on for longer are not counted.
func LogUntil(r Row, now time.Time) time.Time {
	kept := contract.DeadKept
	if r.InRun() {
		kept = contract.NodeKept
	}
	tries := max(int64(r.Retry.MaxAttempts)-r.Failures, 1)
	return now.Add(kept + time.Duration(tries)*(r.Retry.MaxDelay+max(r.Timeout, contract.DefaultTimeout)))
}

// LogPart is the log of one start, as it was read.
type LogPart struct {
	LogStart
	Pages []LogPage
}

// LogStarts decodes the item at LogRef: the starts that have a log, in their order, each with its first page.
func LogStarts(k Key, attempt int64, i item.Item) []LogPart {
	var parts []LogPart
	for attr, v := range i {
		name, ok := strings.CutPrefix(attr, attrLogText)
		start, token, named := strings.Cut(name, ".")
		text, isText := v.(string)
		if !ok || !named || !isText {
			continue
		}
		s := LogStart{Key: k, Attempt: attempt}
		var err, err2 error
		s.Start, err = strconv.ParseInt(start, 10, 64)
		s.Token, err2 = strconv.ParseInt(token, 10, 64)
		if err == nil && err2 == nil && s.Start > 0 && s.Start < MaxLogPosition/logStride {
			parts = append(parts, LogPart{s, []LogPage{{0, text}}})
		}
	}
	slices.SortFunc(parts, func(a, b LogPart) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Token, b.Token))
	})
	return parts
}

// ParseLogPage decodes the item of a page.
func ParseLogPage(i item.Item) LogPage { return LogPage{i.Int("at"), i.Str(attrLogText)} }

// FirstStart is the number of the start that a position is in.
func FirstStart(from int64) int64 { return from/logStride + 1 }

// JoinLog returns the text of the starts from a position on, and the position after it. Bytes that are not stored are
// one line that says how many they are.
func JoinLog(parts []LogPart, from int64) (text string, next int64) {
	var b strings.Builder
	next = from
	for _, p := range parts {
		begin := (p.Start - 1) * logStride
		at := max(from-begin, 0)
		if p.Start < FirstStart(from) {
			continue
		}
		for _, page := range p.shown() {
			if left := page.At - at; left > 0 {
				b.WriteString("[" + strconv.FormatInt(left, 10) + " bytes left out]\n")
				at = page.At
			}
			if page.end() > at {
				b.WriteString(wholeRunes(page.Text[at-page.At:]))
				at = page.end()
			}
		}
		next = max(next, begin+at)
	}
	return b.String(), next
}

// wholeRunes leaves out the end of a character at the beginning of a text.
func wholeRunes(text string) string {
	for text != "" && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}

// shown returns the pages from the first byte on, and those up to the last: pages between are left of text that was
// replaced. A page within another one is left of a write whose answer was lost.
func (p LogPart) shown() []LogPage {
	pages, end := slices.Clone(p.Pages), int64(0)
	slices.SortFunc(pages, func(a, b LogPage) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(b.end(), a.end()))
	})
	pages = slices.DeleteFunc(pages, func(page LogPage) bool {
		within := page.end() <= end
		end = max(end, page.end())
		return within
	})
	if len(pages) == 0 {
		return nil
	}
	head := 1
	for head < len(pages) && pages[head].At <= pages[head-1].end() {
		head++
	}
	tail := len(pages) - 1
	for tail > head && pages[tail].At <= pages[tail-1].end() {
		tail--
	}
	if tail <= head {
		return pages
	}
	return append(pages[:head:head], pages[tail:]...)
}

// EmptyLog overwrites an item of a log that is there: it holds nothing any more, and the table may forget it.
func EmptyLog(ref item.Ref, now time.Time) item.Write {
	return item.Write{
		Ref: ref, Name: WriteLogEmpty,
		Put:  item.Item{contract.AttrPK: ref.PK, contract.AttrExpiresAt: now.Unix()},
		When: []item.All{{{Attr: contract.AttrPK, Op: item.Exists}}},
	}
}

// KeepLog lets an item of a log live until then; refused where there is none, or where it lives longer.
func KeepLog(ref item.Ref, until time.Time) item.Write { return keep(ref, WriteLogKeep, until) }

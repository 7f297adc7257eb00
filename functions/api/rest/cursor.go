package rest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// A cursor holds the position after which a list continues, and a hash that binds it to the tenant, the list and its
// filters. Any cursor that does not fit is an invalid_cursor. The hash has no secret in it: a forged cursor can only
// name a position in the caller's own list, because the tenant comes from the token.

// MaxCursor is how long a cursor may be, in characters.
const MaxCursor = 1024

// sumSize is how many bytes of the hash a cursor has.
const sumSize = 16

// List is one list with its filters, as one tenant reads it.
type List struct {
	Tenant  tenant.ID
	name    string
	filters []string
}

// NewList returns a list. Filters have a fixed order, and one that is not given is "". The tenant is empty for lists
// that are the same for everybody.
func NewList(t tenant.ID, name string, filters ...string) List { return List{t, name, filters} }

func (l List) sum(position string) []byte {
	h := sha256.New()
	for _, part := range append([]string{"cursor 1", string(l.Tenant), l.name, position}, l.filters...) {
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part)) // lengths keep different parts apart
	}
	return h.Sum(nil)[:sumSize]
}

// Cursor returns the cursor for a position in the list; nil for "", the end.
func (l List) Cursor(position string) *string {
	if position == "" {
		return nil
	}
	c := base64.RawURLEncoding.EncodeToString(append(l.sum(position), position...))
	return &c
}

// Position returns the position in a cursor; "" is the beginning, also of an empty cursor. A cursor of another list,
// other filters or another tenant is a *Problem.
func (l List) Position(cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(cursor) > MaxCursor || len(raw) <= sumSize ||
		!bytes.Equal(raw[:sumSize], l.sum(string(raw[sumSize:]))) {
		return "", OneViolation("cursor", CodeInvalidCursor, "next_cursor of the page before, with the same filters",
			"this cursor was not given for this list")
	}
	return string(raw[sumSize:]), nil
}

// ReadNumber reads a whole number from 1 to most out of a parameter. An empty parameter is fallback; anything else is a
// *Problem that names the parameter.
func ReadNumber(name, s string, fallback, most int) (int, error) {
	if s == "" {
		return fallback, nil
	}
	n, err := readBetween(name, s, 1, int64(most))
	return int(n), err
}

// ReadPosition is ReadNumber of a number from 0 to most, which is 0 if the parameter is empty.
func ReadPosition(name, s string, most int64) (int64, error) {
	if s == "" {
		return 0, nil
	}
	return readBetween(name, s, 0, most)
}

func readBetween(name, s string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || strings.TrimLeft(s, "0123456789") != "" {
		return 0, OneViolation(name, CodeInvalidValue, "a whole number", "%s is not a whole number", name)
	}
	if n < least || n > most {
		return 0, OneViolation(name, CodeOutOfRange, Between(strconv.FormatInt(least, 10), strconv.FormatInt(most, 10)),
			"%s is out of range", name)
	}
	return n, nil
}

// Paging has the query parameters of every list.
type Paging struct {
	Limit  string `query:"limit" doc:"Maximum number of items of the page" example:"50"`
	Cursor string `query:"cursor" doc:"Cursor from next_cursor of the page before, with the same filters"`
}

// paged is an input with Paging.
type paged interface{ paging() Paging }

func (p Paging) paging() Paging { return p }

// PageSize returns how many items a page has at most: contract.ListDefault if there is no limit. A limit that is not a
// number from 1 to contract.ListMax is a *Problem.
func (p Paging) PageSize() (int, error) {
	return ReadNumber("limit", p.Limit, contract.ListDefault, contract.ListMax)
}

// Page returns how many items a page of l has at most, and the position after which it begins; see PageSize and
// List.Position.
func (p Paging) Page(l List) (limit int, after string, err error) {
	if limit, err = p.PageSize(); err == nil {
		after, err = l.Position(p.Cursor)
	}
	return limit, after, err
}

// Page is one page of a list. An empty page with a cursor is not the end.
type Page[T any] struct {
	Items      []T     `json:"items" doc:"Items of the page, in the order of the list"`
	NextCursor *string `json:"next_cursor" doc:"Cursor of the next page; null at the end. A page can be short, even empty, and have a cursor."`
}

// Found is what was read for one page of a list.
type Found[V any] struct {
	Items []V
	AsOf  time.Time          // of a search: what happened before it is in; zero: the rows themselves were read
	Next  string             // position after which the next page begins; "" is the end
	At    func(i int) string // position of item i; nil: the items always fit in one answer
}

// SearchPage is one page of a list that can be searched.
type SearchPage[T any] struct {
	Page[T]
	AsOf Instant `json:"as_of,omitzero" doc:"Time up to which everything that happened is in the answer; absent where no search was needed"`
}

// FoundRows returns rows as items. more says that rows follow; position is that of a row in the list.
func FoundRows[R, V any](rows []R, more bool, view func(R) V, position func(R) string) Found[V] {
	f := Found[V]{Items: make([]V, len(rows)), At: func(i int) string { return position(rows[i]) }}
	for i, r := range rows {
		f.Items[i] = view(r)
	}
	if more && len(rows) > 0 {
		f.Next = position(rows[len(rows)-1])
	}
	return f
}

// FoundIn returns one page of a short list that is read whole.
func FoundIn[V any](all []V, after string, limit int) Found[V] {
	at, _ := strconv.Atoi(after) // 0 at the beginning
	from := min(at, len(all))
	f := Found[V]{Items: all[from:min(from+limit, len(all))]}
	if to := from + len(f.Items); to < len(all) {
		f.Next = strconv.Itoa(to)
	}
	return f
}

// ReadPage answers one page of l: it reads limit and cursor, calls fetch for up to limit items after a position, and
// shortens a page that is too large. A limit or a cursor that is wrong is a *Problem.
func ReadPage[V any](l List, in Paging, fetch func(after string, limit int) (Found[V], error)) (*Listing[V], error) {
	limit, after, err := in.Page(l)
	if err != nil {
		return nil, err
	}
	found, err := fetch(after, limit)
	if err != nil {
		return nil, err
	}
	out := &Listing[V]{Body: Page[V]{Items: append([]V{}, found.Items...), NextCursor: l.Cursor(found.Next)}}
	if found.At != nil {
		out.Body.Fit(func(last int) *string { return l.Cursor(found.At(last)) })
	}
	return out, nil
}

// maxPage is how many bytes all items of a page may have, so that an answer stays under 1 MB. A single larger item is a
// page.
const maxPage = 900_000

// Fit shortens a page that is too large for one answer. cursor returns the cursor for the position after the item with
// that index.
func (p *Page[T]) Fit(cursor func(last int) *string) {
	size := 0
	for i, item := range p.Items {
		encoded, err := text.JSON(item)
		if err != nil {
			return // writing the answer will report it
		}
		if size += len(encoded) + 1; size > maxPage && i > 0 {
			p.Items, p.NextCursor = p.Items[:i], cursor(i-1)
			return
		}
	}
}

// CursorPattern is the form of a cursor.
const CursorPattern = `^[A-Za-z0-9_-]+$`

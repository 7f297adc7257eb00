package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"punctual/shared/contract"
	"punctual/shared/tenant"
	"punctual/shared/text"
)

// A cursor is the place after which a list goes on, and a hash that binds it to the tenant, the
// list and its filters. Whatever does not fit, for whatever reason, is one and the same
// invalid_cursor. No key is in it: who made one up could only name a place in their own list, for
// the tenant comes from the token whatever a cursor says.

// MaxCursor is how long a cursor may be, in characters.
const MaxCursor = 1024

// sumSize is how many bytes of the hash are in a cursor.
const sumSize = 16

// List names one list with its filters, as one tenant asks for it.
type List struct {
	Tenant  tenant.ID
	name    string
	filters []string
}

// NewList returns the list of that name. Filters are in a fixed order, "" for one that is not given;
// an empty tenant is for lists that are the same for everybody.
func NewList(t tenant.ID, name string, filters ...string) List { return List{t, name, filters} }

func (l List) sum(place string) []byte {
	h := sha256.New()
	for _, part := range append([]string{"cursor 1", string(l.Tenant), l.name, place}, l.filters...) {
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part)) // lengths, so that parts cannot run into each other
	}
	return h.Sum(nil)[:sumSize]
}

// Cursor returns the cursor of a place in the list; it is never nil.
func (l List) Cursor(place string) *string {
	c := base64.RawURLEncoding.EncodeToString(append(l.sum(place), place...))
	return &c
}

// Place reads a cursor back. An empty cursor is the beginning, whose place is ""; one that was given
// for another list, other filters or another tenant is a *Problem.
func (l List) Place(cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(cursor) > MaxCursor || len(raw) <= sumSize ||
		!bytes.Equal(raw[:sumSize], l.sum(string(raw[sumSize:]))) {
		return "", OneMistake("cursor", CodeInvalidCursor, "next_cursor of the page before, with the same filters",
			"this cursor was not given for this list")
	}
	return string(raw[sumSize:]), nil
}

// ReadNumber reads a parameter that counts, from 1 to most; an empty one is fallback. Anything else
// is a *Problem that names the parameter.
func ReadNumber(name, s string, fallback, most int) (int, error) {
	if s == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || strings.TrimLeft(s, "0123456789") != "" {
		return 0, OneMistake(name, CodeInvalidValue, "a whole number", "%s is not a whole number", name)
	}
	if n < 1 || n > most {
		return 0, OneMistake(name, CodeOutOfRange, Between("1", strconv.Itoa(most)), "%s is out of range", name)
	}
	return n, nil
}

// Paging is the query parameters that every list takes.
type Paging struct {
	Limit  string `query:"limit" doc:"Items of one page" example:"50"`
	Cursor string `query:"cursor" doc:"next_cursor of the page before, with the same filters"`
}

// PageSize is how many items the page has at most: contract.ListDefault without a limit. A limit
// that is no number from 1 to contract.ListMax is a *Problem.
func (p Paging) PageSize() (int, error) {
	return ReadNumber("limit", p.Limit, contract.ListDefault, contract.ListMax)
}

// CutPage takes one page of at most limit items out of a list that is short and read whole. next is
// nil on the last page. A cursor of another list is a *Problem.
func CutPage[T any](l List, cursor string, limit int, all []T) (items []T, next *string, err error) {
	place, err := l.Place(cursor)
	if err != nil {
		return nil, nil, err
	}
	at, _ := strconv.Atoi(place) // 0 at the beginning
	from := min(at, len(all))
	to := min(from+limit, len(all))
	if to < len(all) {
		next = l.Cursor(strconv.Itoa(to))
	}
	return append([]T{}, all[from:to]...), next, nil
}

// Page is one page of a list. An empty page with a cursor is not the end.
type Page[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor" doc:"null at the end. A page may be short, even empty, and have a cursor: go on until it is null"`
}

// maxPage is how many bytes the items of a page have together: an answer stays under 1 MB,
// whatever a tenant has put into them. One item alone is always shown.
const maxPage = 900_000

// Fit ends a page early that would be larger than an answer may be. cursor returns the cursor of the
// place after the item of that index.
func (p *Page[T]) Fit(cursor func(last int) *string) {
	size := 0
	for i, item := range p.Items {
		encoded, err := text.JSON(item)
		if err != nil {
			return // as the whole answer will say
		}
		if size += len(encoded) + 1; size > maxPage && i > 0 {
			p.Items, p.NextCursor = p.Items[:i], cursor(i-1)
			return
		}
	}
}

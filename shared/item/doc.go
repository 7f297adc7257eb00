// Package item is the language in which the core speaks to a table: items, conditions,
// writes, queries and stream records, without any vendor's types.
//
// The core builds a [Write] as a value: what must still hold (When) and what then changes.
// The adapters carry it out, in DynamoDB or in memory, and both mean the same by it, which
// package conformance checks. A condition that does not hold comes back as [Refused] with
// the item as it was, so that the caller can decide again from facts.
//
// Values in items are string, int64 or absent; anything nested is a string of JSON. That is
// enough for us, sorts and compares the same everywhere, and keeps rows small.
package item

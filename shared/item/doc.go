// Package item is the language in which the core speaks to a table: items, conditions, writes,
// queries and stream records, without any vendor's types.
//
// The core builds a [Write] as a value: what must still hold (When) and what changes. The adapters
// execute it, in DynamoDB or in memory, with the same meaning, which package conformance verifies.
// If a condition does not hold, the caller gets a [Refused] with the item as it was, and decides
// once more from facts.
//
// Values in items are string, int64 or absent; anything nested is a string of JSON. That is enough
// for us, sorts and compares the same everywhere, and keeps rows small.
package item

// Package table carries out the reads and writes of package item in DynamoDB. It knows nothing
// of jobs: conditions and changes come as values, and go through one translation.
//
//	item.Write  ── expression.go ──▶  PutItem · UpdateItem · DeleteItem · TransactWriteItems
//	item.Query  ── query.go ───────▶  Query
//	               value.go             string ⇄ S, int64 ⇄ N
//
// What always holds: Get, GetMany, and what a refusal shows, are strongly consistent. Every
// conditional write asks for the item that its condition did not fit, so a refusal needs no second read.
// Attributes of a type that we never write are left out of an item: the process that parses it then finds it
// undecodable, not half right. Conflicts and throttles are retried a bounded number of times; after
// that they are fault.Conflict or fault.Throttled.
//
// # A write can meet itself
//
// When a write took effect and its answer was lost, the SDK retries it, and the condition may fail
// because of our own first try. The adapter cannot distinguish that from another writer's change. The item
// in the refusal can, and callers decide from it:
//
//   - a claim, a takeover, an outcome: the claim carries the caller's own nonce and token, so
//     it was this very call (PROTOCOL, "Claims").
//   - a new row or item: the id was drawn for this call or derived from what it is about, so
//     an equal item is the one we put.
//   - a row's transition: a second decision from the row finds it done, and changes nothing.
//   - a let-go or a fence may be counted twice: takeovers and tokens only have to be
//     bounded and to grow.
//   - a Commit never does within one call: its token, the same for all tries, makes DynamoDB
//     answer a repeated transaction as it did the first one. A second Commit of the same has
//     a new token, and may be refused because of the first.
//
// How it fails: by the kinds of package fault, and [item.Refused].
package table

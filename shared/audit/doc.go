// Package audit is what the store holds of the changes that callers made: who changed what, when and why. An [Intent]
// goes with the context of a request that may change something; the store writes its entry in the transaction of the
// write that accepts the change, so neither is there without the other. shared/job/PROTOCOL.md, part Audit, says which
// write that is. Nothing in here reads a clock or calls a store.
//
// What always holds: an entry has no value of a payload, and none that looks like a secret.
package audit

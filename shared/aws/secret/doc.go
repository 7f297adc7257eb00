// Package secret resolves ARNs of AWS Secrets Manager to their values.
//
// What always holds: a value is at most [MaxAge] old, so a rotated secret reaches every worker
// within that time; values live in memory only, in a bounded number, and appear in no error
// and no log. Which ARNs a tenant may name, and whether a
// host is one that the tag punctual:hosts names, is not decided here.
//
// How it fails: by the kinds of package fault; a secret without a text value is fault.Invalid.
package secret

// Package fault names what went wrong, once, so that callers decide by kind and never by matching
// strings.
//
// Adapters wrap their service's error in an [Error]; everything above calls [KindOf] or
// [Retryable]. [Violations] is what a user did wrong: one [Field] for every violation, with a stable
// code and what is allowed. A Field never holds the offending value where that could be a secret or
// a payload.
package fault

// Package fault names what went wrong, once, so that callers decide by kind and
// never by matching strings.
//
// Adapters wrap what their service said in an [Error]; everything above asks
// [KindOf] or [Retryable]. What a user did wrong is [Mistakes]: one [Field]
// for every mistake, with a stable code and what is allowed. A Field never
// carries the offending value where that could be a secret or a payload.
package fault

// Package span reads and writes the lengths of time that people write in requests: "90s",
// "1h30m", "2d".
//
// What always holds: only whole numbers with a unit are taken, one after the other; a length
// that does not fit a time.Duration is refused, never wrapped; Parse reads what Format wrote
// as the same length. There is no sign and no fraction: whether "0s" makes sense is for the
// caller to say.
package span

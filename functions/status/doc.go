// Package status reads what workers report and settles it. It is the only writer of outcomes.
//
//	running ─▶ the row becomes RUNNING       re-evaluate ─▶ the wake-up's decision, at once
//	ended   ─▶ contents ▸ row ▸ (firing | dead letter)
//
// What always holds: an outcome is recorded once and never overturned, because the row's write requires the same
// attempt and the same stop, and after a refusal the row is read and decided about once more. A report that is late,
// duplicated or about an earlier attempt changes nothing. Contents are written before the row that refers to them.
// DEAD is written before its dead letter is sent.
//
// How it fails: a report that failed is redelivered. If the row was written and the firing or dead letter was not sent,
// the redelivered report sends it. If that fails as well, the sweeper does it at the row's wake-up.
package status

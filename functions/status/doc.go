// Package status reads what workers report and settles it. It is the only writer of outcomes.
//
//	running ─▶ RUNNING becomes a fact        look ─▶ the wake-up's decision, at once
//	ended   ─▶ contents ▸ row ▸ (firing | dead letter)
//
// What always holds: an outcome is recorded once and never overturned, because the row's write
// asks for its attempt and its stop, and a refused one decides again from what was there; a
// report that is late, doubled or about an attempt gone by changes nothing. Contents are
// written before the row that refers to them. DEAD is written before its letter is sent.
//
// How it fails: a report that failed is redelivered. If the row was written and what follows was
// not sent, the report's next coming finds that and sends it; if that is lost as well, the
// row's wake-up brings the sweeper.
package status

package job

import (
	"strconv"
	"time"

	"punctual/shared/text"
)

// attemptWire is an Attempt as the row holds it: short names, for every byte counts there.
type attemptWire struct {
	A int64  `json:"a"`
	W string `json:"w,omitempty"`
	S int64  `json:"s,omitempty"` // ms
	F int64  `json:"f,omitempty"` // ms
	L int64  `json:"l,omitempty"`
	O string `json:"o"`
	C string `json:"c,omitempty"`
	M string `json:"m,omitempty"`
}

// encodeAttempts is "" for none. decodeAttempts reads it by attemptWire. Field by field takes less stack than
// encoding/json does with the whole list, and every job is encoded with its attempt in a short goroutine.
func (r *Row) encodeAttempts() string {
	if len(r.Attempts) == 0 {
		return ""
	}
	b := make([]byte, 0, 128*len(r.Attempts))
	num := func(name string, n int64) {
		if n != 0 {
			b = strconv.AppendInt(append(b, name...), n, 10)
		}
	}
	str := func(name, s string) {
		if s != "" {
			b = append(append(b, name...), text.MustJSON(s)...)
		}
	}
	for n, a := range r.Attempts {
		b = append(b, [...]string{`[{"a":`, `,{"a":`}[min(n, 1)]...)
		b = strconv.AppendInt(b, a.Attempt, 10)
		str(`,"w":`, a.Worker)
		num(`,"s":`, millis(a.StartedAt))
		num(`,"f":`, millis(a.FinishedAt))
		num(`,"l":`, a.LatenessMS)
		b = append(append(b, `,"o":`...), text.MustJSON(a.Outcome)...)
		if a.Error != nil {
			str(`,"c":`, a.Error.Code)
			str(`,"m":`, a.Error.Message)
		}
		b = append(b, '}')
	}
	return string(append(b, ']'))
}

// millis is an instant as items hold it, 0 for none.
func millis(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

func (r *Row) decodeAttempts(s string) error {
	if s == "" {
		r.Attempts = nil
		return nil
	}
	var wire []attemptWire
	if err := text.Read([]byte(s), &wire); err != nil {
		return err
	}
	r.Attempts = make([]Attempt, len(wire))
	for n, w := range wire {
		a := Attempt{Attempt: w.A, Worker: w.W, LatenessMS: w.L, Outcome: w.O}
		if w.S != 0 {
			a.StartedAt = time.UnixMilli(w.S).UTC()
		}
		if w.F != 0 {
			a.FinishedAt = time.UnixMilli(w.F).UTC()
		}
		if w.C != "" {
			a.Error = &Reason{Code: w.C, Message: w.M}
		}
		r.Attempts[n] = a
	}
	return nil
}

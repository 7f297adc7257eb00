package job

import (
	"testing"
	"time"
)

// BenchmarkRow_EncodingsOfAJob does all the encoding of rows that one job costs: it is placed and accepted,
// then settled.
func BenchmarkRow_EncodingsOfAJob(b *testing.B) {
	payload := []byte(`{"invoice":"2027-000123","amount":1999}`)
	o := Outcome{
		Kind: OutcomeSucceeded, Worker: "worker-7d9f", StartedAt: noon, FinishedAt: noon.Add(time.Second),
		Result: []byte(`{"ok":true}`),
	}
	one := func() error {
		r := scheduled()
		r.Hold(Contents{Payload: payload})
		_ = Accept(r)
		_, err := Settle(&r, 1, o, noon.Add(2*time.Second))
		return err
	}
	b.Run("in a loop", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := one(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("each in a goroutine", func(b *testing.B) {
		b.ReportAllocs()
		done := make(chan error)
		for b.Loop() {
			go func() { done <- one() }()
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkParseRow reads the row of a job that is due now: each job's row is read three times.
func BenchmarkParseRow(b *testing.B) {
	r := scheduled()
	r.Hold(Contents{Payload: []byte(`{"invoice":"2027-000123","amount":1999}`)})
	i := r.Item()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseRow(i); err != nil {
			b.Fatal(err)
		}
	}
}

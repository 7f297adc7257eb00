package job

import "testing"

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

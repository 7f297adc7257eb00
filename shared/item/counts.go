package item

// Counts is what calls have cost so far, in AWS's billing units. An in-memory implementation counts by the published
// rules; an adapter adds up the consumption that answers report.
type Counts struct {
	Tables map[string]Units // by logical table

	TableCalls  int64 // requests to tables
	QueueCalls  int64 // requests to queues, a batch of ten being one
	QueueUnits  int64 // billed requests to queues: one for each 64 KB begun in a call
	TimerCalls  int64 // timers armed
	TimersFired int64 // billed invocations
	BlobCalls   int64
	SecretCalls int64
}

// Units are the capacity units of one table.
type Units struct {
	Write      float64 // of the table: 1 for each KB begun of the larger of before and after, also when refused
	IndexWrite float64 // of its indexes
	Read       float64 // 1 for each 4 KB begun of a strongly consistent read, half of it otherwise
}

// Total returns the sum over all tables.
func (c Counts) Total() Units {
	var sum Units
	for _, u := range c.Tables {
		sum.Write += u.Write
		sum.IndexWrite += u.IndexWrite
		sum.Read += u.Read
	}
	return sum
}

package item

// Counts is what calls have cost so far, in the units in which AWS bills. A twin counts it by
// the published rules; an adapter adds up what the answers say was consumed.
type Counts struct {
	Tables map[string]Units // by logical table

	TableCalls  int64 // requests to tables
	QueueCalls  int64 // requests to queues, a batch of ten being one
	QueueUnits  int64 // billed requests to queues: one for each 64 KB begun, of each call
	TimerCalls  int64 // timers armed and disarmed
	TimersFired int64 // billed invocations
	BlobCalls   int64
	SecretCalls int64
}

// Units are the capacity units of one table.
type Units struct {
	Write      float64 // of the table itself: 1 KB begun of the larger of before and after; a refused write costs too
	IndexWrite float64 // of its indexes
	Read       float64 // 4 KB begun is 1 strongly consistent, or half of one eventually
}

// Total adds up the units of all tables.
func (c Counts) Total() Units {
	var sum Units
	for _, u := range c.Tables {
		sum.Write += u.Write
		sum.IndexWrite += u.IndexWrite
		sum.Read += u.Read
	}
	return sum
}

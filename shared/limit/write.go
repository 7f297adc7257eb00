package limit

// The names of the writes, by which a test or a count of costs knows them.
const (
	WritePut      = "limit.put"
	WriteNote     = "limit.note"
	WriteTake     = "limit.take"
	WriteFree     = "limit.free"
	WriteFreeze   = "limit.freeze"
	WritePlan     = "limit.plan"
	WriteMark     = "limit.mark"
	WriteUnmark   = "limit.unmark"
	WriteRecheck  = "limit.recheck"
	WriteDraw     = "limit.draw"
	WriteGiveBack = "limit.give_back"
)

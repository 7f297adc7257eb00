package operation

// The names of the writes, by which a test or a count of costs knows them.
const (
	WriteCreate = "operation.create"
	WriteChange = "operation.change"
	WritePage   = "operation.page"
)

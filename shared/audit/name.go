package audit

// The names of the writes, by which a test or a count of costs knows them.
const (
	WriteEntry = "audit.entry"
)

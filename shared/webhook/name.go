package webhook

// The names of the writes, by which a test or a count of costs knows them.
const (
	WritePut    = "webhook.put"
	WriteDelete = "webhook.delete"
	WriteHealth = "webhook.health"
	WriteMade   = "webhook.made"
)

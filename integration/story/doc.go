// Package story drives the REST API in tests as a user would: over a handler in this process, or
// over a deployed one. The test decides what an answer means.
package story

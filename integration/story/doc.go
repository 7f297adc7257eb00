// Package story drives the REST API in tests as a user would: over a handler in this process,
// or over a deployed one. What an answer means is the test's business.
package story

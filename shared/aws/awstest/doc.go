// Package awstest takes the part of AWS in the adapters' tests: an HTTP client in process that
// hands every request to a function of the test's. Nothing listens anywhere, so it works in a
// bubble of testing/synctest, and retries and backoff pass in virtual time.
//
// An answer can be lost: the function has run, so the call took effect, and the client sees a
// timeout, as when a connection breaks.
package awstest

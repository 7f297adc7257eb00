// Package message holds the bodies that travel on queues, versioned: every body names its
// version in "v", golden files in testdata hold each version for ever, and an unknown
// version is refused as undecodable, to be quarantined rather than guessed at.
//
// Bodies carry ids and outcomes, never payloads.
package message

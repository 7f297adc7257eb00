// Package target holds what differs between deployments of Punctual: dev, prod and emulator.
//
// A target is chosen by `-c target=NAME`. Settings that only its owner knows (whose tokens are trusted, who is on
// call) are given by `-c key=value`, too. Everything else is decided here, in code, so that a commit decides what is
// deployed.
//
// What always holds: Load returns settings that passed Check, or an error that names every violation at once, each with
// what is allowed. Nothing here knows of CDK.
package target

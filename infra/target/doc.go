// Package target holds what differs between deployments of Punctual: dev, prod and emulator.
//
// A target is chosen by `-c target=NAME`; the few settings that only its owner can know (whose
// tokens are trusted, who is on call) come by `-c key=value` as well. Everything else is
// decided here, in code, so that a deployment is what a commit says it is.
//
// What always holds: Load returns settings that passed Check, or an error that names every
// mistake at once, each with what is allowed, in words for the person at the keyboard. Nothing
// here knows of CDK.
package target

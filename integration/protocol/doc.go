// Package protocol checks the specification of the protocol (shared/job/protocol, in Quint; the contract itself
// is shared/job/PROTOCOL.md). It holds tests only, and needs Node.js 20 with npm.
//
//	job.qnt, dagrun.qnt, permit.qnt    random traces of the whole specification keep the invariants
//	*_test.qnt                         a trace for each condition breaks one, once the condition is left out
//
// Nothing here reads the product's code: the simulation (integration/sim) and the tests of functions/engine/runs hold
// the code to the same contract.
package protocol

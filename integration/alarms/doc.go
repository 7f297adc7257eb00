// Package alarms plays faults against the alarms of a deployment, in virtual time.
//
// The alarms are those of infra/testdata/alarms.json, which a test of infra/stack holds to the templates. The metrics
// are those that the stages and the worker write while the product runs over the memory implementation; a CloudWatch of
// some lines evaluates the one by the other. No emulator does that.
//
// Only metrics of ours and the calls of functions are modelled: those of queues, tables and the gateway have no values
// here, so their alarms stay quiet.
package alarms

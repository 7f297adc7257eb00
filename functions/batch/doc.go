// Package batch runs a function over the records of an SQS or DynamoDB stream event and reports to Lambda which of them
// to redeliver.
//
// What always holds: one bad record harms no other. Only the records that failed or panicked are redelivered. A record
// that cannot be read is counted and logged once, without its body. In a queue, the redrive policy then moves it to
// the dead-letter queue unchanged. In a stream it would block its shard for a day, so it is quarantined and counts as
// done. The answer always has a list, never null, which Lambda would take for "all of them failed".
package batch

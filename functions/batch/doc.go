// Package batch runs a function over the records of an SQS or DynamoDB stream event and tells
// Lambda which of them to redeliver.
//
// What always holds: one bad record harms no other. Only the records that failed
// or panicked are redelivered. What cannot be read is counted and logged once, without its body; in a
// queue it is then left to the redrive policy, which moves it to the dead-letter queue as it
// came; in a stream, where it would block its shard until it is a day old, it is set aside and
// counts as done. The answer always carries a list, never null, which Lambda would take for
// "all of them failed".
package batch

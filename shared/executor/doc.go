// Package executor lists the executors that a task can name, and says what each takes: the half of
// an executor that the API and the workers must agree on. The other half, which runs an attempt,
// is in workers/executor under the same names.
//
// A new executor is a file here and one line in [Kinds], and a file and one line there.
//
// What always holds: nothing here acts. A payload that [Kind.Check] takes can be decoded into the
// type of Kind.Payload, which the OpenAPI document shows and the worker reads.
package executor

// Package stack composes the constructs into stacks: Data has tables, queues and payloads, which must never be lost;
// Flow has the functions and the API; Observability has dashboards and alarms; Fleet is the workers' cluster.
//
//	Data ◀── Flow ◀── Observability
//	  ▲───── Fleet ◀────────┘
//
// What always holds: only Data has state, so every other stack can be deleted and deployed anew. Each function has a
// role of its own that may do what access lists and nothing else. The same settings give the same templates, to the
// byte.
//
// How it fails: with settings that are impossible, or bootstraps that are not built, the synthesis ends with a sentence
// that says what to do.
package stack

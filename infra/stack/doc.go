// Package stack composes the constructs into what is deployed: Data, what must never be lost;
// Flow, the functions around it and their door; Watch, what a person sees of it; Fleet, the
// workers' cluster.
//
//	Data ◀── Flow ◀── Watch
//	  ▲───── Fleet ◀─────┘
//
// What always holds: state lives in Data alone, so that every other stack can be taken down and
// put up again; each function has a role of its own that may do what access lists and nothing
// else; the same settings give the same templates, to the byte.
//
// How it fails: settings that cannot be, or bootstraps that are not built, end the synthesis
// with a sentence that says what to do.
package stack

// Package wire is what the REST API says about HTTP and JSON, and knows no resource: it reads
// requests strictly, routes them, and writes answers and problems.
//
// What always holds:
//   - A Document is valid UTF-8, one JSON value, not nested too deeply. Repeated fields are noted,
//     so that whoever reads the part that they stand in can blame them.
//   - A Reader gathers all mistakes of a body, each with a pointer, a code and what is allowed. No
//     mistake repeats a value that may be a secret.
//   - A handler that is registered for a scope runs only for an identity that has it.
//   - Each code of the Catalogue has one status and one meaning, and neither ever changes.
//   - A cursor is good for one list, its filters and its tenant; any other is refused.
//   - Two JSON texts have the same Hash exactly if they say the same.
//
// It fails with a *Problem or with fault.Mistakes; a Router answers both, and any other error,
// as a problem of RFC 9457.
package wire

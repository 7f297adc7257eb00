// Package rest is the part of the REST API about HTTP and JSON. It knows no resource. It reads requests
// strictly, routes them, and writes answers and problems.
//
// What always holds:
//   - A Reader collects all violations of a body, each with a pointer, a code and what is allowed. No violation
//     repeats a value that may be a secret.
//   - A handler that is registered for a scope runs only for an identity with that scope.
//   - Each code of a Catalogue has one status and one meaning, and neither ever changes.
//   - A cursor is valid for one list, its filters and its tenant, and refused for any other.
//
// It fails with a *Problem or with fault.Violations. A Router answers both, and any other error, as a problem of
// RFC 9457.
package rest

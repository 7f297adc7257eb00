// Package api is the REST stage: decode, authorise, decide, write, answer. It is an http.Handler. The laptop
// server mounts it as it is, and lambda/ puts it behind API Gateway.
//
// What always holds:
//   - The tenant comes only from the verified identity in the request's context. What belongs to another
//     tenant is answered exactly like what does not exist.
//   - A body is read strictly, up to a limit, once. The answer lists all violations in it, each with a pointer,
//     a stable code and what is allowed. No answer repeats a payload or anything that may be a secret.
//   - A job is accepted when its row is written, and not before: payload first, row second, then the answer.
//     If its firing cannot be sent, it is accepted all the same: the due index brings it.
//   - Every change of a job is one of package job's named writes. If its condition fails, the change is
//     decided once more from the new row.
//   - A page of a list reads a bounded number of rows. An empty page with a cursor is not the end.
//
// It fails with a problem of RFC 9457 and a code of the spec.Catalogue: 4xx says what to change, 503 that the same
// request may work later, and 500 that we have a bug, which is logged with the request's id.
package api

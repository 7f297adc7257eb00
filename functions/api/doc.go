// Package api is the REST stage: decode, authorise, decide, write, answer. It is an
// http.Handler; the laptop server mounts it as it is, and lambda/ puts it behind API Gateway.
//
// What always holds:
//   - The tenant comes from the verified identity in the request's context and from nowhere
//     else; what belongs to another tenant is answered exactly like what does not exist.
//   - A body is read strictly, to a limit, once; all mistakes in it are named together, each
//     with a pointer, a stable code and what is allowed. No answer repeats a payload or
//     anything that may be a secret.
//   - A job is accepted when its row is written, and not before: payload first, row second,
//     then the answer. A firing that could not be sent is no reason to refuse: the due index
//     brings the job.
//   - Every change of a job is one of package job's named writes, decided again from what
//     stood there whenever its condition did not hold.
//   - What a page of a list may read is bounded; an empty page with a cursor is not the end.
//
// It fails as a problem of RFC 9457 with a code of the catalogue in wire: 4xx says what
// to change, 503 that the same request may work later, 500 that we have a bug, which is logged
// under the request's id.
package api

// Package spec has what the requests for several resources share: the statements of their common fields, the codes of
// problems, and the reading of labels, payloads and retry policies. It serves no route.
package spec

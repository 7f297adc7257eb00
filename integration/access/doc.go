// Package access finds out what each part really does with AWS. It runs stories through the product
// over the in-memory implementations, with separate ports for each part, and writes down every kind of call in
// the terms of IAM. infra/testdata/access.txt is that list. A test here compares the list with the
// calls, and a test in infra compares the roles with the list: a call without a grant fails there,
// and so does a grant that no code uses. `go test ./integration/access -update` rewrites the list.
// The package holds tests only.
package access

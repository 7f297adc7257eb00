// Package access finds out what each part really does with AWS. It drives stories through the
// product over the memory twins, with ports of its own for each part, and writes down every kind
// of call in the words of IAM. infra/testdata/access.txt is that list; a test here holds the list
// to what the parts do, and a test in infra holds the roles to the list: a call without a grant
// fails there, and so does a grant that nobody uses. `go test ./integration/access -update`
// writes the list anew. It holds tests only.
package access

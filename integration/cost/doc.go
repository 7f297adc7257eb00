// Package cost says what Punctual costs: it runs jobs of each lane over the memory twins, which
// count what AWS would bill, and multiplies by list prices. The page infra/cost.md is made of
// that, and a test fails when the page and the code disagree; `go test ./integration/cost
// -update` writes it anew. It holds tests only.
package cost

// Package cost computes what Punctual costs: it runs jobs of each lane over the in-memory implementations, which
// count what AWS would bill, and multiplies by list prices. The page infra/cost.md is the result,
// and a test fails when the page and the code disagree; `go test ./integration/cost -update`
// rewrites it. The package holds tests only.
package cost

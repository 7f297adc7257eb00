// Package price holds what AWS charges, and what a job takes of it. The page of costs and the estimates of usage are
// computed from the same numbers. Nothing in here reads a clock or calls a store.
//
// What always holds: a price is a list price of us-east-1 in dollars, without free tiers; the page of costs names the
// sources. What a job takes is counted by integration/cost, whose test fails when it is no longer so.
package price

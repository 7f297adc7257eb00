// Package function invokes Lambda functions for jobs of kind lambda, and asks whether a tenant
// may invoke them.
//
// What always holds: one call of Invoke is one invocation. The SDK's own retries are off, since
// a function whose answer was lost may have run, and must not run twice unseen. The failure is an
// attempt's outcome, and the job's retry policy decides. A function belongs to the tenant that
// its tag contract.TenantTag names, or to all if it says contract.AnyTenant; one without the tag to no tenant.
//
// How it fails: by the kinds of package fault. A function that ran and failed is no error of
// Invoke: it comes back by name, as Lambda calls it.
package function

// Package principal reads the tags of the roles and users that sign requests, where a deployment
// knows its callers by their signatures (auth=iam).
//
// What always holds: only principals of the account that the tags are read from are looked up; the
// tags are those of the role or user itself, never those that a session brought along. An answer is
// believed for [Age].
//
// How it fails: by the kinds of package fault. A principal that is not there is a fault.NotFound.
package principal

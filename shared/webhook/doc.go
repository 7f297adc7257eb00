// Package webhook says which events a tenant's webhooks ask for, and how they fare.
//
// What always holds: nothing here acts. A webhook is disabled only by failures of deliveries that were made for it as
// it is now, and only if none in three days succeeded.
//
// How it fails: with a fault.Undecodable for an item that cannot be read.
package webhook

// Package webhooks serves webhooks and the deliveries to them.
package webhooks

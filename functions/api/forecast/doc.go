// Package forecast serves the starts that are expected of a tenant's jobs.
package forecast

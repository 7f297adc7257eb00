// Package stats serves what has become of the jobs of a tenant, step by step of time.
package stats

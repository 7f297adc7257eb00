// Package operations serves operations: work on many jobs that goes on by itself, shows its progress and can be
// stopped. What makes one is served by the package of its resource.
package operations

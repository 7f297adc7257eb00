// Package limits serves limits of work and the use of their keys.
package limits

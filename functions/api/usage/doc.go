// Package usage serves what jobs used, and what that costs about.
package usage

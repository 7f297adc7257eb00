// Package jobtest makes jobs for the tests of other packages: numbered, alike in every run, and
// placed as if they had just been accepted.
package jobtest

// Package clock hands in the time, so that a skewed or a virtual clock can stand
// where the system's would. Only the instant is abstracted: waiting is done with
// package time, which testing/synctest virtualises by itself.
package clock

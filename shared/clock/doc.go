// Package clock provides the time, so that a skewed or a virtual clock can replace the system's.
// Only the instant is abstracted: waiting uses package time, which testing/synctest virtualises.
package clock

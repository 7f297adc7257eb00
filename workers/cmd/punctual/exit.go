package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"punctual/shared/client"
)

// The exit codes. run --wait, dag run --wait and dag watch end with that of the job or run.
const (
	exitDone        = 0
	exitRefused     = 1   // the API refused it, or a check failed
	exitUsage       = 2   // the arguments or a file are wrong, or the API says so (400)
	exitUnreached   = 3   // the API cannot be reached, or what answers is not Punctual
	exitForbidden   = 4   // the token is missing, expired, or lacks a scope
	exitFailed      = 10  // the job is DEAD, or the run or operation FAILED
	exitCancelled   = 11  // the job or run is CANCELLED, or the operation STOPPED
	exitExpired     = 12  // the job is EXPIRED
	exitSkipped     = 13  // the job is SKIPPED
	exitInterrupted = 130 // Ctrl-C; what runs goes on
)

// usage is an error in the arguments or in a file.
type usage struct{ error }

// ended is a job or run that ended with a status.
type ended string

func (e ended) Error() string { return "it is " + string(e) }

// interrupted says after Ctrl-C what goes on.
type interrupted string

func (i interrupted) Error() string { return string(i) }

// Is makes it a context.Canceled.
func (i interrupted) Is(target error) bool { return target == context.Canceled }

// code is the exit code of an error.
func code(err error) int {
	if err == nil {
		return exitDone
	}
	if e, ok := errors.AsType[ended](err); ok {
		return map[ended]int{"SUCCEEDED": exitDone, "CANCELLED": exitCancelled, "EXPIRED": exitExpired,
			"SKIPPED": exitSkipped, "DEAD": exitFailed, "FAILED": exitFailed, "STOPPED": exitCancelled}[e]
	}
	if _, ok := errors.AsType[usage](err); ok {
		return exitUsage
	}
	if errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	if _, ok := errors.AsType[*notSignedIn](err); ok {
		return exitForbidden
	}
	if errors.Is(err, client.Unauthenticated) || errors.Is(err, client.Forbidden) {
		return exitForbidden
	}
	if e, ok := errors.AsType[*client.Error](err); ok {
		switch {
		case e.Code == "":
			return exitUnreached
		case e.Status == http.StatusBadRequest:
			return exitUsage
		}
	}
	if _, ok := errors.AsType[*url.Error](err); ok {
		return exitUnreached
	}
	return exitRefused
}

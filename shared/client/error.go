package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"punctual/shared/client/rest"
)

// Code is a code of a problem. It never changes its meaning. As an error it is for errors.Is.
type Code string

func (c Code) Error() string { return string(c) }

// Error is a request that the API refused or could not answer.
type Error struct {
	// Problem is what the API said. Code is "" when the answer was no problem of Punctual's, such as
	// that of a proxy; Status is set all the same.
	rest.Problem
	// RetryAfter is when the same request may be made again, from when the answer came; 0 if it was
	// not said.
	RetryAfter time.Duration
}

// Error is the code, the sentence and every violation, one a line when there are several.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Code != "" {
		b.WriteString(string(e.Code) + ": ")
	}
	b.WriteString(e.Detail)
	violations := e.Violations()
	if len(violations) == 1 && violations[0].Detail == e.Detail {
		fmt.Fprintf(&b, " (%s)", where(violations[0]))
		return b.String()
	}
	for _, m := range violations {
		fmt.Fprintf(&b, "\n  %s: %s", where(m), m.Detail)
	}
	return b.String()
}

// where is the place of a violation, and what would have been taken there.
func where(m rest.ProblemError) string {
	if m.Allowed == nil || *m.Allowed == "" {
		return m.Pointer
	}
	return m.Pointer + ", allowed: " + *m.Allowed
}

// Violations returns every violation in the request: its position (a JSON pointer into the body, or the name of
// a parameter), its code, a sentence, and what would have been taken. None is no error.
func (e *Error) Violations() []rest.ProblemError {
	if e.Errors == nil {
		return nil
	}
	return *e.Errors
}

// Is reports whether target is the code of the problem, or of one of its violations.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	if !ok || code == "" {
		return false
	}
	if string(e.Code) == string(code) {
		return true
	}
	for _, m := range e.Violations() {
		if string(m.Code) == string(code) {
			return true
		}
	}
	return false
}

// problem reads a refusal.
func problem(answer *http.Response, text []byte) *Error {
	var e Error
	if answer.StatusCode < 400 || !strings.Contains(answer.Header.Get("Content-Type"), "json") ||
		json.Unmarshal(text, &e.Problem) != nil ||
		e.Code == "" {
		e = *notOurs(answer, text)
	}
	e.Status, e.RetryAfter = int64(answer.StatusCode), retryAfter(answer.Header)
	return &e
}

// notOurs is an answer that Punctual did not make. API Gateway's own are a line of JSON.
func notOurs(answer *http.Response, text []byte) *Error {
	e := &Error{Problem: rest.Problem{Status: int64(answer.StatusCode), Title: http.StatusText(answer.StatusCode)}}
	e.Detail = fmt.Sprintf("%s answered %d, and not as Punctual does; is the address right?",
		answer.Request.URL.Redacted(), answer.StatusCode)
	var gateway struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(text, &gateway) == nil && gateway.Message != "" {
		e.Detail = fmt.Sprintf("%s answered %d: %s", answer.Request.URL.Redacted(), answer.StatusCode, gateway.Message)
	}
	if answer.StatusCode >= 300 && answer.StatusCode < 400 {
		e.Detail = fmt.Sprintf(
			"%s answered %d, a redirect, which was not followed: the API has none, so the address is "+
				"not its own",
			answer.Request.URL.Redacted(),
			answer.StatusCode,
		)
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		e.Code = rest.ProblemCode(Unauthenticated)
	case http.StatusForbidden:
		e.Code = rest.ProblemCode(Forbidden)
	case http.StatusTooManyRequests:
		e.Code = rest.ProblemCode(RateLimited)
	}
	return e
}

// isNetwork reports whether the network failed, rather than the request.
func isNetwork(err error) bool {
	_, ok := errors.AsType[*url.Error](err)
	return ok
}

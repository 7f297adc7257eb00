package function_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/aws/awstest"
	"punctual/shared/aws/function"
	"punctual/shared/fault"
)

func TestFunctions_TellHowAnInvocationEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer awstest.Answer
		output string
		failed string
		kind   fault.Kind
	}{
		"it succeeded": {awstest.OK(`{"ok":true}`), `{"ok":true}`, "", ""},
		"it failed": {awstest.Answer{Body: `{"errorMessage":"no"}`,
			Header: http.Header{"X-Amz-Function-Error": {"Unhandled"}}},
			`{"errorMessage":"no"}`, "Unhandled", ""},
		"it is absent": {awstest.Fault(http.StatusNotFound, "ResourceNotFoundException", ""), "", "",
			fault.NotFound},
		"too many run": {awstest.Fault(http.StatusTooManyRequests, "TooManyRequestsException", ""), "", "",
			fault.Throttled},
		"its input is too large": {awstest.Fault(http.StatusRequestEntityTooLarge, "RequestTooLargeException", ""), "",
			"", fault.TooLarge},
		"it is not ours": {awstest.Fault(http.StatusForbidden, "AccessDeniedException", ""), "", "",
			fault.Forbidden},
		"Lambda is down": {awstest.Fault(http.StatusInternalServerError, "ServiceException", ""), "", "",
			fault.Unavailable},
		"nobody answered": {awstest.Lost(), "", "", fault.Unavailable},
	} {
		service := awstest.New(func(call awstest.Call) awstest.Answer {
			if call.Op != "POST /2015-03-31/functions/charge/invocations" || call.Body != `{"n":1}` {
				t.Errorf("call %s with %s", call.Op, call.Body)
			}
			return c.answer
		})
		out, failed, err := function.New(service.Config()).Invoke(t.Context(), "charge", []byte(`{"n":1}`))
		if string(out) != c.output || failed != c.failed || fault.KindOf(err) != c.kind {
			t.Errorf("%s: got %s, %q, %v; want %s, %q, kind %q", name, out, failed, err, c.output, c.failed, c.kind)
		}
		if service.Calls() != 1 {
			t.Errorf("%s: it was sent %d times: it may have run as often", name, service.Calls())
		}
	}
}

// account is a Lambda with one function, its tags as the test has them.
type account struct {
	owner string // "" for no tag
	tags  int    // how often they were asked for
}

func (a *account) answer(c awstest.Call) awstest.Answer {
	switch {
	case c.Op == "GET /2015-03-31/functions/absent/configuration":
		return awstest.Fault(http.StatusNotFound, "ResourceNotFoundException", "")
	case strings.HasSuffix(c.Op, "/configuration"):
		return awstest.OK(`{"FunctionArn":"arn:aws:lambda:us-east-1:1:function:charge:live"}`)
	case c.Op == "GET /2017-03-31/tags/arn:aws:lambda:us-east-1:1:function:charge":
		a.tags++
		if a.owner == "" {
			return awstest.OK(`{"Tags":{"other":"acme"}}`)
		}
		return awstest.OK(`{"Tags":{"punctual:tenant":"` + a.owner + `"}}`)
	}
	return awstest.Fault(http.StatusBadRequest, "InvalidParameterValueException", "")
}

func TestFunctions_BelongToWhomTheirTagNames(t *testing.T) {
	t.Parallel()
	//nolint:gocritic // the space is what is tried
	for owner, want := range map[string]bool{"acme": true, "*": true, "Acme": false, "acme ": false, "acm": false,
		"zeta": false, "": false} {
		a := &account{owner: owner}
		got, err := function.New(awstest.New(a.answer).Config()).Allowed(t.Context(), "charge:live", "acme")
		if got != want || err != nil {
			t.Errorf("tagged %q acme may invoke it: %v, %v; want %v", owner, got, err, want)
		}
	}
	a := &account{owner: ""}
	if got, err := function.New(awstest.New(a.answer).Config()).Allowed(t.Context(), "charge", ""); got || err != nil {
		t.Errorf("no tenant may invoke what has no tag: %v, %v", got, err)
	}
	if _, err := function.New(awstest.New(a.answer).Config()).Allowed(t.Context(), "absent",
		"acme"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("an absent function: %v; want not found", err)
	}
}

func TestFunctions_KeepAnOwnerForAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &account{owner: "acme"}
		functions := function.New(awstest.New(a.answer).Config())
		allowed := func() bool {
			ok, err := functions.Allowed(t.Context(), "charge", "acme")
			if err != nil {
				t.Fatal(err)
			}
			return ok
		}
		allowed()
		a.owner = "zeta"
		if !allowed() || a.tags != 1 {
			t.Errorf("asked %d times within the minute", a.tags)
		}
		time.Sleep(function.OwnerAge)
		if allowed() || a.tags != 2 {
			t.Errorf("the new owner was not seen after a minute, asked %d times", a.tags)
		}
	})
}

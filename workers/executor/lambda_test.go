package executor_test

import (
	"context"
	"errors"
	"testing"

	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/tenant"
	"punctual/workers/executor"
)

var errNotThere = fault.New(fault.NotFound, nil, "looking")

// functions are open to one tenant each.
type functions map[string]function

type function struct {
	tenant    tenant.ID
	answer    func(input string) (output, functionError string, err error)
	allowedBy error
}

func (f functions) Allowed(_ context.Context, name string, t tenant.ID) (bool, error) {
	fn, ok := f[name]
	if !ok {
		return false, errNotThere
	}
	return fn.tenant == t, fn.allowedBy
}

func (f functions) Invoke(_ context.Context, name string, input []byte) ([]byte, string, error) {
	output, functionError, err := f[name].answer(string(input))
	return []byte(output), functionError, err
}

func answering(output, functionError string, err error) function {
	return function{tenant: "acme", answer: func(string) (string, string, error) { return output, functionError, err }}
}

//proof:of 16
func TestLambda_AnswersWhatTheFunctionAnswers(t *testing.T) {
	t.Parallel()
	mirror := function{tenant: "acme", answer: func(in string) (string, string, error) { return in, "", nil }}
	lambda := executor.Standard(executor.Options{Functions: functions{
		"mirror": mirror, "arn:aws:lambda:eu-central-1:123456789012:function:mirror:live": mirror,
		"silent": answering("", "", nil), "odd": answering("done", "", nil),
		"binary": answering("\xff\xfe", "", nil), "binary-json": answering("\"\xff\"", "",
			nil), "big": answering("9007199254740993", "", nil),
	}})[job.ExecutorLambda]
	for payload, want := range map[string]string{
		`{"function":"mirror","input":{"a":[1,"<"]}}`: `{"a":[1,"<"]}`,
		`{"function":"mirror","input":null}`:          `null`,
		`{"function":"mirror"}`:                       `{}`,
		`{"function":"arn:aws:lambda:eu-central-1:123456789012:function:mirror:live","input":1}`: `1`,
		`{"function":"silent"}`:      ``,
		`{"function":"odd"}`:         `"done"`,
		`{"function":"big"}`:         `9007199254740993`,
		`{"function":"binary"}`:      `{"body":"//4=","encoding":"base64"}`,
		`{"function":"binary-json"}`: `{"body":"Iv8i","encoding":"base64"}`,
	} {
		got, err := lambda.Run(t.Context(), work(payload))
		if err != nil || string(got) != want {
			t.Errorf("%s gave %s, %v; want %s", payload, got, err, want)
		}
	}
}

func TestLambda_SaysWhatBecomesOfAFailure(t *testing.T) {
	t.Parallel()
	throttled := fault.New(fault.Throttled, nil, "invoking")
	forbidden := answering("", "", nil)
	forbidden.allowedBy = fault.New(fault.Throttled, nil, "reading tags")
	all := functions{
		"foreign": {tenant: "other", answer: func(string) (string, string,
			error) {
			panic("invoked a function of another tenant")
		}},
		"failing":   answering(`{"errorMessage":"card 4242 declined","errorType":"CardDeclined"}`, "Unhandled", nil),
		"babbling":  answering(`{"errorType":"card 4242 declined"}`, "Handled", nil),
		"throttled": answering("", "", throttled), "broken": answering("", "", errors.New("weird")),
		"toolarge": answering("", "", fault.New(fault.TooLarge, nil, "invoking")), "gone": answering("", "",
			errNotThere), "tagless": forbidden,
	}
	for _, c := range []struct {
		payload, code, message string
		permanent              bool
	}{
		{`{"function":"foreign"}`, executor.CodeForbiddenFunction, "", true},
		{`{"function":"absent"}`, executor.CodeForbiddenFunction, "", true},
		{`{"function":"failing"}`, executor.CodeFunctionFailed, "the function failed: CardDeclined", false},
		{`{"function":"babbling"}`, executor.CodeFunctionFailed, "the function failed", false},
		{`{"function":"throttled"}`, executor.CodeFunctionRefused, "", false},
		{`{"function":"tagless"}`, executor.CodeFunctionRefused, "", false},
		{`{"function":"broken"}`, executor.CodeFunctionRefused, "", false},
		{`{"function":"toolarge"}`, executor.CodeFunctionRefused, "", true},
		{`{"function":"gone"}`, executor.CodeFunctionRefused, "", true},
		{`{"function":""}`, job.CodeUnreadablePayload, "", true},
		{`{"function":"a b"}`, job.CodeUnreadablePayload, "", true},
		{`{"function":"../x"}`, job.CodeUnreadablePayload, "", true},
		{`{"function":"failing","inputs":1}`, job.CodeUnreadablePayload, "", true},
		{`{"function":"failing"} {}`, job.CodeUnreadablePayload, "", true},
		{`[]`, job.CodeUnreadablePayload, "", true},
		{``, job.CodeUnreadablePayload, "", true},
	} {
		_, err := executor.Standard(executor.Options{Functions: all})[job.ExecutorLambda].Run(t.Context(),
			work(c.payload))
		f := requireFailure(t, err, c.code, c.permanent)
		if c.message != "" && f.Message != c.message {
			t.Errorf("%s: message %q; want %q", c.payload, f.Message, c.message)
		}
	}
}

func TestLambda_CannotTellAForeignFunctionFromAnAbsentOne(t *testing.T) {
	t.Parallel()
	all := functions{"foreign": {tenant: "other"}}
	lambda := executor.Standard(executor.Options{Functions: all})[job.ExecutorLambda]
	_, foreign := lambda.Run(t.Context(), work(`{"function":"foreign"}`))
	_, absent := lambda.Run(t.Context(), work(`{"function":"absent"}`))
	if foreign.Error() != absent.Error() {
		t.Errorf("%q and %q differ", foreign, absent)
	}
}

func TestLambda_FailsForGoodWhereThereAreNoFunctions(t *testing.T) {
	t.Parallel()
	_, err := executor.Standard(executor.Options{})[job.ExecutorLambda].Run(t.Context(), work(`{"function":"f"}`))
	requireFailure(t, err, executor.CodeNotAvailable, true)
}

func TestLambda_GivesTheReasonWhyItsContextEnded(t *testing.T) {
	t.Parallel()
	cause := errors.New("lease lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	all := functions{"slow": {tenant: "acme", answer: func(string) (string, string, error) {
		cancel(cause)
		return "", "", ctx.Err()
	}}}
	_, err := executor.Standard(executor.Options{Functions: all})[job.ExecutorLambda].Run(ctx,
		work(`{"function":"slow"}`))
	if !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

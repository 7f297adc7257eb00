package executor

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"punctual/shared/clock"
	kind "punctual/shared/executor"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/text"
)

// lambda calls a function that is open to the tenant and answers with the function's answer.
type lambda struct {
	functions Invoker
	clock     clock.Clock
}

func newLambda(o Options) Executor { return lambda{functions: o.Functions, clock: o.Clock} }

// functionName is a name or an ARN, with or without a version or alias.
var functionName = text.Pattern(`^[a-zA-Z0-9_:$-]{1,170}$`)

func (l lambda) Run(ctx context.Context, w Work) (json.RawMessage, error) {
	var p kind.LambdaPayload
	if !decode(w.Payload, &p) || !functionName().MatchString(p.Function) {
		return nil, never(job.CodeUnreadablePayload, `the payload wants {"function":"name","input":…}`)
	}
	if l.functions == nil {
		return nil, never(CodeNotAvailable, "this deployment calls no functions")
	}
	if len(p.Input) == 0 {
		p.Input = json.RawMessage("{}")
	}

	allowed, err := l.functions.Allowed(ctx, p.Function, w.Key.Tenant)
	switch {
	case fault.KindOf(err) == fault.NotFound, err == nil && !allowed:
		// The same answer for both, or a tenant could find out which functions there are.
		return nil, never(CodeForbiddenFunction, "there is no function of that name that is open to this tenant")
	case err != nil:
		return nil, notInvoked(ctx, err)
	}

	log := callLog{w.log(), l.clock.Now(), l.clock, nil}
	log.Info("function invoked", "function", p.Function)
	output, functionError, err := l.functions.Invoke(ctx, p.Function, p.Input)
	switch {
	case err != nil:
		err = notInvoked(ctx, err)
		log.failed(err)
		return nil, err
	case functionError != "":
		failure := &Failure{Code: CodeFunctionFailed, Message: "the function failed" + errorType(output)}
		log.Warn("function failed", "error", failure.Message, "took", log.took())
		return nil, failure
	}
	log.Info("function answered", "took", log.took())
	switch {
	case len(output) == 0:
		return nil, nil
	case !utf8.Valid(output): // also within JSON, whose strings would be kept with other characters
		return text.JSON(struct {
			Body     string `json:"body"`
			Encoding string `json:"encoding"`
		}{base64.StdEncoding.EncodeToString(output), inBase64})
	case !json.Valid(output):
		// The work is done, whatever the answer looks like.
		return text.JSON(string(output))
	}
	return output, nil
}

// notInvoked says whether trying to call the function again may help.
func notInvoked(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("calling the function: %w", context.Cause(ctx))
	}
	return &Failure{
		Code: CodeFunctionRefused, Message: refusal("the function could not be called",
			err), Permanent: final(err), Err: err,
	}
}

// typeName is what runtimes call a kind of error; a sentence could hold a payload.
var typeName = text.Pattern(`^[a-zA-Z0-9_.:-]{1,100}$`)

// errorType is the kind of error that the function named, if it named one.
func errorType(output []byte) string {
	var said struct {
		Type string `json:"errorType"`
	}
	if json.Unmarshal(output, &said) != nil || !typeName().MatchString(said.Type) {
		return ""
	}
	return ": " + said.Type
}

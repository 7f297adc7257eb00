package executor

import (
	"encoding/json"

	"punctual/shared/text"
)

// Lambda is the name of the executor, as tasks give it.
const Lambda = "lambda"

// LambdaPayload is what a job of the lambda executor calls. Without an input it is {}.
type LambdaPayload struct {
	Function string          `json:"function"`
	Input    json.RawMessage `json:"input,omitempty" doc:"Input of the function"`
}

const functionPattern = `^(arn:aws[a-z-]*:lambda:[a-z0-9-]+:\d{12}:function:)?[a-zA-Z0-9_-]{1,64}` +
	`(:(\$LATEST|[a-zA-Z0-9_-]{1,128}))?$`

var lambdaFields = fieldsOf[LambdaPayload]()

var function = text.Pattern(functionPattern)

var lambdaKind = Kind{
	Name: Lambda, BuiltIn: true, Payload: LambdaPayload{}, Check: checkLambda, About: "invokes a Lambda function",
	Bounds: map[string]Fields{"LambdaPayload": {
		"function": {
			"format": "lambda-function", "pattern": functionPattern, "minLength": 1,
			"description": "Name, name:alias, or ARN; the function's tag punctual:tenant must allow the tenant",
		},
	}},
}

func checkLambda(r Reader, v Value, _ Site) {
	f := r.Object(v, lambdaFields)
	if f == nil {
		return
	}
	if fn, ok := f["function"]; !ok {
		r.Missing(v.Pointer, "function")
	} else if s, ok := r.Text(fn); ok && !function().MatchString(s) {
		r.Violation(fn.Pointer, CodeInvalidValue, "the name of a function, name:alias, or its ARN",
			"this is not a Lambda function")
	}
}

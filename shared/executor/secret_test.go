package executor_test

import (
	"fmt"
	"strings"
	"testing"

	"punctual/shared/executor"
)

func TestDefinedSecrets_AreThoseThatTheDefinitionNames(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:punctual/punctual/acme/hook-AbCdEf"
	for name, c := range map[string]struct{ payload, want string }{
		"none":                                {`{"url":"https://example.com"}`, ""},
		"a bearer token":                      {`{"auth":{"bearer":"` + arn + `"}}`, "auth.bearer"},
		"a key that signs":                    {`{"sign_with":"` + arn + `"}`, "sign_with"},
		"headers":                             {`{"headers":{"X-B":"` + arn + `","X-A":"` + arn + `","X-C":"text"}}`, "headers.X-A headers.X-B"},
		"a header by an expression":           {`{"headers":{"X-A":"${nodes.a.result.body}"}}`, ""},
		"an ARN with an expression":           {`{"headers":{"X-A":"arn:aws:secretsmanager:eu:1:secret:punctual/punctual/acme/${item}"}}`, ""},
		"a header by a parameter":             {`{"headers":{"X-A":"${params.key}"}}`, ""},
		"headers by an expression":            {`{"headers":"${nodes.a.result.headers}","sign_with":"` + arn + `"}`, "sign_with"},
		"a bearer by a parameter":             {`{"auth":{"bearer":"${params.key}"}}`, "auth.bearer"},
		"a key by a deep parameter":           {`{"sign_with":"${ params.keys.hook }"}`, "sign_with"},
		"a bearer by a result":                {`{"auth":{"bearer":"${nodes.a.result}"}}`, ""},
		"a bearer by a parameter or a result": {`{"auth":{"bearer":"${params.x ? params.key : nodes.a.result}"}}`, ""},
		"a bearer by two parameters":          {`{"auth":{"bearer":"${params.a}${params.b}"}}`, ""},
		"auth by an expression":               {`{"auth":"${nodes.a.result}"}`, ""},
		"the payload by an expression":        {`"${nodes.a.result}"`, ""},
		"a payload that is no object":         {`[1]`, ""},
	} {
		t.Run("finds in a definition: "+name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(executor.DefinedSecrets(executor.HTTP, []byte(c.payload)), " "); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
	if got := executor.DefinedSecrets(executor.Echo, []byte(`{"sign_with":"`+arn+`"}`)); got != nil {
		t.Errorf("an echo names %v", got)
	}
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf(`"X-%02d":%q`, i, arn))
	}
	if got := executor.DefinedSecrets(executor.HTTP, []byte(`{"headers":{`+strings.Join(many, ",")+`}}`)); len(got) !=
		executor.MaxSecrets {
		t.Errorf("%d are listed", len(got))
	}
}

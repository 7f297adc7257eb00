package authorizer_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"punctual/functions/authorizer"
)

const method = "arn:aws:execute-api:eu-central-1:123456789012:abc123/v1/GET/jobs/01JDMG"

type event = events.APIGatewayCustomAuthorizerRequestTypeRequest

func TestHandle_AllowsTheWholeStageAndSaysWhoAsks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, header := range []string{"Authorization", "authorization", "AUTHORIZATION"} {
		for _, scheme := range []string{"Bearer ", "bearer ", "BEARER  "} {
			for _, ev := range []event{
				{MethodArn: method, Headers: map[string]string{header: scheme + rs(t, good())}},
				{MethodArn: method, MultiValueHeaders: map[string][]string{header: {scheme + rs(t, good())}}},
				{MethodArn: method, Headers: map[string]string{header: scheme + rs(t, good())},
					MultiValueHeaders: map[string][]string{header: {scheme + rs(t, good())}}},
			} {
				got, err := b.Handle(context.Background(), ev)
				if err != nil {
					t.Fatalf("%s: %s: %v; %s", header, scheme, err, b.log)
				}
				raw, _ := json.Marshal(got)
				want := `{"principalId":"user-1","policyDocument":{"Version":"2012-10-17","Statement":` +
					`[{"Action":["execute-api:Invoke"],"Effect":"Allow",` +
					`"Resource":["arn:aws:execute-api:eu-central-1:123456789012:abc123/v1/*/*"]}]},` +
					`"context":{"scopes":"punctual:read punctual:write","subject":"user-1","tenant":"acme"}}`
				if string(raw) != want {
					t.Fatalf("got  %s\nwant %s", raw, want)
				}
			}
		}
	}
}

func TestHandle_NamesATokenWithoutSubjectByItsTenant(t *testing.T) {
	t.Parallel()
	b := setup(t)
	got, err := b.Handle(context.Background(),
		event{MethodArn: method, Headers: map[string]string{"Authorization": "Bearer " + rs(t, with("sub", nil))}})
	if err != nil || got.PrincipalID != "acme" {
		t.Errorf("got %q, %v", got.PrincipalID, err)
	}
}

//proof:of S36 F36
func TestHandle_RefusesAllInTheSameWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	token := rs(t, good())
	for name, ev := range map[string]event{
		"no headers":      {MethodArn: method},
		"an empty header": {MethodArn: method, Headers: map[string]string{"Authorization": ""}},
		"no scheme":       {MethodArn: method, Headers: map[string]string{"Authorization": token}},
		"no token":        {MethodArn: method, Headers: map[string]string{"Authorization": "Bearer "}},
		"another scheme":  {MethodArn: method, Headers: map[string]string{"Authorization": "Basic " + token}},
		"another header":  {MethodArn: method, Headers: map[string]string{"X-Authorization": "Bearer " + token}},
		"two tokens in a header": {MethodArn: method,
			Headers: map[string]string{"Authorization": "Bearer " + token + ", Bearer " + token}},
		"two headers": {MethodArn: method,
			MultiValueHeaders: map[string][]string{"Authorization": {"Bearer " + token, "Bearer x"}}},
		"two spellings": {MethodArn: method,
			Headers: map[string]string{"Authorization": "Bearer " + token, "authorization": "Bearer x"}},
		"headers that disagree": {MethodArn: method, Headers: map[string]string{"Authorization": "Bearer " + token},
			MultiValueHeaders: map[string][]string{"Authorization": {"Bearer x"}}},
		"in the query": {MethodArn: method,
			QueryStringParameters: map[string]string{"access_token": token, "authorization": "Bearer " + token}},
		"no API": {Headers: map[string]string{"Authorization": "Bearer " + token}},
		"every API": {MethodArn: "arn:aws:execute-api:eu-central-1:123456789012:*/*/GET/",
			Headers: map[string]string{"Authorization": "Bearer " + token}},
		"another service": {MethodArn: "arn:aws:s3:eu-central-1:123456789012:abc/v1/GET/",
			Headers: map[string]string{"Authorization": "Bearer " + token}},
		"a token that is none": {MethodArn: method,
			Headers: map[string]string{"Authorization": "Bearer eyJhbGciOiJub25lIn0.e30."}},
	} {
		b.log.Reset()
		got, err := b.Handle(context.Background(), ev)
		if err != authorizer.ErrUnauthorized { //nolint:errorlint // it must be that very error
			t.Errorf("%s: got %v", name, err)
		}
		if got.PrincipalID != "" || got.PolicyDocument.Statement != nil || got.Context != nil {
			t.Errorf("%s: got %+v", name, got)
		}
		if !strings.Contains(b.log.String(), "cause=") || strings.Contains(b.log.String(), token[:40]) {
			t.Errorf("%s: the log says %s", name, b.log)
		}
	}
}

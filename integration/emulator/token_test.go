package emulator_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"punctual/integration/emulator/environment"
)

// pool is what auth=cognito adds to the data stack, with the emulator's endpoint for tokens.
const pool = `{"Resources":{
"Pool":{"Type":"AWS::Cognito::UserPool","Properties":{"UserPoolName":"punctual"}},
"Server":{"Type":"AWS::Cognito::UserPoolResourceServer","Properties":{"UserPoolId":{"Ref":"Pool"},
	"Identifier":"punctual","Name":"punctual","Scopes":[{"ScopeName":"read","ScopeDescription":"reads"},
	{"ScopeName":"write","ScopeDescription":"writes"},{"ScopeName":"tenant.acme","ScopeDescription":"of acme"}]}},
"Client":{"Type":"AWS::Cognito::UserPoolClient","DependsOn":"Server","Properties":{"UserPoolId":{"Ref":"Pool"},
	"ClientName":"acme","GenerateSecret":true,"AllowedOAuthFlows":["client_credentials"],
	"AllowedOAuthFlowsUserPoolClient":true,
	"AllowedOAuthScopes":["punctual/read","punctual/write","punctual/tenant.acme"]}}},
"Outputs":{"UserPool":{"Value":{"Ref":"Pool"}},"TokenUrl":{"Value":%q}}}`

// What `make token` runs, from the stack's outputs to the token.
func TestToken_IsOfTheTenantAndItsScopes(t *testing.T) {
	t.Parallel()
	needCLI(t)
	e := environment.MiniStack(t)
	const prefix = "punctual-token"
	file := filepath.Join(t.TempDir(), "pool.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, pool, e.URL+"/oauth2/token"), 0o600); err != nil {
		t.Fatal(err)
	}
	paste(t, e, prefix, `aws cloudformation create-stack --stack-name $PREFIX-data --template-body file://`+file+`
		aws cloudformation wait stack-create-complete --stack-name $PREFIX-data`)
	token := paste(t, e, prefix, "sh ../../infra/token.sh dev "+environment.Region+
		` "prefix=$PREFIX" acme "read write"`)
	part := strings.Split(strings.TrimSpace(token), ".")
	if len(part) != 3 {
		t.Fatalf("it printed %q", token)
	}
	text, err := base64.RawURLEncoding.DecodeString(part[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims struct {
		Scope string
		Use   string `json:"token_use"`
	}
	if err := json.Unmarshal(text, &claims); err != nil {
		t.Fatal(err)
	}
	if claims.Use != "access" || claims.Scope != "punctual/tenant.acme punctual/read punctual/write" &&
		claims.Scope != "punctual/read punctual/write punctual/tenant.acme" {
		t.Errorf("the token says %s", text)
	}
	said, err := shell(t, "-c", "AWS_ENDPOINT_URL="+e.URL+" sh ../../infra/token.sh dev "+environment.Region+
		" prefix="+prefix+" globex read")
	if err == nil || !strings.Contains(said, "has no client of tenant globex") {
		t.Errorf("of a tenant without a client it says %q, %v", said, err)
	}
}

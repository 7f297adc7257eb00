package emulator_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"punctual/integration/emulator/environment"
)

// elsewhere are the commands of the documents' blocks for an account that do not run here, by how they begin, with what
// shows them instead.
var elsewhere = map[string]string{
	"make bootstrap": "integration/emulator/deploy bootstraps", "make deploy": "integration/emulator/deploy deploys",
	"make diff":    "integration/emulator/deploy compares",
	"make destroy": "needs the cluster, which no emulator has", "make account": "integration/account runs its parts",
	`curl -H "Authorization: Bearer $TOKEN"`: "integration/emulator/deploy sends such requests to a deployment",
	`JOB=$(curl -s -H`:                       "integration/emulator/deploy sends such requests to a deployment",
	"curl --aws-sigv4":                       "integration/emulator/deploy signs requests to a deployment",
	"curl https://example.eu.auth0.com":      "needs an account of Auth0's",
	"make -C ../punctual":                    "integration/emulator/deploy deploys",
}

// account is what the documents' commands find: the stacks of a deployment with a user pool, and a role.
const account = `export AWS_DEFAULT_REGION=eu-central-1 GITHUB_TOKEN=x TOKEN_URL=%[1]s/oauth2/token
aws cloudformation create-stack --stack-name punctual-dev-data --template-body file://%[2]s/data.json
aws cloudformation create-stack --stack-name punctual-dev-flow --template-body file://%[2]s/flow.json
aws cloudformation wait stack-create-complete --stack-name punctual-dev-data
aws cloudformation wait stack-create-complete --stack-name punctual-dev-flow
POOL=$(aws cloudformation describe-stacks --stack-name punctual-dev-data --output text \
  --query "Stacks[0].Outputs[?OutputKey=='UserPool'].OutputValue")
CLIENT_ID=$(aws cognito-idp list-user-pool-clients --user-pool-id $POOL --output text \
  --query UserPoolClients[0].ClientId)
CLIENT_SECRET=$(aws cognito-idp describe-user-pool-client --user-pool-id $POOL --client-id $CLIENT_ID --output text \
  --query UserPoolClient.ClientSecret)
aws cognito-idp create-group --user-pool-id $POOL --group-name punctual/tenant.acme
aws iam create-role --role-name billing --assume-role-policy-document '{"Version":"2012-10-17","Statement":[]}'
cd ../..
`

var fenced = regexp.MustCompile("(?ms)^```sh aws\n(.*?)^```$")

// The documents' commands for an account run from their pages, or a name stands for them above.
func TestDocuments_HaveCommandsThatRun(t *testing.T) {
	t.Parallel()
	needCLI(t)
	e := environment.MiniStack(t)
	dir, script, used, n := t.TempDir(), strings.Builder{}, map[string]bool{}, 0
	scopes := strings.Replace(strings.Replace(pool, `{"ScopeName":"tenant.acme"`,
		`{"ScopeName":"admin","ScopeDescription":"all"},{"ScopeName":"tenant.acme"`, 1), `"punctual/write",`,
		`"punctual/write","punctual/admin",`, 1)
	for name, body := range map[string]string{
		"data.json": fmt.Sprintf(scopes, e.URL+"/oauth2/token"),
		"flow.json": `{"Resources":{"Q":{"Type":"AWS::SQS::Queue"}},"Outputs":{"ApiUrl":{"Value":"https://x/v1/"}}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprintf(&script, account, e.URL, dir)
	for _, page := range documents(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range fenced.FindAllStringSubmatch(string(text), -1) {
			for command := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
				if begin := shownElsewhere(command); begin != "" {
					used[begin] = true
					continue
				}
				n++
				script.WriteString(strings.ReplaceAll(command, "--user-pool-id POOL", `--user-pool-id "$POOL"`))
			}
		}
	}
	script.WriteString("test -n \"$TOKEN\" -a \"$API\" = https://x/v1/\naws iam list-role-tags --role-name billing\n" +
		"aws cognito-idp admin-list-groups-for-user --user-pool-id $POOL --username ada@example.com\n" +
		"aws secretsmanager list-secrets --query 'SecretList[].Name'\n")
	said := paste(t, e, "punctual-dev", script.String())
	for _, want := range []string{`"Value": "acme"`, `"GroupName": "punctual/tenant.acme"`,
		`"punctual/punctual-dev/acme/github"`, `"access_token"`} {
		if !strings.Contains(said, want) {
			t.Errorf("afterwards there is no %s:\n%s", want, said)
		}
	}
	if n < 8 {
		t.Errorf("only %d commands ran", n)
	}
	for begin := range elsewhere {
		if !used[begin] {
			t.Errorf("no document has a command %q any more", begin)
		}
	}
}

func shownElsewhere(command string) string {
	for begin := range elsewhere {
		if strings.HasPrefix(command, begin) {
			return begin
		}
	}
	return ""
}

// documents are the pages with commands for an account but for the runbook's.
func documents(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../../shared/docs/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d documents, %v", len(pages), err)
	}
	return append(pages, "../../infra/auth.md")
}

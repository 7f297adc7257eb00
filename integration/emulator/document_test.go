package emulator_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"punctual/integration/emulator/environment"
)

// elsewhere are the commands of the documents that do not run here, by how they begin, with what shows them instead.
var elsewhere = map[string]string{
	"make bootstrap": "integration/emulator/deploy bootstraps", "make deploy": "integration/emulator/deploy deploys",
	"make diff": "integration/emulator/deploy compares", "make reindex": "integration/emulator/deploy calls it",
	"make run": "integration/docs serves by it", "make cli": "integration/docs builds the same command",
	"make dev": "integration/docs serves by it", "make seed": "workers/laptop puts the same examples",
	"make token": "its block says make -s token, which runs",
	"make synth": "infra's tests make each target's templates",
	"npx cdk":    "it is what make runs", "aws configure sso": "asks a person",
	"kubectl ":     "needs the cluster; integration/docs holds its names to the manifests",
	"make destroy": "needs the cluster, which no emulator has", "make account": "integration/account runs its parts",
	`curl -H "Authorization: Bearer $TOKEN"`: "integration/emulator/deploy sends such requests to a deployment",
	`JOB=$(curl -s -H`:                       "integration/emulator/deploy sends such requests to a deployment",
	"curl --aws-sigv4":                       "integration/emulator/deploy signs requests to a deployment",
	"curl https://example.eu.auth0.com":      "needs an account of Auth0's",
	"make -C ../punctual":                    "integration/emulator/deploy builds and deploys",
	"CGO_ENABLED=0 GOOS=linux":               "compiles for minutes; integration/docs builds it for itself",
}

// account is what the documents' commands find: the stacks of a deployment with a user pool, and a role.
const account = `export AWS_DEFAULT_REGION=eu-central-1 GITHUB_TOKEN=x TOKEN_URL=%[1]s/oauth2/token
aws cloudformation create-stack --stack-name punctual-dev-data --enable-termination-protection \
  --template-body file://%[2]s/data.json
aws cloudformation create-stack --stack-name punctual-dev-flow --template-body file://%[2]s/flow.json
aws cloudformation create-stack --stack-name punctual-dev-fleet --template-body file://%[2]s/flow.json
aws cloudformation wait stack-create-complete --stack-name punctual-dev-data
aws cloudformation wait stack-create-complete --stack-name punctual-dev-flow
POOL=$(aws cloudformation describe-stacks --stack-name punctual-dev-data --output text \
  --query "Stacks[0].Outputs[?OutputKey=='UserPool'].OutputValue")
CLIENT_ID=$(aws cognito-idp list-user-pool-clients --user-pool-id $POOL --output text \
  --query UserPoolClients[0].ClientId)
CLIENT_SECRET=$(aws cognito-idp describe-user-pool-client --user-pool-id $POOL --client-id $CLIENT_ID --output text \
  --query UserPoolClient.ClientSecret)
aws cognito-idp create-group --user-pool-id $POOL --group-name punctual/tenant.acme
aws dynamodb create-table --table-name punctual-dev-jobs --billing-mode PAY_PER_REQUEST --deletion-protection-enabled \
  --key-schema AttributeName=pk,KeyType=HASH --attribute-definitions AttributeName=pk,AttributeType=S
aws iam create-role --role-name billing --assume-role-policy-document '{"Version":"2012-10-17","Statement":[]}'
cd ../..
`

var within = regexp.MustCompile("`((?:aws|kubectl|make|npx) [^`\n]+)`")

var fenced = regexp.MustCompile("(?ms)^```sh aws\n(.*?)^```$")

// The documents' commands for an account run from their pages, those within a line too, or a name represents them
// above. The runbook's for the AWS CLI run in package deploy, and its blocks in this one.
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
	pages, err := filepath.Glob(filepath.Join(runbook, "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	fmt.Fprintf(&script, account, e.URL, dir)
	for _, page := range append(documents(t), pages...) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		var commands []string
		for _, block := range fenced.FindAllStringSubmatch(string(text), -1) {
			commands = slices.AppendSeq(commands, strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")))
		}
		for _, m := range within.FindAllStringSubmatch(string(text), -1) {
			if inRunbook(page) && strings.HasPrefix(m[1], "aws ") {
				continue
			}
			commands = append(commands, m[1]+"\n")
		}
		for _, command := range commands {
			if begin := shownElsewhere(command); begin != "" {
				used[begin] = true
				continue
			}
			n++
			script.WriteString(strings.ReplaceAll(command, "--user-pool-id POOL", `--user-pool-id "$POOL"`))
		}
	}
	script.WriteString("test -n \"$TOKEN\" -a \"$API\" = https://x/v1/\naws iam list-role-tags --role-name billing\n" +
		"aws cognito-idp admin-list-groups-for-user --user-pool-id $POOL --username ada@example.com\n" +
		"aws secretsmanager list-secrets --query 'SecretList[].Name'\n" +
		"aws cloudformation list-stacks --stack-status-filter DELETE_COMPLETE --query 'StackSummaries[].StackName'\n" +
		"aws cloudformation describe-stacks --stack-name $PREFIX-data " +
		"--query 'Stacks[0].{protects:EnableTerminationProtection}'\n" +
		"aws dynamodb describe-table --table-name $PREFIX-jobs --query 'Table.{keeps:DeletionProtectionEnabled}'\n")
	said := paste(t, e, "punctual-dev", script.String())
	for _, want := range []string{`"Value": "acme"`, `"GroupName": "punctual/tenant.acme"`,
		`"punctual/punctual-dev/acme/github"`, `"access_token"`, `"punctual-dev-fleet"`,
		`"protects": false`, `"keeps": false`} {
		if !strings.Contains(said, want) {
			t.Errorf("afterwards there is no %s:\n%s", want, said)
		}
	}
	if n < 11 {
		t.Errorf("only %d commands ran", n)
	}
	for begin := range elsewhere {
		if !used[begin] {
			t.Errorf("no document has a command %q any more", begin)
		}
	}
}

func inRunbook(page string) bool { return strings.HasPrefix(page, runbook) }

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
	others, err := filepath.Glob("../../infra/*.md")
	if err != nil || len(others) == 0 {
		t.Fatalf("%d documents of infra, %v", len(others), err)
	}
	return append(pages, others...)
}

package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"punctual/integration/emulator/environment"
)

// line is a command of a page, by how it begins. The page has it in a block or within a line of its text, and if more
// than once, always the same.
type line struct{ page, begins string }

// The lines of the documents by which everything here is deployed, as they would be typed.
var (
	bootstraps = line{"shared/docs/deploying.md", "make bootstrap "}
	compares   = line{"shared/docs/deploying.md", "make diff "}
	deploys    = line{"shared/docs/deploying.md", "make deploy TARGET=prod "}
	rollsBack  = line{"shared/docs/deploying.md", "make deploy STACKS="}
	holds      = line{"infra/runbook/restore.md", "make deploy SETTINGS='hold=yes'"}
	swapsIn    = line{"infra/runbook/restore.md", "make deploy SETTINGS='hold=no jobs_stream="}
	listsOf    = line{"infra/runbook/README.md", "aws lambda list-versions-by-function "}
	pointsBack = line{"infra/runbook/README.md", "aws lambda update-alias "}
	withPool   = line{"infra/auth.md", "make deploy TARGET=dev REGION=eu-central-1 SETTINGS='auth=cognito"}
	withRoles  = line{"infra/auth.md", "make deploy TARGET=dev REGION=eu-central-1 SETTINGS=auth=iam"}
)

// here is all that a line has otherwise on the emulator than in an account. words are those that belong to the
// deployment, which an operator adds to every line.
func (d *deployment) here(words string) *strings.Replacer {
	return strings.NewReplacer(
		"TARGET=prod", "TARGET=emulator",
		"TARGET=dev", "TARGET=emulator",
		"REGION=eu-central-1", "REGION="+environment.Region,
		"ACCOUNT=123456789012", "ACCOUNT="+account,
		"ISSUER=https://id.example.com", "ISSUER="+d.issuer.url,
		"$PREFIX-NAME", "$PREFIX-status",
		"--function-version N", "--function-version "+d.before,
		"jobs_stream=ARN", "jobs_stream="+d.stream,
		"SETTINGS='", "SETTINGS='"+words+" ",
		"SETTINGS=auth=iam", "SETTINGS='"+words+" auth=iam'",
	)
}

// account is that of the emulator.
const account = "000000000000"

var (
	inText  = regexp.MustCompile("`((?:make|aws) [^`\n]+)`")
	inBlock = regexp.MustCompile("(?ms)^```sh aws\n(.*?)^```$")
)

// find returns the line as the page has it.
func (l line) find() (string, error) {
	text, err := os.ReadFile(filepath.Join(root, l.page))
	if err != nil {
		return "", err
	}
	var all []string
	for _, block := range inBlock.FindAllStringSubmatch(string(text), -1) {
		all = append(all, strings.Split(strings.ReplaceAll(block[1], "\\\n", " "), "\n")...)
	}
	for _, m := range inText.FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	found := ""
	for _, command := range all {
		switch {
		case !strings.HasPrefix(command, l.begins) || command == found:
		case found != "":
			return "", fmt.Errorf("%s has two lines that begin %q: %s, and %s", l.page, l.begins, found, command)
		default:
			found = command
		}
	}
	if found == "" {
		return "", fmt.Errorf("%s has no line that begins %q", l.page, l.begins)
	}
	return found, nil
}

// typed runs a line of the documents, as an operator whose functions are built already.
func (d *deployment) typed(ctx context.Context, l line, functions string, more ...string) (string, error) {
	command, err := l.find()
	if err != nil {
		return "", err
	}
	words := strings.Join(append([]string{"prefix=" + prefix, "functions=" + functions}, d.words...), " ")
	environ := slices.Concat(more, []string{"TARGET=emulator", "SETTINGS=" + words, "APPROVAL=never",
		"CDK_OUTPUT=" + filepath.Join(d.folder, "cdk.out"), "CDK_NOTICES=false", "CDK_VERSION_REPORTING=false"})
	if !strings.Contains(command, "auth=") {
		environ = append(environ, d.callers...)
	}
	return d.shell(ctx, d.here(words).Replace(command), environ...)
}

// shell runs commands as an operator of this deployment.
func (d *deployment) shell(ctx context.Context, commands string, more ...string) (string, error) {
	environ := append(d.aws.Environ(), "PREFIX="+prefix, "AWS_PAGER=", "AWS_DEFAULT_REGION="+environment.Region)
	return execute(ctx, root, append(environ, more...), "bash", "-euo", "pipefail", "-c", commands)
}

// deploy runs a line that deploys, with the bootstraps of a folder, and notes the stacks' outputs.
func (d *deployment) deploy(ctx context.Context, l line, functions string) (string, error) {
	file := filepath.Join(d.folder, "outputs.json")
	said, err := d.typed(ctx, l, functions, "CDK_OUTPUTS_FILE="+file)
	if err != nil {
		return "", err
	}
	body, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var stacks map[string]map[string]string
	if err := json.Unmarshal(body, &stacks); err != nil {
		return "", fmt.Errorf("reading the outputs: %w", err)
	}
	for _, outputs := range stacks {
		for name, value := range outputs {
			d.outputs[name] = value
		}
	}
	return said, nil
}

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"punctual/integration/emulator/environment"
)

// inLine finds the commands within the lines of a page.
var inLine = regexp.MustCompile("`(aws [^`]+)`")

// absent are the services of the runbook's commands that the emulator does not have.
var absent = []string{"aws deploy ", "aws pipes "}

// Blocks of commands, those of the restore, run in package emulator.
func TestRunbook_HasCommandsThatRunOnTheDeployment(t *testing.T) {
	d := setup(t)
	if _, err := exec.LookPath("aws"); err != nil {
		environment.SkipOrFail(t, "the AWS CLI is not here")
	}
	pages, err := filepath.Glob(filepath.Join(root, "infra/runbook/*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	const live = "N=$(aws lambda get-alias --function-name punctual-status --name live --output text " +
		"--query FunctionVersion)\n"
	ran := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range inLine.FindAllStringSubmatch(string(text), -1) {
			command := strings.NewReplacer("$PREFIX", prefix, "-NAME", "-status", "--function-version N",
				`--function-version "$N"`).Replace(m[1])
			without := false
			for _, service := range absent {
				without = without || strings.HasPrefix(command, service)
			}
			if without {
				continue
			}
			ran++
			said, err := d.run(t.Context(), "bash", "-euc", "export AWS_PAGER= AWS_DEFAULT_REGION="+environment.Region+
				"\n"+live+command)
			if err != nil || strings.TrimSpace(said) == "" {
				t.Errorf("%s: %s\n%s, %v", filepath.Base(page), m[1], said, err)
			}
		}
	}
	if ran < 5 {
		t.Errorf("only %d commands ran", ran)
	}
}

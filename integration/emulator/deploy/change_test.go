package deploy

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"punctual/integration/story"
)

// otherVersion is a folder of bootstraps in which one function is another build of the same
// source: it stands for the next version.
func (d *deployment) otherVersion(t *testing.T, changed string) string {
	t.Helper()
	into := filepath.Join(d.room, "functions-next")
	entries, err := os.ReadDir(d.functions())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		body, err := os.ReadFile(filepath.Join(d.functions(), e.Name(), "bootstrap"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(into, e.Name()), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(into, e.Name(), "bootstrap"), body, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.buildFunction(t.Context(), changed, into, "-ldflags=-w"); err != nil { // with its symbols
		t.Fatal(err)
	}
	return into
}

// code is what a function's program is known by.
func (d *deployment) code(t *testing.T, function string) string {
	t.Helper()
	f, err := lambda.NewFromConfig(d.aws.Config()).GetFunctionConfiguration(t.Context(), &lambda.GetFunctionConfigurationInput{FunctionName: aws.String(prefix + "-" + function)})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(f.CodeSha256)
}

// submit puts jobs that are due over the next seconds, and returns their ids.
func submit(a *story.API, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = a.Post(story.Object{"task": "echo", "payload": story.Object{"n": i}, "delay": (time.Duration(2+i) * time.Second).String()})
	}
	return ids
}

func TestADeployOfTheSameChangesNothing(t *testing.T) {
	d := setup(t)
	command, err := filepath.Abs(filepath.Join(root, cdkCommand))
	if err != nil {
		t.Fatal(err)
	}
	// The templates of the deploy are compared as they are; that the app gives the same ones
	// again is held by its own tests.
	if out, err := d.run(t.Context(), command, "diff", "--all", "--fail", "--app", filepath.Join(d.room, "cdk.out")); err != nil {
		t.Errorf("after the deploy there is still something to do: %v\n%s", err, out)
	}
}

func TestAFunctionIsReplacedAndPutBackWhileJobsAreDue(t *testing.T) {
	d := setup(t)
	d.explain(t, "api-write", "stream", "status", "sweeper")
	d.work(t, "short")
	a := d.api(t, "initech", everything...)
	next := d.otherVersion(t, "status")

	first := d.code(t, "status")
	before := submit(a, 20)
	if err := d.deployFrom(t.Context(), next, prefix+"-flow", "--exclusively"); err != nil {
		t.Fatal(err)
	}
	if d.code(t, "status") == first {
		t.Error("the other version is not what stands there now")
	}
	during := submit(a, 10)
	if err := d.deployFrom(t.Context(), d.functions(), prefix+"-flow", "--exclusively"); err != nil { // back to the version before
		t.Fatal(err)
	}
	if d.code(t, "status") != first {
		t.Error("the version before does not stand there again")
	}
	after := submit(a, 5)
	for _, id := range append(append(before, during...), after...) {
		a.Await(id, "SUCCEEDED", 4*time.Minute)
	}
}

package deploy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"punctual/integration/story"
)

// code returns the hash of the program of a function's live version.
func (d *deployment) code(t *testing.T, function string) string {
	t.Helper()
	f, err := lambda.NewFromConfig(d.aws.Config()).GetFunctionConfiguration(t.Context(),
		&lambda.GetFunctionConfigurationInput{
			FunctionName: aws.String(prefix + "-" + function), Qualifier: aws.String("live"),
		})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(f.CodeSha256)
}

// submit posts jobs that are due over the next seconds, and returns their ids.
func submit(a *story.API, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = a.Post(story.Object{"task": "echo", "payload": story.Object{"n": i},
			"delay": (time.Duration(2+i) * time.Second).String()})
	}
	return ids
}

func TestDeploy_OfTheSameChangesNothing(t *testing.T) {
	d := setup(t)
	said, err := d.deploy(t.Context(), deploys, d.functions())
	if err != nil {
		t.Fatal(err)
	}
	for _, stack := range []string{"data", "flow", "watch"} {
		if !strings.Contains(said, prefix+"-"+stack+" (no changes)") {
			t.Errorf("the same line again changes %s:\n%s", stack, said)
		}
	}
}

//proof:of 190
func TestDeploy_ReplacesFunctionsByTheLastReleaseWhileJobsAreDue(t *testing.T) {
	d := setup(t)
	d.explain(t, "api-write", "stream", "status", "sweeper")
	d.work(t, "short")
	a := d.api(t, "initech", everything...)
	next := d.released(t)

	first := d.code(t, "status")
	before := submit(a, 20)
	if _, err := d.deploy(t.Context(), rollsBack, next); err != nil {
		t.Fatal(err)
	}
	if d.code(t, "status") == first {
		t.Error("the other version is not deployed")
	}
	during := submit(a, 10)
	if _, err := d.deploy(t.Context(), rollsBack, d.functions()); err != nil { // to the version before
		t.Fatal(err)
	}
	if d.code(t, "status") != first {
		t.Error("the version before is not deployed")
	}
	after := submit(a, 5)
	for _, id := range append(append(before, during...), after...) {
		a.Await(id, "SUCCEEDED", 4*time.Minute)
	}
}

// A canary leaves two versions at work for minutes, each with messages of the other in flight: here those of the last
// release and the current ones.
func TestDeploy_LetsTheLastReleaseWorkSideBySide(t *testing.T) {
	d := setup(t)
	d.explain(t, "api-write", "stream", "status", "sweeper")
	d.work(t, "short")
	a, client, ctx := d.api(t, "hooli", everything...), lambda.NewFromConfig(d.aws.Config()), t.Context()
	name := aws.String(prefix + "-status")
	live, err := client.GetAlias(ctx, &lambda.GetAliasInput{FunctionName: name, Name: aws.String("live")})
	if err != nil {
		t.Fatal(err)
	}
	first := d.code(t, "status")
	before := submit(a, 10)
	if _, err := d.deploy(ctx, rollsBack, d.released(t)); err != nil {
		t.Fatal(err)
	}
	if d.code(t, "status") == first {
		t.Fatal("the other version is not what is called now")
	}
	// The version before takes reports as well, as it does while a canary lasts.
	sources, err := client.ListEventSourceMappings(ctx,
		&lambda.ListEventSourceMappingsInput{FunctionName: aws.String(prefix + "-status:live")})
	if err != nil || len(sources.EventSourceMappings) != 1 {
		t.Fatalf("status is fed by %d sources, %v", len(sources.EventSourceMappings), err)
	}
	old, err := client.CreateEventSourceMapping(ctx, &lambda.CreateEventSourceMappingInput{
		FunctionName:   aws.String(prefix + "-status:" + aws.ToString(live.FunctionVersion)),
		EventSourceArn: sources.EventSourceMappings[0].EventSourceArn, BatchSize: aws.Int32(10),
		FunctionResponseTypes: []types.FunctionResponseType{types.FunctionResponseTypeReportBatchItemFailures},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range append(before, submit(a, 20)...) {
		a.Await(id, "SUCCEEDED", 4*time.Minute)
	}
	if _, err := client.DeleteEventSourceMapping(ctx,
		&lambda.DeleteEventSourceMappingInput{UUID: old.UUID}); err != nil {
		t.Fatal(err)
	}
	// Back in seconds: the alias names the version before.
	versions, err := d.typed(ctx, listsOf, d.functions())
	if err != nil || !slices.Contains(strings.Fields(versions), aws.ToString(live.FunctionVersion)) {
		t.Fatalf("the versions are said to be %s, %v", versions, err)
	}
	d.before = aws.ToString(live.FunctionVersion)
	if _, err := d.typed(ctx, pointsBack, d.functions()); err != nil {
		t.Fatal(err)
	}
	if d.code(t, "status") != first {
		t.Error("the version before is not called again")
	}
	a.Await(submit(a, 1)[0], "SUCCEEDED", 4*time.Minute)
	if _, err := d.deploy(ctx, rollsBack, d.functions()); err != nil { // as it was
		t.Fatal(err)
	}
}

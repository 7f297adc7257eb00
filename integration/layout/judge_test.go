package layout

import (
	"path"
	"strings"
	"testing"
	"testing/fstest"
)

// in writes a Go file of one import into a folder.
func in(file, imports string) string {
	pkg := path.Base(path.Dir(file))
	if pkg == "lambda" || strings.Contains(file, "/cmd/") {
		pkg = "main"
	}
	return "package " + pkg + "\n\nimport _ \"" + imports + "\"\n"
}

func TestEachImportIsJudgedByItsRoom(t *testing.T) {
	t.Parallel()
	const allowed = ""
	for _, c := range []struct {
		file, imports string
		want          string // a part of the breach
	}{
		// core
		{"shared/job/a.go", "punctual/shared/fault", allowed},
		{"shared/job/a.go", "punctual/shared/contract", allowed},
		{"shared/job/a.go", "punctual/shared/horizon", allowed},
		{"shared/job/jobtest/a.go", "punctual/shared/job", allowed},
		{"shared/job/a.go", "punctual/shared/clock", "the core judges"},
		{"shared/dag/a.go", "punctual/shared/telemetry", "the core judges"},
		{"shared/message/a.go", "punctual/shared/memory", "the core judges"},
		{"shared/job/a.go", "punctual/shared/store", "the core judges"},
		{"shared/tenant/a.go", "punctual/functions/api", "the core judges"},
		{"shared/horizon/a.go", "github.com/aws/aws-sdk-go-v2/aws", "only importer of the SDK"},
		{"shared/job/a.go", "github.com/robfig/cron/v3", "whose door is shared/calendar"},
		{"shared/calendar/a.go", "github.com/robfig/cron/v3", allowed},
		{"shared/calendar/a.go", "github.com/teambition/rrule-go", allowed},
		{"shared/job/a.go", "golang.org/x/sync/errgroup", "core and ground need only the standard library"},
		{"shared/job/a.go", "time", allowed},
		{"shared/job/a.go", "math/rand/v2", "no dice"},
		{"shared/job/a.go", "crypto/rand", "no dice"},
		{"shared/job/a.go", "os", "no clock, no dice"},
		{"shared/job/a.go", "net/http", "no clock, no dice"},
		{"shared/job/a.go", "net/url", allowed},
		{"shared/job/a.go", "log/slog", "no clock, no dice"},
		{"shared/job/a_test.go", "os", allowed},
		{"shared/job/a_test.go", "pgregory.net/rapid", allowed},
		{"shared/job/a.go", "pgregory.net/rapid", "nothing that runs carries a test library"},
		{"shared/job/a_test.go", "punctual/shared/memory", "the core judges"},
		// ground
		{"shared/fault/a.go", "errors", allowed},
		{"shared/contract/a.go", "punctual/shared/job", "everybody stands on the ground"},
		{"shared/telemetry/a.go", "punctual/shared/clock", "everybody stands on the ground"},
		// store
		{"shared/store/a.go", "punctual/shared/job", allowed},
		{"shared/store/a_test.go", "punctual/shared/memory", allowed},
		{"shared/store/a.go", "punctual/shared/memory", "a table that it is handed"},
		{"shared/store/a.go", "punctual/shared/aws/table", "a table that it is handed"},
		// adapters
		{"shared/aws/table/a.go", "github.com/aws/aws-sdk-go-v2/service/dynamodb", allowed},
		{"shared/aws/table/a.go", "github.com/aws/smithy-go", allowed},
		{"shared/aws/table/a.go", "punctual/shared/aws/session", allowed},
		{"shared/aws/table/a.go", "punctual/shared/job", allowed},
		{"shared/aws/table/a_test.go", "punctual/shared/conformance", allowed},
		{"shared/aws/table/a.go", "punctual/shared/conformance", "an adapter translates"},
		{"shared/aws/queue/a.go", "punctual/shared/memory", "an adapter translates"},
		{"shared/aws/queue/a.go", "punctual/functions/dispatch", "an adapter translates"},
		{"shared/aws/queue/a.go", "punctual/workers/worker", "an adapter translates"},
		// memory and conformance
		{"shared/memory/a.go", "punctual/shared/item", allowed},
		{"shared/memory/a_test.go", "punctual/shared/conformance", allowed},
		{"shared/memory/a.go", "punctual/shared/aws/table", "without seeing it"},
		{"shared/memory/a.go", "github.com/aws/aws-sdk-go-v2/aws", "only importer of the SDK"},
		{"shared/conformance/a.go", "testing", allowed},
		{"shared/conformance/a.go", "pgregory.net/rapid", allowed},
		{"shared/conformance/a.go", "punctual/shared/memory", "could bend to that one"},
		{"shared/conformance/a.go", "punctual/shared/aws/queue", "could bend to that one"},
		// stages and batch
		{"functions/api/a.go", "punctual/shared/job", allowed},
		{"functions/api/a.go", "punctual/shared/store", allowed},
		{"functions/status/a.go", "punctual/functions/batch", allowed},
		{"functions/status/a.go", "github.com/aws/aws-lambda-go/events", allowed},
		{"functions/status/a_test.go", "punctual/shared/memory", allowed},
		{"functions/status/a.go", "punctual/shared/memory", "stages meet only in the table and the queues"},
		{"functions/status/a.go", "punctual/functions/redrive", "stages meet only in the table and the queues"},
		{"functions/status/a_test.go", "punctual/functions/redrive", "stages meet only in the table and the queues"},
		{"functions/stream/a.go", "punctual/workers/worker", "stages meet only in the table and the queues"},
		{"functions/stream/a.go", "punctual/shared/aws/table", "stages meet only in the table and the queues"},
		{"functions/stream/a.go", "github.com/aws/aws-lambda-go/lambda", "only a door starts a Lambda"},
		{"functions/stream/a.go", "github.com/aws/aws-lambda-go/lambdacontext", "the door's business"},
		{"functions/stream/a.go", "github.com/aws/aws-sdk-go-v2/aws", "only importer of the SDK"},
		{"functions/api/a.go", "github.com/danielgtaylor/huma/v2/adapters/humago", allowed},
		{"functions/status/a.go", "github.com/danielgtaylor/huma/v2", "REST is spoken by one stage"},
		{"functions/authorizer/a.go", "github.com/lestrrat-go/jwx/v3/jwt", allowed},
		{"functions/authorizer/a_test.go", "github.com/lestrrat-go/jwx/v3/jwk", allowed},
		{"functions/api/a.go", "github.com/lestrrat-go/jwx/v3/jwt", "tokens are read in one place"},
		{"functions/batch/a.go", "punctual/functions/status", "so it may know none"},
		{"functions/engine/decide/a.go", "punctual/shared/store", allowed},
		{"functions/engine/decide/a.go", "punctual/shared/memory", "so it may know none"},
		{"functions/sweeper/a.go", "punctual/functions/engine/decide", allowed},
		{"functions/api/a.go", "testing", "outside tests"},
		{"functions/status/a.go", "github.com/google/uuid", "has no door"},
		// doors
		{"functions/promoter/lambda/main.go", "punctual/functions/promoter", allowed},
		{"functions/promoter/lambda/main.go", "punctual/shared/aws/session", allowed},
		{"functions/promoter/lambda/main.go", "punctual/shared/telemetry", allowed},
		{"functions/promoter/lambda/main.go", "github.com/aws/aws-lambda-go/lambda", allowed},
		{"functions/api/lambda/main.go", "github.com/awslabs/aws-lambda-go-api-proxy/httpadapter", allowed},
		{"functions/promoter/lambda/main.go", "punctual/functions/sweeper", "a door wires its own stage"},
		{"functions/promoter/lambda/main.go", "punctual/shared/job", "a door wires its own stage"},
		{"functions/promoter/lambda/main.go", "punctual/shared/memory", "a door wires its own stage"},
		{"functions/promoter/lambda/main.go", "github.com/aws/aws-sdk-go-v2/aws", "only importer of the SDK"},
		// workers
		{"workers/worker/a.go", "punctual/shared/job", allowed},
		{"workers/executor/a.go", "punctual/workers/worker", allowed},
		{"workers/executor/a.go", "github.com/standard-webhooks/standard-webhooks/libraries/go", allowed},
		{"workers/worker/a.go", "github.com/standard-webhooks/standard-webhooks/libraries/go", "only the http executor signs"},
		{"workers/worker/a.go", "golang.org/x/sync/errgroup", allowed},
		{"workers/worker/a_test.go", "go.uber.org/goleak", allowed},
		{"workers/worker/a_test.go", "punctual/shared/memory", allowed},
		{"workers/worker/a.go", "punctual/shared/memory", "workers know the contract of a job"},
		{"workers/worker/a.go", "punctual/functions/status", "workers know the contract of a job"},
		{"workers/executor/a.go", "punctual/shared/aws/secret", "workers know the contract of a job"},
		{"workers/executor/a.go", "github.com/aws/aws-sdk-go-v2/service/lambda", "only importer of the SDK"},
		{"workers/executor/a.go", "github.com/aws/aws-lambda-go/events", "have their own words"},
		{"workers/cmd/worker/main.go", "punctual/workers/handler", allowed},
		{"workers/cmd/worker/main.go", "punctual/shared/aws/queue", allowed},
		{"workers/cmd/worker/main.go", "punctual/shared/memory", "the process of the worker wires it"},
		{"workers/cmd/worker/main.go", "punctual/functions/status", "the process of the worker wires it"},
		// infra
		{"infra/stack/a.go", "punctual/shared/contract", allowed},
		{"infra/stack/a.go", "punctual/infra/construct", allowed},
		{"infra/main.go", "punctual/infra/target", allowed},
		{"infra/stack/a.go", "github.com/aws/aws-cdk-go/awscdk/v2", allowed},
		{"infra/stack/a.go", "punctual/shared/job", "and nowhere else, or a deploy"},
		{"infra/stack/a_test.go", "punctual/functions/stream", "and nowhere else, or a deploy"},
		{"shared/contract/a.go", "github.com/aws/aws-cdk-go/awscdk/v2", "nothing that runs may need it"},
		// integration
		{"integration/system/a.go", "punctual/functions/status", allowed},
		{"integration/system/a.go", "punctual/shared/memory", allowed},
		{"integration/cmd/local/main.go", "punctual/integration/system", allowed},
		{"integration/emulator/a_test.go", "github.com/aws/aws-sdk-go-v2/service/sqs", allowed},
		{"integration/sim/a.go", "pgregory.net/rapid", allowed},
		{"integration/system/a.go", "punctual/infra/stack", "infra is proved by its own template tests"},
		{"functions/api/a_test.go", "punctual/integration/system", "stages meet only in the table and the queues"},
		{"shared/memory/a_test.go", "punctual/integration/sim", "the memory twins"},
		// no room
		{"shared/util/a.go", "errors", "stands in no room"},
		{"functions/reporter/a.go", "errors", "stands in no room"},
		{"cmd/a.go", "errors", "stands in no room"},
	} {
		s, err := parse(c.file, []byte(in(c.file, c.imports)))
		if err != nil {
			t.Fatal(err)
		}
		got := append(judgePlace(s), judgeImport(s, c.imports)...)
		switch {
		case c.want == allowed && len(got) != 0:
			t.Errorf("%s may import %s, but: %q", c.file, c.imports, got)
		case c.want != allowed && (len(got) != 1 || !strings.Contains(got[0], c.want)):
			t.Errorf("%s importing %s gave %q; want one breach that says %q", c.file, c.imports, got, c.want)
		}
	}
}

func TestABreachOfAnyOtherKindIsFound(t *testing.T) {
	t.Parallel()
	introduced := func(dir string) (string, *fstest.MapFile) {
		return dir + "/doc.go", &fstest.MapFile{Data: []byte("// Package " + path.Base(dir) + " is for this.\npackage " + path.Base(dir) + "\n")}
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string // a part of the only breach; empty when there must be none
	}{
		"a clean room": {map[string]string{
			"shared/job/a.go": "package job\n\nimport \"time\"\n\nfunc Late(now, due time.Time) bool { return now.After(due) }\n"}, ""},
		"the core looking at the clock": {map[string]string{
			"shared/job/a.go": "package job\n\nimport \"time\"\n\nvar late = time.Now\n"}, "shared/job/a.go (core) uses time.Now"},
		"a test of the core looking at the clock": {map[string]string{
			"shared/job/a_test.go": "package job\n\nimport \"time\"\n\nvar late = time.Now\n"}, ""},
		"a door that decides": {map[string]string{
			"functions/api/lambda/main.go": "package main\n\nfunc main() { if true { println() } }\n"}, "(door) decides something"},
		"a straight door": {map[string]string{
			"functions/api/lambda/main.go": "package main\n\nfunc main() { println() }\n"}, ""},
		"a name that says nothing": {map[string]string{
			"shared/memory/helpers/doc.go": "// Package helpers helps.\npackage helpers\n"}, "says where its lines were put"},
		"a package in another's folder": {map[string]string{
			"shared/job/b.go": "package work\n"}, "package work stands in folder job"},
		"a room without introduction": {map[string]string{
			"functions/status/a.go": "package status\n"}, "functions/status has no doc.go"},
		"an introduction in another file": {map[string]string{
			"functions/status/a.go": "// Package status settles.\npackage status\n"}, "functions/status has no doc.go"},
		"an introduction of something else": {map[string]string{
			"functions/status/doc.go": "// This settles.\npackage status\n"}, "functions/status has no doc.go"},
		"a program needs no introduction": {map[string]string{
			"integration/cmd/local/main.go": "package main\n"}, ""},
		"a library in two rooms": {map[string]string{
			"functions/api/a.go":  "package api\n\nimport _ \"github.com/santhosh-tekuri/jsonschema/v6\"\n",
			"workers/worker/a.go": "package worker\n\nimport _ \"github.com/santhosh-tekuri/jsonschema/v6\"\n"},
			"is imported in functions/api and workers/worker"},
		"a library twice in one room": {map[string]string{
			"functions/api/a.go": "package api\n\nimport _ \"github.com/santhosh-tekuri/jsonschema/v6\"\n",
			"functions/api/b.go": "package api\n\nimport _ \"github.com/santhosh-tekuri/jsonschema/v6\"\n"}, ""},
		"what the go command passes over": {map[string]string{
			"infra/testdata/a.go": "package anything\n", ".ci/tools/a.go": "package anything\n", "node_modules/x/a.go": "package x\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := fstest.MapFS{}
			for _, dir := range []string{"shared/job", "functions/api", "workers/worker"} {
				at, doc := introduced(dir)
				repo[at] = doc
			}
			for at, text := range c.files {
				repo[at] = &fstest.MapFile{Data: []byte(text)}
			}
			files, err := read(repo)
			if err != nil {
				t.Fatal(err)
			}
			got := judge(files)
			if c.want == "" && len(got) != 0 {
				t.Errorf("breaches found: %q", got)
			}
			if c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
				t.Errorf("got %q; want one breach that says %q", got, c.want)
			}
		})
	}
}

func TestAForeignNameAtTheTopIsFound(t *testing.T) {
	t.Parallel()
	if got := judgeTop([]string{"shared", "go.mod", ".github", "LICENSE"}); len(got) != 0 {
		t.Errorf("a good top level breaks: %q", got)
	}
	if got := judgeTop([]string{"shared", "pkg"}); len(got) != 1 || !strings.HasPrefix(got[0], "pkg stands at the top") {
		t.Errorf("got %q; want a breach that names pkg", got)
	}
}

func TestEveryRoomHasItsRule(t *testing.T) {
	t.Parallel()
	for _, f := range folders {
		if rules[f.is].reason == "" {
			t.Errorf("the rule of %s (%s) gives no reason", f.pattern, f.is)
		}
	}
	for _, l := range libraries {
		if l.reason == "" {
			t.Errorf("the door of %s gives no reason", l.path)
		}
		if !l.oneRoom && len(l.doors) == 0 && !l.tests {
			t.Errorf("%s has no door at all", l.path)
		}
	}
}

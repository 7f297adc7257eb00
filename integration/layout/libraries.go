package layout

import (
	"slices"
	"strings"
)

// library is a foreign module (or a part of one) and the folders that may import it.
// Nothing foreign is imported anywhere else, so that leaving a library is the
// work of one room.
type library struct {
	path    string   // import path; what lies below it belongs to it
	doors   []string // folders, as in rooms.go
	tests   bool     // any test, the conformance suite and integration may import it, too
	oneRoom bool     // instead of doors: any one folder, but one only
	reason  string
}

// libraries is searched from the top: a part stands before its whole.
var libraries = []library{
	{path: "github.com/aws/aws-lambda-go/lambda", doors: []string{"functions/*/lambda"},
		reason: "only a door starts a Lambda: a stage that did could not be pumped in-process by make run and the simulation"},
	{path: "github.com/aws/aws-lambda-go/events", doors: []string{"functions"}, tests: true,
		reason: "the shape of an event is Lambda's; the core and the workers have their own words for it"},
	{path: "github.com/aws/aws-lambda-go", doors: []string{"functions/*/lambda"},
		reason: "what else Lambda's library offers (its context, its configuration) is the door's business"},
	{path: "github.com/awslabs/aws-lambda-go-api-proxy", doors: []string{"functions/api"},
		reason: "only the REST stage is reached through API Gateway's proxy events"},
	{path: "github.com/aws/aws-sdk-go-v2", doors: []string{"shared/aws", "integration", "infra/quota"},
		reason: "shared/aws is the only importer of the SDK, so that make run needs no AWS and every call has a twin in memory; a deploy asks its account for quotas"},
	{path: "github.com/aws/smithy-go", doors: []string{"shared/aws", "integration"},
		reason: "it is the SDK's own ground and shares its door"},
	{path: "github.com/aws/aws-cdk-go", doors: []string{"infra"},
		reason: "CDK drags in a Node process; nothing that runs may need it"},
	{path: "github.com/aws/constructs-go", doors: []string{"infra"}, reason: "it is part of CDK"},
	{path: "github.com/aws/jsii-runtime-go", doors: []string{"infra"}, reason: "it is part of CDK"},
	{path: "github.com/cdklabs", doors: []string{"infra"}, reason: "it is part of CDK"},
	{path: "github.com/danielgtaylor/huma/v2", doors: []string{"functions/api"},
		reason: "REST is spoken by one stage"},
	{path: "github.com/lestrrat-go/jwx/v3", doors: []string{"functions/authorizer"},
		reason: "tokens are read in one place; everybody else is told tenant and scopes"},
	{path: "github.com/robfig/cron/v3", doors: []string{"shared/calendar"},
		reason: "the calendar is the one room that reads cron, and turns it into our own rules"},
	{path: "cel.dev/cel-go", doors: []string{"shared/dag"},
		reason: "the expressions of graphs are compiled, bounded and evaluated in one place"},
	{path: "github.com/teambition/rrule-go", doors: []string{"shared/calendar"},
		reason: "the calendar is the one room that reads RFC 5545 rules"},
	{path: "github.com/standard-webhooks/standard-webhooks", doors: []string{"workers/executor"},
		reason: "only the http executor signs requests"},
	{path: "github.com/santhosh-tekuri/jsonschema/v6", oneRoom: true,
		reason: "two validators of one schema would one day disagree"},
	{path: "github.com/go-json-experiment/json", doors: []string{"functions/api"},
		reason: "what strangers send is read strictly, in one place"},
	{path: "github.com/oklog/ulid/v2", oneRoom: true,
		reason: "ids are made and read in one room, so that their form can change in one place"},
	{path: "golang.org/x", doors: []string{"shared/aws", "shared/memory", "shared/conformance", "functions", "workers", "integration"}, tests: true,
		reason: "the Go team's own extensions are welcome where something acts; core and ground need only the standard library"},
	{path: "pgregory.net/rapid", tests: true,
		reason: "properties are checked by tests; nothing that runs carries a test library"},
	{path: "go.uber.org/goleak", tests: true,
		reason: "leaks are looked for by tests; nothing that runs carries a test library"},
}

// libraryOf finds the entry of an import path; false when the table has none.
func libraryOf(path string) (library, bool) {
	for _, l := range libraries {
		if path == l.path || strings.HasPrefix(path, l.path+"/") {
			return l, true
		}
	}
	return library{}, false
}

// admits reports whether a file in dir may import l.
func (l library) admits(dir string, test bool) bool {
	if l.oneRoom {
		return true // counted over all files, see judgeOneRoom
	}
	for _, d := range l.doors {
		if within(d, dir) {
			return true
		}
	}
	switch roomOf(dir) {
	case conformance, proof:
		return l.tests
	}
	return l.tests && test
}

// where names the folders that may import l.
func (l library) where() string {
	places := l.doors
	if l.tests {
		places = append(slices.Clone(places), "any test")
	}
	return strings.Join(places, ", ")
}

// impure lists what the core may not import of the standard library: with any
// of these a decision could depend on more than what it is handed.
var impure = []string{
	"crypto/rand", "database/sql", "io/ioutil", "log", "math/rand", "net", "os", "plugin", "syscall", "testing",
}

// pure lists what stands below an impure package and is harmless.
var pure = []string{"net/netip", "net/url"}

// clockCalls are the functions of package time that read or wait for the clock.
var clockCalls = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

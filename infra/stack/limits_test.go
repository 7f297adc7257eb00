package stack

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"punctual/infra/target"
	"punctual/shared/contract"
)

// CloudFormation's limits of one template.
const (
	mostBytes     = 1_000_000
	mostResources = 500
	mostOutputs   = 200
)

func TestTemplates_StayWithinCloudFormationsLimits(t *testing.T) {
	t.Parallel()
	for _, d := range []*synthesized{prod(), emulator()} {
		for _, s := range d.templates {
			if s.size > mostBytes/2 || len(s.resources) > mostResources/2 || len(s.outputs) > mostOutputs/2 {
				t.Errorf("%s %s has %d bytes, %d resources and %d outputs: over half of what is allowed",
					d.settings.Target, s.name, s.size, len(s.resources), len(s.outputs))
			}
		}
	}
}

// counted is how many resources of each type prod has, without Fleet's. A number that changes
// should change here, knowingly: each is a thing that costs, breaks, or must be granted.
var counted = map[string]int{
	"data AWS::DynamoDB::GlobalTable": 7, "data AWS::KMS::Alias": 1, "data AWS::KMS::Key": 1, "data AWS::S3::Bucket": 1,
	"data AWS::S3::BucketPolicy": 1,
	"data AWS::SQS::Queue":       14, "data AWS::SQS::QueuePolicy": 14,

	"flow AWS::ApiGateway::Account": 1, "flow AWS::ApiGateway::Authorizer": 1, "flow AWS::ApiGateway::Deployment": 1,
	"flow AWS::ApiGateway::GatewayResponse": 14,
	"flow AWS::ApiGateway::Method":          9, "flow AWS::ApiGateway::Resource": 7, "flow AWS::ApiGateway::RestApi": 1,
	"flow AWS::ApiGateway::Stage": 1,
	"flow AWS::IAM::Policy":       16, "flow AWS::IAM::Role": 16,
	"flow AWS::CloudWatch::Alarm": 12, "flow AWS::CodeDeploy::Application": 1,
	"flow AWS::CodeDeploy::DeploymentConfig": 1,
	"flow AWS::CodeDeploy::DeploymentGroup":  12, "flow AWS::Lambda::Alias": 12, "flow AWS::Lambda::Version": 12,
	"flow AWS::Lambda::EventInvokeConfig": 3, "flow AWS::Lambda::EventSourceMapping": 6,
	"flow AWS::Lambda::Function": 12, "flow AWS::Lambda::Permission": 10,
	"data AWS::Logs::LogGroup": 17, "data AWS::Logs::LogStream": 1,
	"data AWS::Pipes::Pipe": 1, "data AWS::IAM::Policy": 1, "data AWS::IAM::Role": 1,
	"flow AWS::Scheduler::Schedule": 3, "flow AWS::Scheduler::ScheduleGroup": 2,

	"watch AWS::CloudWatch::Alarm":     91,
	"watch AWS::CloudWatch::Dashboard": 1, "watch AWS::Logs::QueryDefinition": 4,
	"watch AWS::SNS::Topic": 2, "watch AWS::SNS::TopicPolicy": 2,
}

// alarmed is how many metrics have alarms: each is charged.
func (d *synthesized) alarmed() int {
	n := 0
	d.each("AWS::CloudWatch::Alarm", func(_ template, _ string, r object) {
		of := 0
		for _, m := range list(at(r, "Properties.Metrics")) {
			if at(m, "MetricStat") != nil {
				of++
			}
		}
		n += max(1, of)
	})
	return n
}

func TestTemplates_HaveAKnownNumberOfResources(t *testing.T) {
	t.Parallel()
	have := map[string]int{}
	prod().each("", func(s template, _ string, r object) {
		if s.name != "fleet" {
			have[s.name+" "+text(r["Type"])]++
		}
	})
	for _, kind := range sorted(have) {
		if have[kind] != counted[kind] {
			t.Errorf("%d of %s; %d are counted on", have[kind], kind, counted[kind])
		}
	}
	for _, kind := range sorted(counted) {
		if have[kind] == 0 {
			t.Errorf("none of %s", kind)
		}
	}
	page, err := os.ReadFile(filepath.Join(root, "infra/cost.md"))
	if err != nil {
		t.Fatal(err)
	}
	dev, full := ownTokens(), prod()
	boards := func(d *synthesized) (n int) {
		d.each("AWS::CloudWatch::Dashboard", func(template, string, object) { n++ })
		return n
	}
	least := func(d *synthesized) int { return d.settings.Fleet.Short.Least + d.settings.Fleet.Long.Least }
	for _, want := range []string{
		fmt.Sprintf("| alarms, on %d and %d metrics |", dev.alarmed(), full.alarmed()),
		fmt.Sprintf("| dashboards, %d and %d |", boards(dev), boards(full)),
		fmt.Sprintf("| NAT gateways with their addresses, %d and %d |", dev.settings.Fleet.NATs,
			full.settings.Fleet.NATs),
		fmt.Sprintf("| machines, %d t4g.medium and %d c7g.large,", least(dev), least(full)),
		fmt.Sprintf("of %d and %d shards |", dev.settings.Shards, full.settings.Shards),
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("cost.md does not say %q", want)
		}
	}
}

// subIs finds the references in the text of an Fn::Sub.
var subIs = regexp.MustCompile(`\$\{([A-Za-z0-9]+)(?:\.[A-Za-z0-9.]+)?\}`)

// waits calls found with the id of each resource that v waits for: those that it references or depends on.
func waits(v any, found func(id string)) {
	switch x := v.(type) {
	case []any:
		for _, e := range x {
			waits(e, found)
		}
	case object:
		for key, e := range x {
			switch key {
			case "Ref":
				found(text(e))
			case "Fn::GetAtt":
				on, _, _ := strings.Cut(text(list(e)[0]), ".")
				found(on)
			case "DependsOn":
				for _, on := range list(e) {
					found(text(on))
				}
			case "Fn::Sub":
				for _, match := range subIs.FindAllStringSubmatch(compact(e), -1) {
					found(match[1])
				}
				waits(e, found)
			default:
				waits(e, found)
			}
		}
	}
}

// CloudFormation refuses a template in which a resource waits for itself.
func TestTemplates_HaveNoResourceThatDependsOnItself(t *testing.T) {
	t.Parallel()
	for _, d := range []*synthesized{prod(), emulator(), ownTokens(), signed(), held()} {
		for _, s := range d.templates {
			const under, done = 1, 2
			state := map[string]int{}
			var visit func(id string, path []string)
			visit = func(id string, path []string) {
				switch {
				case s.resources[id] == nil || state[id] == done:
					return
				case state[id] == under:
					t.Errorf("%s of %s: %s", s.name, d.settings.Target, strings.Join(append(path, id), " waits for "))
					return
				}
				state[id] = under
				waits(s.resources[id], func(on string) { visit(on, append(path[:len(path):len(path)], id)) })
				state[id] = done
			}
			for _, id := range sorted(s.resources) {
				visit(id, nil)
			}
		}
	}
}

// stateful are the ids and names of resources with state. For CloudFormation another id is another resource: renaming
// one here would replace a full table by an empty one.
var stateful = map[string]string{
	"Key961B73FD": "AWS::KMS::Key",

	"TablejobsEE566F5C": "punctual-jobs", "Tableclaims7D31E885": "punctual-claims",
	"TabletasksCAA056E9":     "punctual-tasks",
	"Tableschedules986A2C24": "punctual-schedules", "TabledagsDA372D1B": "punctual-dags",
	"Tableruns8EF71623": "punctual-runs", "Tableaudit222B1424": "punctual-audit",

	"PayloadsCDFAA0A2": "AWS::S3::Bucket",

	"QueuedeadlettersAAB2AFEE": "punctual-dead-letters", "Queuefiringdead32462F41": "punctual-firing-dead",
	"QueueredriveFE6E5876":  "punctual-redrive",
	"Queuedispatch26E8A714": "punctual-dispatch", "QueuereportBEB74C58": "punctual-report",
	"Queuefiringshortcritical9D3BFB8A": "punctual-firing-short-critical",
	"Queuefiringshorthigh8FC3E528":     "punctual-firing-short-high",
	"Queuefiringshortnormal185CA5DF":   "punctual-firing-short-normal",
	"Queuefiringshortlow49D9204D":      "punctual-firing-short-low",
	"QueuefiringlongcriticalB8FE8336":  "punctual-firing-long-critical",
	"Queuefiringlonghigh048F4DAE":      "punctual-firing-long-high",
	"QueuefiringlongnormalC7855E71":    "punctual-firing-long-normal",
	"QueuefiringlonglowB13109C2":       "punctual-firing-long-low",
	"Queuebulk9047662A":                "punctual-bulk",
}

func TestData_KeepsTheIdsOfStatefulResources(t *testing.T) {
	t.Parallel()
	have := map[string]string{}
	for id, r := range prod().template("data").resources {
		name := text(at(r, "Properties.TableName")) + text(at(r, "Properties.QueueName"))
		switch kind := text(r["Type"]); kind {
		case "AWS::DynamoDB::GlobalTable", "AWS::SQS::Queue":
			have[id] = name
		case "AWS::KMS::Key", "AWS::S3::Bucket":
			have[id] = kind
		}
	}
	for _, id := range sorted(have) {
		if stateful[id] != have[id] {
			t.Errorf("%q: %q is new, or has another id than before", id, have[id])
		}
	}
	for _, id := range sorted(stateful) {
		if have[id] == "" {
			t.Errorf("%s (%s) is gone", id, stateful[id])
		}
	}
}

func TestData_OutlivesItsStackInProdOnly(t *testing.T) {
	t.Parallel()
	for _, d := range []*synthesized{prod(), emulator()} {
		deleted, replaced := "Delete", "Delete"
		if d.settings.Keep {
			deleted, replaced = "RetainExceptOnCreate", "Retain"
		}
		for id, r := range d.template("data").resources {
			kind := text(r["Type"])
			switch kind {
			case "AWS::DynamoDB::GlobalTable", "AWS::SQS::Queue", "AWS::KMS::Key", "AWS::S3::Bucket",
				"AWS::Logs::LogGroup":
				if r["DeletionPolicy"] != deleted || r["UpdateReplacePolicy"] != replaced {
					t.Errorf("%s %s: %v, %v; want %s, %s", d.settings.Target, id, r["DeletionPolicy"],
						r["UpdateReplacePolicy"], deleted, replaced)
				}
			}
			if kind == "AWS::DynamoDB::GlobalTable" &&
				at(r, "Properties.Replicas.0.DeletionProtectionEnabled") != d.settings.Keep {
				t.Errorf("%s %s: deletion protection is %v", d.settings.Target, id,
					at(r, "Properties.Replicas.0.DeletionProtectionEnabled"))
			}
		}
	}
	d := prod()
	one.Lock()
	defer one.Unlock()
	if on := d.stacks.Data.TerminationProtection(); on == nil || !*on {
		t.Error("prod's data stack could be deleted by a slip")
	}
}

// A first deploy that failed is rolled back and repeated: nothing that it has made may block the second try.
func TestDeploy_LeavesNothingAfterAFailedFirstOne(t *testing.T) {
	t.Parallel()
	d := prod()
	data := d.template("data")
	d.each("", func(s template, id string, r object) {
		if r["DeletionPolicy"] == "Retain" && r["Type"] != "AWS::ApiGateway::Account" &&
			!strings.HasPrefix(id, "ApiLogRole") {
			t.Errorf("%s %s of %s stays when its creation is rolled back", r["Type"], id, s.name)
		}
		if s.name != "data" && r["DeletionPolicy"] == "RetainExceptOnCreate" && r["Type"] != "AWS::Lambda::Version" {
			t.Errorf("%s %s of stack %s is kept, and would block its next deploy", r["Type"], id, s.name)
		}
	})
	// A protected table cannot be deleted, by a rollback either.
	first, jobs := "", contract.Env{Prefix: d.settings.Prefix}.TableName(contract.Jobs)
	for id, r := range data.resources {
		if at(r, "Properties.TableName") == jobs {
			first = id
		}
	}
	for id, r := range data.resources {
		switch r["Type"] {
		case "AWS::DynamoDB::GlobalTable":
			if id != first && !slices.Contains(list(r["DependsOn"]), any(first)) {
				t.Errorf("%s may be made before it is known that %s can", id, first)
			}
		case "AWS::SQS::Queue", "AWS::S3::Bucket":
			if !slices.Contains(list(data.resources[first]["DependsOn"]), any(id)) {
				t.Errorf("%s may fail after %s was made, which cannot be deleted then", id, first)
			}
		}
	}
}

func TestBucket_EmptiesItselfInDevOnly(t *testing.T) {
	t.Parallel()
	for d, want := range map[*synthesized]int{prod(): 0, emulator(): 0, ownTokens(): 1} {
		n := 0
		d.each("Custom::S3AutoDeleteObjects", func(template, string, object) { n++ })
		if n != want {
			t.Errorf("%s has %d that empty their bucket; want %d", d.settings.Target, n, want)
		}
	}
}

func TestTemplates_AreTheSameForTheSameSettings(t *testing.T) {
	t.Parallel()
	second := synth("emulator", "again")
	for _, s := range []string{"data", "flow", "watch"} {
		name := second.settings.Prefix + "-" + s + ".template.json"
		a, err := os.ReadFile(filepath.Join(emulator().out, name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(second.out, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(a) != string(b) {
			t.Errorf("%s came out differently the second time", name)
		}
	}
}

func TestBuilt_NamesMissingFiles(t *testing.T) {
	t.Parallel()
	s := prod().settings
	s.Origin = target.Sources{Functions: t.TempDir(), Worker: t.TempDir(), Kubectl: placeholders().Kubectl}
	err := built(s)
	if err == nil || !strings.Contains(err.Error(), "make build") || !strings.Contains(err.Error(),
		"api, authorizer") || !strings.Contains(err.Error(), "worker") {
		t.Errorf("it says %v", err)
	}
	s.Origin.Kubectl = "nowhere.zip"
	if err := built(s); err == nil || !strings.Contains(err.Error(), "npm ci --prefix infra") {
		t.Errorf("without kubectl it says %v", err)
	}
}

func TestFunctions_HaveAFolderEach(t *testing.T) {
	t.Parallel()
	mains, err := filepath.Glob(filepath.Join(root, "functions/*/lambda/main.go"))
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, d := range mains {
		have = append(have, filepath.Base(filepath.Dir(filepath.Dir(d))))
	}
	want := Programs()
	slices.Sort(have)
	slices.Sort(want)
	if fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("functions/ has doors of %v; %v are deployed", have, want)
	}
}

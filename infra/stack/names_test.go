package stack

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// nameProperties are the properties with which resources take a literal name that others can use in place of a
// reference.
var nameProperties = []string{
	"AliasName", "AlarmName", "ApplicationName", "BackupPlan.BackupPlanName", "BackupVaultName", "BucketName",
	"ClusterName", "DashboardName", "DeploymentConfigName",
	"DeploymentGroupName", "FunctionName", "GroupName", "LogGroupName", "Name", "QueueName", "RoleName", "StageName",
	"TableName", "TopicName", "UserPoolName",
}

// named are the resources whose literal name another resource may use: kind → what the name is taken from.
// CloudFormation creates resources without a path of references between them at the same time.
type named struct {
	stack, id, name string
}

// names lists the literal names of a deployment's resources.
func (d *synthesized) names() (all []named) {
	d.each("", func(s template, id string, r object) {
		for _, property := range nameProperties {
			name := text(at(r, "Properties."+property))
			kind := text(r["Type"])
			owns := kind != "AWS::Lambda::Alias" || property == "Name"
			if name != "" && owns && !slices.Contains(referring, kind+" "+property) {
				all = append(all, named{s.name, id, name})
			}
		}
	})
	return all
}

// referring are the properties in which a resource names another one and not itself.
var referring = []string{
	"AWS::Scheduler::Schedule GroupName", "AWS::CodeDeploy::DeploymentGroup ApplicationName",
	"AWS::CodeDeploy::DeploymentGroup DeploymentConfigName", "AWS::Lambda::EventInvokeConfig FunctionName",
	"AWS::Lambda::EventSourceMapping FunctionName", "AWS::Lambda::Permission FunctionName",
	"AWS::EKS::Addon ClusterName", "AWS::EKS::AccessEntry ClusterName", "AWS::EKS::PodIdentityAssociation ClusterName",
}

// unordered are the uses of a name that work before the resource exists, each with the reason. The first part is the
// type that uses it, the second matches the path in its properties.
var unordered = []struct{ kind, path, why string }{
	{"AWS::CloudWatch::Alarm", `^(Metrics\.\d+\.MetricStat\.Metric\.)?Dimensions\.`,
		"an alarm accepts a metric that has no values yet"},
	{"AWS::Backup::BackupPlan", `\.DestinationBackupVaultArn$`, "the vault is another account's"},
	{"AWS::Lambda::Function", `^Environment\.`, "a function reads its variables when it is called"},
	{"AWS::IAM::Policy", `^PolicyDocument\.`, "a policy may name a resource that does not exist yet"},
	{"AWS::IAM::Role", `^AssumeRolePolicyDocument\.`, "a condition may name a resource that does not exist yet"},
	{"", `(^|\.)\w*Tags\.|^(\w+)?Description$`, "tags and descriptions are text"},
}

// TestTemplates_OrderResourcesThatUseALiteralName finds resources that CloudFormation may create before the resource
// whose name they use. Emulators create one resource after another, so no deploy to one can show this.
//
//proof:of F82
func TestTemplates_OrderResourcesThatUseALiteralName(t *testing.T) {
	t.Parallel()
	used := map[int]bool{}
	for _, d := range []*synthesized{dev(), prod(), emulator(), other(), ownTokens(), signed(), held()} {
		for _, found := range d.unorderedNames(used) {
			t.Errorf("%s: %s", d.settings.Prefix, found)
		}
	}
	for i, u := range unordered {
		if !used[i] {
			t.Errorf("no template has the exception %q %q", u.kind, u.path)
		}
	}
}

// TestTemplates_OrderingIsCheckedOnAPlantedFault plants the fault that once kept the Flow stack from being created.
func TestTemplates_OrderingIsCheckedOnAPlantedFault(t *testing.T) {
	t.Parallel()
	d := &synthesized{settings: prod().settings, out: prod().out, templates: []template{{name: "flow",
		resources: map[string]object{
			"pass": {"Type": "AWS::Lambda::Function", "Properties": object{"FunctionName": "punctual-promoter"}},
			"live": {"Type": "AWS::Lambda::Alias", "Properties": object{"Name": "live",
				"FunctionName": object{"Ref": "pass"}}},
			"once": {"Type": "AWS::Lambda::EventInvokeConfig", "Properties": object{"Qualifier": "live",
				"FunctionName": object{"Ref": "pass"}}},
			"arn": {"Type": "AWS::Scheduler::Schedule", "Properties": object{"Target": object{"Arn": object{
				"Fn::Join": []any{"", []any{"arn:aws:lambda:", object{"Ref": "AWS::Region"},
					":function:punctual-promoter"}}}}}},
		}}}}
	want := []string{
		`flow arn uses "punctual-promoter" at Target.Arn.Fn::Join.1.2 and does not wait for pass`,
		`flow once uses "live" at Qualifier and does not wait for live`,
	}
	if got := d.unorderedNames(map[int]bool{}); !slices.Equal(got, want) {
		t.Errorf("the check finds %q; want %q", got, want)
	}
	flow := d.templates[0].resources
	flow["once"]["DependsOn"], flow["arn"]["DependsOn"] = "live", []any{"pass"}
	if got := d.unorderedNames(map[int]bool{}); got != nil {
		t.Errorf("with dependencies the check finds %q", got)
	}
}

// unorderedNames lists the literals that name a resource without waiting for it. It notes in used which exceptions
// applied.
func (d *synthesized) unorderedNames(used map[int]bool) (all []string) {
	byName := map[string][]named{}
	for _, n := range d.names() {
		byName[n.name] = append(byName[n.name], n)
	}
	after := d.stackOrder()
	d.each("", func(s template, id string, r object) {
		var waits map[string]bool // computed once a resource needs it
		literals(r["Properties"], "", func(path, token string) {
			owners := slices.DeleteFunc(
				slices.Clone(byName[token]),
				func(n named) bool { return n.stack == s.name && n.id == id },
			)
			if len(owners) == 0 || ownName(r, path) {
				return
			}
			for i, u := range unordered {
				if (u.kind == "" || u.kind == r["Type"]) && regexp.MustCompile(u.path).MatchString(path) {
					used[i] = true
					return
				}
			}
			if waits == nil {
				waits = s.waitsFor(id)
			}
			ordered := func(n named) bool {
				return n.stack == s.name && waits[n.id] || n.stack != s.name && after[s.name][n.stack]
			}
			if !slices.ContainsFunc(owners, ordered) {
				all = append(all, fmt.Sprintf("%s %s uses %q at %s and does not wait for %s", s.name, id, token, path,
					owners[0].id))
			}
		})
	})
	return all
}

// ownName reports whether the literal at a path is the resource's own name.
func ownName(r object, path string) bool {
	return slices.Contains(nameProperties, path) && !slices.Contains(referring, text(r["Type"])+" "+path)
}

// literals calls do for each literal text below v, and for each part of an ARN.
func literals(v any, path string, do func(path, token string)) {
	under := func(step string) string { return strings.TrimPrefix(path+"."+step, ".") }
	switch x := v.(type) {
	case string:
		do(path, x)
		if !strings.HasPrefix(x, "arn:") && !strings.HasPrefix(x, ":") { // an ARN, or what follows a reference in one
			return
		}
		for _, part := range strings.FieldsFunc(x, func(r rune) bool { return r == ':' || r == '/' }) {
			do(path, part)
		}
	case []any:
		for i, e := range x {
			literals(e, under(fmt.Sprint(i)), do)
		}
	case object:
		for _, k := range sorted(x) {
			if k != "Ref" && k != "Fn::GetAtt" && k != "Fn::ImportValue" {
				literals(x[k], under(k), do)
			}
		}
	}
}

// waitsFor lists the resources of the template that are created before one: those that it waits for, and theirs.
func (s template) waitsFor(id string) map[string]bool {
	seen := map[string]bool{}
	var visit func(id string)
	visit = func(id string) {
		if seen[id] {
			return
		}
		seen[id] = true
		waits(s.resources[id], visit)
	}
	visit(id)
	return seen
}

// stackOrder says for each stack which others are deployed before it, by the assembly's manifest.
func (d *synthesized) stackOrder() map[string]map[string]bool {
	body, err := os.ReadFile(filepath.Join(d.out, "manifest.json"))
	if err != nil {
		panic(err)
	}
	var manifest struct {
		Artifacts map[string]struct{ Dependencies []string }
	}
	if err := json.Unmarshal(body, &manifest); err != nil {
		panic(err)
	}
	after := map[string]map[string]bool{}
	for _, s := range d.templates {
		after[s.name] = map[string]bool{}
		var visit func(artifact string)
		visit = func(artifact string) {
			for _, before := range manifest.Artifacts[artifact].Dependencies {
				after[s.name][strings.TrimPrefix(before, d.settings.Prefix+"-")] = true
				visit(before)
			}
		}
		visit(d.settings.Prefix + "-" + s.name)
	}
	return after
}

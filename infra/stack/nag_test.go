package stack

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// finding is what a rule about templates says of one construct.
type finding struct{ rule, path, says string }

// findings reads what cdk-nag and CDK's own validation said of a deployment.
func (d *synthesized) findings(t *testing.T) []finding {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(d.out, "validation-report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		PluginReports []struct {
			Violations []struct {
				RuleName, Description, Severity string
				ViolatingConstructs             []struct{ ConstructPath string }
			}
		}
	}
	if err := json.Unmarshal(body, &report); err != nil {
		t.Fatal(err)
	}
	var all []finding
	for _, p := range report.PluginReports {
		for _, v := range p.Violations {
			rule, says, ok := strings.Cut(strings.TrimSpace(v.Description), ": ")
			if !ok || !strings.HasPrefix(rule, "AwsSolutions-") {
				rule, says = v.RuleName, v.Description
			}
			for _, c := range v.ViolatingConstructs {
				all = append(all, finding{rule, c.ConstructPath, says})
			}
		}
	}
	return all
}

// accepted are the findings that stay, each with its reason. rule and path are patterns of the
// whole; a finding that none matches fails the test, and so does a line that matches none.
var accepted = []struct{ rule, path, reason string }{
	{`AwsSolutions-S1`, `punctual-data/Payloads/Resource`,
		"objects are reached by functions and workers alone, whose calls are logged; who needs the bucket's own log " +
			"turns on CloudTrail data events"},
	{`AwsSolutions-IAM5\[Resource::.*Payloads.*/\*\]`, `.*-role/DefaultPolicy/Resource`,
		"keys are made of tenant and job, so the objects cannot be listed beforehand; the bucket holds nothing else"},
	{`AwsSolutions-IAM5\[Resource::arn:aws:scheduler:.*:schedule/punctual/\*\]`,
		`punctual-flow/(api-write|dispatch)-role/DefaultPolicy/Resource`,
		"timers are named after slices and parking places; the group holds nothing else"},
	{`AwsSolutions-APIG2`, `punctual-flow/Api/Resource`,
		"the functions judge every field and answer with all mistakes at once, which a model at the gateway cannot; " +
			"they also serve laptops without a gateway"},
	{`AwsSolutions-APIG3`, `punctual-flow/Api/DeploymentStage.v1/Resource`,
		"callers are programs with tokens, throttled per stage; a web ACL costs by the request and is the owner's to " +
			"attach"},
	{`AwsSolutions-APIG4`, `punctual-flow/Api/Default/(health|openapi.json|problems|problems/\{code\})/GET/Resource`,
		"health, the API's own description and the explanation of its errors say nothing of anybody"},
	{`AwsSolutions-APIG4`, `punctual-flow/Api/Default/console/(\{proxy\+\}/)?GET/Resource`,
		"the console's files are the same for everybody; what they show is asked for with a token"},
	{`AwsSolutions-COG4`, `punctual-flow/Api/Default/.*/Resource`,
		"tokens may be any identity provider's; the Lambda authorizer verifies them"},
	{`AwsSolutions-IAM5\[Resource::arn:aws:logs:.*:log-group:\*\]`, `punctual-flow/ApiLogRole/DefaultPolicy/Resource`,
		"the role is one for all APIs of an account and region, whose log groups are not ours to know"},
	{`AwsSolutions-IAM5\[Resource::arn:aws:logs:.*:log-group:/punctual/[a-z-]+:\*\]`,
		`punctual-(flow|fleet)/.*/Resource`, "the streams of one log group"},
	{`AwsSolutions-IAM5\[Resource::\*\]`, `punctual-flow/CanaryRole/DefaultPolicy/Resource`,
		"cloudwatch:DescribeAlarms knows no resources"},
	{`AwsSolutions-IAM4\[.*\]`, `punctual-fleet/Cluster/(Role|ClusternodePoolRole)/Resource`,
		"EKS Auto Mode asks for these managed policies by name and changes them as it grows"},
	{`AwsSolutions-(IAM4|IAM5)\[.*\]`, `punctual-fleet/Cluster/KubectlProvider/.*`,
		"CDK's own handler, which applies our manifests inside the network"},
	{`AwsSolutions-L1`, `punctual-fleet/Cluster/KubectlProvider/.*`,
		"CDK's own handler; its runtime comes with CDK's version"},
	{`AwsSolutions-IAM5\[Resource::\*\]`, `punctual-fleet/Cluster/scaler-account/Role/DefaultPolicy/Resource`,
		"cloudwatch:GetMetricData knows no resources"},
	{`AwsSolutions-IAM5\[Resource::arn:aws:lambda:.*:function:\*\]`,
		`punctual-fleet/worker-(short|long)-role/DefaultPolicy/Resource`,
		"lambda jobs name functions of tenants; invoking needs the tag punctual:tenant on the function"},
	{`AwsSolutions-IAM5\[Resource::arn:aws:sqs:.*:\*\]`,
		`punctual-fleet/worker-(short|long)-role/DefaultPolicy/Resource`,
		"sqs jobs name queues of tenants; sending needs the tag punctual:tenant on the queue"},
	{`AwsSolutions-IAM5\[Resource::arn:aws:secretsmanager:.*:secret:punctual/punctual/\*\]`,
		`punctual-fleet/worker-(short|long)-role/DefaultPolicy/Resource`,
		"jobs name the secrets of tenants, which all lie below this prefix"},
	{`AwsSolutions-IAM5\[Resource::<Payloads[0-9A-F]*\.Arn>/jobs/\*/result#\*\]`,
		`punctual-fleet/worker-(short|long)-role/DefaultPolicy/Resource`,
		"a worker keeps results of the jobs of all tenants, each under a name of its own"},
	{`W9009`, `punctual-fleet/Cluster/Resource`,
		"CDK's cluster construct writes the deprecated property"},
}

func TestFindings_AreAcceptedWithAReason(t *testing.T) {
	t.Parallel()
	used := make([]bool, len(accepted))
	for _, f := range prod().findings(t) {
		known := false
		for i, a := range accepted {
			if whole(a.rule, f.rule) && whole(a.path, f.path) {
				known, used[i] = true, true
			}
		}
		if !known {
			t.Errorf("%s of %s: %s", f.rule, f.path, f.says)
		}
	}
	for i, a := range accepted {
		if !used[i] {
			t.Errorf("nothing is found any more by %s of %s", a.rule, a.path)
		}
	}
}

func whole(pattern, s string) bool { return regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString(s) }

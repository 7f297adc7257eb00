package stack

import (
	"fmt"
	"strings"
	"testing"
)

// differences are all that the emulator's templates differ from prod's by, each with its reason:
// whatever is not listed is proved by deploying it there. A line is a stack, a type, and a
// property, or what is missing.
var differences = map[string]string{
	"data: * DeletionPolicy":                               "an emulator is thrown away",
	"data: * UpdateReplacePolicy":                          "an emulator is thrown away",
	"data: AWS::DynamoDB::GlobalTable Properties.Replicas": "deletion protection: an emulator is thrown away",
	"data: AWS::Logs::LogGroup Properties.RetentionInDays": "an emulator is thrown away",
	"data: missing AWS::Logs::LogGroup LognetworkD901B091": "there is no fleet",
	"data: missing AWS::Logs::LogGroup LogclusterDBC85528": "there is no fleet",
	"data: AWS::DynamoDB::GlobalTable DependsOn":           "what is not protected may be made in any order",
	"flow: AWS::Lambda::Function Properties.Architectures": "functions run on this machine",
	"flow: AWS::Lambda::Function Properties.Environment.Variables.PUNCTUAL_SHARDS": "its index answers in 20 " +
		"ms, so that 64 shards would take longer than a minute",
	"flow: AWS::Lambda::Function Properties.Environment.Variables.PUNCTUAL_TENANT_RATE":    "two cores",
	"flow: AWS::Lambda::Function Properties.Environment.Variables.PUNCTUAL_TENANT_BURST":   "two cores",
	"flow: AWS::Lambda::Function Properties.Environment.Variables.PUNCTUAL_TENANT_WAITING": "no account",
	"flow: AWS::Lambda::Function Properties.ReservedConcurrentExecutions":                  "no account",
	"flow: AWS::Lambda::EventSourceMapping Properties.ScalingConfig.MaximumConcurrency":    "two cores",
	"flow: AWS::ApiGateway::Stage Properties.MethodSettings":                               "two cores",
	"flow: AWS::ApiGateway::Stage DependsOn":                                               "on the account below",
	"flow: AWS::IAM::Policy Properties.PolicyDocument.Statement": "it judges timers by the " +
		"default group, whatever group they are in",
	"flow: missing AWS::ApiGateway::Account ApiAccount":                                "one for an account",
	"flow: missing AWS::IAM::Role ApiLogRole9A97DE22":                                  "",
	"flow: missing AWS::IAM::Policy ApiLogRoleDefaultPolicyEC9459D9":                   "",
	"flow: AWS::Lambda::Alias Properties.FunctionVersion.Fn::GetAtt":                   "named after its function",
	"flow: AWS::Lambda::Alias UpdatePolicy":                                            "MiniStack has no CodeDeploy",
	"flow: missing AWS::CodeDeploy::DeploymentConfig, a canary's":                      "MiniStack has no CodeDeploy",
	"flow: missing AWS::CodeDeploy::Application, a canary's":                           "MiniStack has no CodeDeploy",
	"flow: missing AWS::CodeDeploy::DeploymentGroup, a canary's":                       "MiniStack has no CodeDeploy",
	"flow: missing AWS::CloudWatch::Alarm, a canary's":                                 "MiniStack has no CodeDeploy",
	"flow: missing AWS::IAM::Role, a canary's":                                         "MiniStack has no CodeDeploy",
	"flow: missing AWS::IAM::Policy, a canary's":                                       "MiniStack has no CodeDeploy",
	"data: missing AWS::Logs::LogGroup Logaudit106978BF":                               "MiniStack has no pipes",
	"data: missing AWS::Logs::LogStream Streamaudit9FF5D2AB":                           "MiniStack has no pipes",
	"data: missing AWS::Pipes::Pipe Pipepunctualaudit":                                 "MiniStack has no pipes",
	"data: missing AWS::IAM::Role Rolepunctualaudit5FE1454A":                           "MiniStack has no pipes",
	"data: missing AWS::IAM::Policy RolepunctualauditDefaultPolicy5E91A935":            "MiniStack has no pipes",
	"watch: AWS::CloudWatch::Alarm Properties.Threshold":                               "there is no fleet",
	"watch: missing AWS::CloudWatch::Alarm backloglong0C190CE6":                        "MiniStack refuses metric math",
	"watch: missing AWS::CloudWatch::Alarm backlogshort436CF430":                       "MiniStack refuses metric math",
	"watch: missing AWS::CloudWatch::Alarm inflightlong05E17F87":                       "MiniStack refuses metric math",
	"watch: missing AWS::CloudWatch::Alarm inflightshort54872832":                      "MiniStack refuses metric math",
	"flow: AWS::Lambda::Function Properties.Environment.Variables.PUNCTUAL_HEARTBEATS": "there is no fleet to run them",
	"watch: missing AWS::Logs::QueryDefinition Queryovertime":                          "no saved queries",
	"watch: missing AWS::Logs::QueryDefinition Queryrefused":                           "no saved queries",
	"watch: missing AWS::Logs::QueryDefinition Queryrequests":                          "no saved queries",
	"watch: missing AWS::Logs::QueryDefinition Querywrong":                             "no saved queries",
	"watch: missing AWS::CloudWatch::Alarm heartbeatlongFA4F9F73":                      "there is no fleet",
	"watch: missing AWS::CloudWatch::Alarm heartbeatshortAC18801A":                     "there is no fleet",
	"watch: missing AWS::CloudWatch::Alarm workerssilentlongD41CF44F":                  "there is no fleet",
	"watch: missing AWS::CloudWatch::Alarm workerssilentshort00EE5407":                 "there is no fleet",
	"watch: missing AWS::CloudWatch::Alarm failurerate40F4484E":                        "MiniStack refuses metric math",
	"watch: missing AWS::CloudWatch::Alarm runsfailB03E7C89":                           "MiniStack refuses metric math",
	"watch: missing AWS::CloudWatch::Alarm auditpipefails15A37582":                     "MiniStack has no pipes",
	"watch: missing AWS::CloudWatch::Alarm duplicates6A6DEF49":                         "MiniStack refuses metric math",
}

// differ compares two values and calls say with the path of each difference, at most three
// properties deep: below, the whole counts.
func differ(path string, a, b any, say func(path string)) {
	if compact(a) == compact(b) {
		return
	}
	x, isX := a.(object)
	y, isY := b.(object)
	if !isX || !isY || strings.Count(path, ".") >= 3 {
		say(path)
		return
	}
	keys := map[string]bool{}
	for k := range x {
		keys[k] = true
	}
	for k := range y {
		keys[k] = true
	}
	for _, k := range sorted(keys) {
		differ(strings.TrimPrefix(path+"."+k, "."), x[k], y[k], say)
	}
}

func TestEmulator_DiffersFromProdOnlyAsListed(t *testing.T) {
	t.Parallel()
	found := map[string]string{} // difference → first id
	note := func(line, id string) {
		if found[line] == "" {
			found[line] = id
		}
	}
	for _, p := range prod().templates {
		if p.name == "fleet" { // no emulator runs EKS
			continue
		}
		e := emulator().template(p.name)
		for _, id := range sorted(p.resources) {
			kind := text(p.resources[id]["Type"])
			other, ok := e.resources[id]
			if !ok && strings.HasPrefix(strings.ToLower(id), "canary") {
				note(fmt.Sprintf("%s: missing %s, a canary's", p.name, kind), id)
				continue
			}
			if kind == "AWS::Lambda::Version" { // its id ends in the hash of its function
				continue
			}
			if !ok {
				note(fmt.Sprintf("%s: missing %s %s", p.name, kind, id), id)
				continue
			}
			differ("", p.resources[id], other, func(path string) {
				if path == "DeletionPolicy" || path == "UpdateReplacePolicy" {
					note(p.name+": * "+path, id)
					return
				}
				note(fmt.Sprintf("%s: %s %s", p.name, kind, path), id)
			})
		}
		for _, id := range sorted(e.resources) {
			if _, ok := p.resources[id]; !ok && e.resources[id]["Type"] != "AWS::Lambda::Version" {
				note(fmt.Sprintf("%s: more %s %s", p.name, e.resources[id]["Type"], id), id)
			}
		}
	}
	for _, line := range sorted(found) {
		if _, ok := differences[line]; !ok {
			t.Errorf("%s (%s)", line, found[line])
		}
	}
	for _, line := range sorted(differences) {
		if found[line] == "" {
			t.Errorf("no longer differs: %s", line)
		}
	}
}

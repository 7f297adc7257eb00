package deploy

import (
	"encoding/json"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// idle lists grants that no call of the SDK uses, by role ("" is any) and a pattern of actions,
// with the reason.
var idle = []struct{ role, action, reason string }{
	{"", "logs:*", "Lambda writes the log, not the function"},
	{"", "kms:*", "the services use the key for the role, and MiniStack has them use none"},
	{"", "iam:PassRole", "it is no call: Scheduler asks for it when a timer is made"},
	{"", "s3:ListBucket", "it is no call: with it, an absent object is absent rather than denied"},
	{"stream", "dynamodb:*", "Lambda reads the stream for it"},
	{"changes", "dynamodb:*", "Lambda reads the stream for it"},
	{"dispatch", "sqs:*Message", "Lambda takes the messages for it"},
	{"status", "sqs:*Message", "Lambda takes the messages for it"},
	{"redrive", "sqs:*", "Lambda takes the messages for it, and MiniStack has no console redrive to hide one for"},
	{"api-read", "sqs:GetQueue*", "the list of workers reads how full the queues are: nobody asks for it here"},
	{"worker", "lambda:*", "a function of a tenant's, tagged as such, to be invoked: none is deployed here"},
	{"worker", "sqs:ListQueueTags", "a queue of a tenant's, tagged as such, to be sent to: none is deployed here"},
	{"worker", "secretsmanager:*", "a secret of a tenant's, to sign requests with: none is deployed here"},
}

// sameCode lists parts that run the same code as a role's: whichever is first takes the step.
var sameCode = map[string][]string{
	"sweeper": {"status", "dispatch"}, "status": {"sweeper", "dispatch"}, "dispatch": {"sweeper", "status"},
	"promoter": {"api-write", "sweeper"}, "api-write": {"promoter", "sweeper"}, "redrive": {"api-write"},
	"bulk": {"api-write", "sweeper", "status", "redrive"}, "api-search": {"api-read"},
}

// seen returns what parts do only in hours and outages, which take no time over the in-memory implementations,
// as "part action"; integration/access compares this list with the code.
func seen(t *testing.T) map[string]bool {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(root, "infra/testdata/access.txt"))
	if err != nil {
		t.Fatal(err)
	}
	does := map[string]bool{}
	for line := range strings.Lines(string(body)) {
		if f := strings.Fields(line); len(f) > 1 {
			does[f[0]+" "+f[1]] = true
		}
	}
	return does
}

// entailing maps a call to the call that it is part of: how an existing timer is replaced, and how
// a queue is found.
var entailing = map[string]string{
	"scheduler:GetSchedule": "scheduler:CreateSchedule", "scheduler:UpdateSchedule": "scheduler:CreateSchedule",
	"sqs:GetQueueUrl": "sqs:SendMessage",
}

// granted returns the grants of the deployed roles, by function or worker.
func (d *deployment) granted(t *testing.T) map[string][]string {
	t.Helper()
	may := map[string][]string{}
	files, err := filepath.Glob(filepath.Join(d.folder, "cdk.out", "*.template.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d templates, %v", len(files), err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var tpl struct {
			Resources map[string]struct {
				Type       string
				Properties struct {
					FunctionName, RoleName any
					Role                   map[string]any
					Roles                  []map[string]string
					PolicyDocument         struct {
						Statement []struct{ Action any }
					}
				}
			}
		}
		if err := json.Unmarshal(body, &tpl); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		who := map[string]string{} // role → function or worker
		for id, r := range tpl.Resources {
			switch r.Type {
			case "AWS::Lambda::Function":
				name, _ := r.Properties.FunctionName.(string)
				if at, ok := r.Properties.Role["Fn::GetAtt"].([]any); ok {
					who[at[0].(string)] = strings.TrimPrefix(name, prefix+"-")
				}
			case "AWS::IAM::Role":
				if name, _ := r.Properties.RoleName.(string); name == prefix+"-worker-short" {
					who[id] = "worker"
				}
			}
		}
		for _, r := range tpl.Resources {
			for _, role := range r.Properties.Roles {
				if who[role["Ref"]] == "" {
					continue
				}
				for _, s := range r.Properties.PolicyDocument.Statement {
					switch a := s.Action.(type) {
					case string:
						may[who[role["Ref"]]] = append(may[who[role["Ref"]]], a)
					case []any:
						for _, one := range a {
							may[who[role["Ref"]]] = append(may[who[role["Ref"]]], one.(string))
						}
					}
				}
			}
		}
	}
	return may
}

// actionOf returns a policy's name for a call of the SDK.
func actionOf(call string) string {
	if _, part, ok := strings.Cut(call, "Items."); ok { // of a transaction
		return "dynamodb:" + part + "Item"
	}
	switch call {
	case "lambda:Invoke":
		return "lambda:InvokeFunction"
	case "s3:HeadObject":
		return "s3:GetObject"
	}
	if strings.HasPrefix(call, "sqs:") {
		return strings.TrimSuffix(call, "Batch")
	}
	return call
}

// It runs last: the tests before it have made the calls.
func TestRoles_UseAllGrantsAndAreDeniedNothing(t *testing.T) {
	d := setup(t)
	if os.Getenv("AWS_ENDPOINT_URL") != "" {
		t.Skip("functions of an emulator that was started elsewhere do not record their calls")
	}
	body, err := os.ReadFile(calls())
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]bool{} // "who action"
	for line := range strings.Lines(string(body)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) < 3 {
			t.Fatalf("recorded: %q", line)
		}
		who := strings.TrimPrefix(f[0], prefix+"-")
		if len(f) > 3 {
			t.Errorf("%s was denied %s on %s", who, f[1], f[2])
		}
		made[who+" "+actionOf(f[1])] = true
	}
	if !exercised {
		t.Skip("the tests that use the grants have not run")
	}
	does := seen(t)
	known := func(who, action string) bool {
		for _, w := range append([]string{who}, sameCode[who]...) {
			if does[w+" "+action] || does[w+" "+entailing[action]] {
				return true
			}
		}
		return false
	}
	callers := map[string]bool{}
	for call := range made {
		who, action, _ := strings.Cut(call, " ")
		callers[who] = true
		if !known(who, action) {
			t.Errorf("%s does %s, which infra/testdata/access.txt does not know", who, action)
		}
	}
	may := d.granted(t)
	if len(may) < 10 || len(may["worker"]) == 0 {
		t.Fatalf("the templates grant %v", may)
	}
	used := map[int]bool{}
	for _, who := range slices.Sorted(maps.Keys(may)) {
		slices.Sort(may[who])
		for _, action := range slices.Compact(may[who]) {
			if made[who+" "+action] || known(who, action) {
				continue
			}
			i := slices.IndexFunc(idle, func(e struct{ role, action, reason string }) bool {
				ok, err := path.Match(e.action, action)
				return err == nil && ok && (e.role == "" || e.role == who)
			})
			if i < 0 {
				t.Errorf("%s may %s, and never did", who, action)
			} else {
				used[i] = true
			}
		}
	}
	for who := range may { // the authorizer calls nothing
		if !callers[who] && who != "authorizer" {
			t.Errorf("%s has grants, and made no call", who)
		}
	}
	for i, e := range idle {
		if !used[i] {
			t.Errorf("%s %s is used or not granted; it needs no reason any more", e.role, e.action)
		}
	}
}

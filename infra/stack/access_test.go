package stack

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"punctual/shared/contract"
)

// anything are the statements that may name every resource, each with its reason.
var anything = []struct{ stack, role, action, reason string }{
	{"data", "Key.*", ".*", "a key's own policy speaks of that key alone"},
	{"data", "Queue.*", "sqs:\\*", "the statement denies everything that does not come by TLS"},
	{"data", "Payloads.*", "s3:\\*", "the statement denies everything that does not come by TLS"},
	{"watch", "OnCall.*", ".*", "the statement denies everything that does not come by TLS"},
	{"flow", "CanaryRole.*", "cloudwatch:DescribeAlarms", "CloudWatch knows no resources here"},
	{"fleet", "Clusterkey.*", ".*", "a key's own policy speaks of that key alone"},
	{"fleet", "Clusterscaleraccount.*", "cloudwatch:GetMetricData", "CloudWatch knows no resources here"},
}

// statement is one of a policy, flat.
type statement struct {
	stack, id, effect  string
	actions, resources []string
	whole              object
}

// statements lists those of all policies, inline and of resources.
func (d *synthesized) statements() []statement {
	var all []statement
	d.each("", func(s template, id string, r object) {
		for _, path := range []string{"Properties.PolicyDocument", "Properties.KeyPolicy",
			"Properties.AssumeRolePolicyDocument"} {
			for _, v := range list(at(r, path+".Statement")) {
				st := statement{stack: s.name, id: id, effect: text(at(v, "Effect")), whole: v.(object)}
				for _, a := range list(at(v, "Action")) {
					st.actions = append(st.actions, text(a))
				}
				for _, res := range list(at(v, "Resource")) {
					if plain, ok := res.(string); ok {
						st.resources = append(st.resources, plain)
					} else {
						st.resources = append(st.resources, compact(res))
					}
				}
				all = append(all, st)
			}
		}
	})
	return all
}

func TestPolicies_AllowNoWildcards(t *testing.T) {
	t.Parallel()
	for _, st := range prod().statements() {
		if st.effect != "Allow" {
			continue
		}
		for _, a := range st.actions {
			if strings.Contains(a, "*") && !(a == "kms:*" && isRoot(st)) {
				t.Errorf("%s %s allows %s", st.stack, st.id, a)
			}
		}
		for _, r := range st.resources {
			if r != "*" {
				continue
			}
			ok := false
			for _, e := range anything {
				for _, a := range st.actions {
					ok = ok || st.stack == e.stack && whole(e.role, st.id) && whole(e.action, a)
				}
			}
			if !ok {
				t.Errorf("%s %s allows %v of everything", st.stack, st.id, st.actions)
			}
		}
	}
}

// isRoot finds the statement by which a key's account may give its use away in IAM.
func isRoot(st statement) bool {
	return strings.Contains(compact(at(st.whole, "Principal")), ":root") && regexp.MustCompile(`key`).
		MatchString(strings.ToLower(st.id))
}

func TestFunctions_HaveARoleEachWithoutManagedPolicies(t *testing.T) {
	t.Parallel()
	flow := prod().template("flow")
	roles := map[string]string{}
	for id, r := range flow.resources {
		if r["Type"] == "AWS::IAM::Role" && at(r, "Properties.ManagedPolicyArns") != nil {
			t.Errorf("%s has managed policies: %s", id, compact(at(r, "Properties.ManagedPolicyArns")))
		}
		if r["Type"] == "AWS::Lambda::Function" {
			role := compact(at(r, "Properties.Role"))
			if other := roles[role]; other != "" {
				t.Errorf("%s and %s share the role %s", id, other, role)
			}
			roles[role] = id
		}
	}
}

// mayDo lists what the role of a function may do, as action and the part of the resource that
// shows it, without its log and the key.
func mayDo(d *synthesized, function string) map[string]bool {
	may := map[string]bool{}
	for _, st := range d.statements() {
		if st.stack != "flow" || !strings.HasPrefix(st.id, strings.ReplaceAll(function, "-", "")+"role") ||
			at(st.whole, "Principal") != nil {
			continue
		}
		for _, a := range st.actions {
			if strings.HasPrefix(a, "logs:") || strings.HasPrefix(a, "kms:") {
				continue
			}
			for _, r := range st.resources {
				may[a+" "+nameOf(r)] = true
			}
		}
	}
	return may
}

var resourceIs = regexp.MustCompile(`(?:Table|Queue)[a-z]+|Payloads|TimerRole|schedule/`)

// nameOf returns a resource's name within the deployment by what a template says of it.
func nameOf(said string) string {
	switch {
	case strings.Contains(said, "Payloads"):
		if strings.Contains(said, "result#") {
			return "payloads/results"
		}
		return "payloads"
	case strings.Contains(said, "TimerRole"):
		return "role"
	case strings.Contains(said, "schedule/"):
		return "timers"
	}
	for _, s := range contract.AllSchemas() {
		if regexp.MustCompile(`Table` + s.Name + `[0-9A-F]{8}`).MatchString(said) {
			if _, index, ok := strings.Cut(said, "/index/"); ok {
				return s.Name + "/" + regexp.MustCompile(`^[a-z]+`).FindString(index)
			}
			return s.Name
		}
	}
	for _, q := range contract.Queues() {
		if regexp.MustCompile(`Queue` + strings.ReplaceAll(q.Name, "-", "") + `[0-9A-F]{8}`).MatchString(said) {
			return q.Name
		}
	}
	return said
}

// done reads the list of what each part really does, by part; integration/access holds it to the
// code.
func done(t *testing.T) map[string]map[string]bool {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(root, "infra/testdata/access.txt"))
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]map[string]bool{}
	for line := range strings.Lines(string(body)) {
		part, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if of[part] == nil {
			of[part] = map[string]bool{}
		}
		of[part][rest] = true
	}
	return of
}

// entailed is what a call needs besides itself: how a queue is found, how a timer that is there
// already is replaced, whom a timer acts as, and how an absent object differs from a refused one.
func entailed(action, resource string) []string {
	switch action {
	case "sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility", "sqs:ReceiveMessage":
		return []string{"sqs:GetQueueUrl " + resource}
	case "scheduler:CreateSchedule":
		return []string{"scheduler:GetSchedule " + resource, "scheduler:UpdateSchedule " + resource,
			"iam:PassRole role"}
	case "s3:GetObject":
		return []string{"s3:ListBucket " + resource}
	}
	return nil
}

// polled is what Lambda needs of a function's role to feed it.
var polled = map[string][]string{
	Stream: {"dynamodb:DescribeStream jobs", "dynamodb:GetRecords jobs", "dynamodb:GetShardIterator jobs",
		"dynamodb:ListStreams jobs", "sqs:SendMessage firing-dead"},
	Changes: {"dynamodb:DescribeStream jobs", "dynamodb:GetRecords jobs", "dynamodb:GetShardIterator jobs",
		"dynamodb:ListStreams jobs", "sqs:SendMessage firing-dead"},
	Dispatch: {"sqs:ReceiveMessage dispatch", "sqs:DeleteMessage dispatch", "sqs:GetQueueAttributes dispatch"},
	Status:   {"sqs:ReceiveMessage report", "sqs:DeleteMessage report", "sqs:GetQueueAttributes report"},
	Redrive:  {"sqs:ReceiveMessage redrive", "sqs:DeleteMessage redrive", "sqs:GetQueueAttributes redrive"},
	Bulk:     {"sqs:ReceiveMessage bulk", "sqs:DeleteMessage bulk", "sqs:GetQueueAttributes bulk"},
}

// alsoAs are the parts whose list a function's grants may be explained by, because both run the
// same code: which of them takes a step depends on who comes first.
var alsoAs = map[string][]string{
	Sweeper:  {Status, Dispatch}, // deciding about a job
	Status:   {Sweeper, Dispatch},
	Dispatch: {Sweeper, Status},
	Promoter: {APIWrite, Sweeper}, // making the jobs of a schedule
	APIWrite: {Promoter, Sweeper},
	Redrive:  {APIWrite, Sweeper, Status, Dispatch}, // a new job for a dead one, and bringing on its run
	Bulk:     {APIWrite, Sweeper, Status, Dispatch, Redrive},
	Stream:   {},
	// It answers what api-read answers where there is no index of jobs.
	APISearch: {APIRead},
}

// TestRoles_MayDoWhatTheirFunctionsDoAndNothingElse compares the roles with what was seen: a call
// without a grant would fail in AWS, and a grant without a call is one too many.
//
//proof:of 189
func TestRoles_MayDoWhatTheirFunctionsDoAndNothingElse(t *testing.T) {
	t.Parallel()
	seen := done(t)
	for _, p := range parts() {
		may, explained := mayDo(searching(), p.name), map[string]bool{}
		note := func(lines map[string]bool, needed bool) {
			for line := range lines {
				action, resource, _ := strings.Cut(line, " ")
				for _, l := range append(entailed(action, resource), line) {
					explained[l] = true
					if needed && !may[l] {
						t.Errorf("%s does %s, and its role may not", p.name, l)
					}
				}
			}
		}
		note(seen[p.name], true)
		for _, l := range polled[p.name] {
			note(map[string]bool{l: true}, true)
		}
		for _, other := range alsoAs[p.name] {
			note(seen[other], false)
		}
		for l := range may {
			if !explained[l] {
				t.Errorf("the role of %s may %s, and nobody has seen it do so", p.name, l)
			}
		}
	}
}

// TestWorkers_MayDoWhatTheyDo is the same for what is needed of the workers, each of its pool.
func TestWorkers_MayDoWhatTheyDo(t *testing.T) {
	t.Parallel()
	for _, pool := range contract.Pools {
		may := map[string]bool{}
		for _, st := range prod().statements() {
			if st.stack == "fleet" && strings.HasPrefix(st.id, "worker"+pool+"role") {
				for _, a := range st.actions {
					for _, r := range st.resources {
						may[a+" "+nameOf(r)] = true
					}
				}
			}
		}
		for line := range done(t)["worker"] {
			action, resource, _ := strings.Cut(line, " ")
			if strings.HasPrefix(resource, "firing-") && !strings.HasPrefix(resource, "firing-"+pool+"-") {
				continue
			}
			for _, l := range append(entailed(action, resource), line) {
				if !may[l] {
					t.Errorf("a worker of the pool %s does %s, and its role may not", pool, l)
				}
			}
		}
	}
}

//proof:of 27
func TestAPIRead_MayNotWrite(t *testing.T) {
	t.Parallel()
	for a := range mayDo(prod(), APIRead) {
		switch verb, _, _ := strings.Cut(a, " "); verb {
		case "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query":
		case "sqs:GetQueueAttributes", "sqs:GetQueueUrl": // how full the queues are
		case "dynamodb:UpdateItem": // of what is below
		default:
			t.Errorf("%s may %s", APIRead, a)
		}
	}
	counts := 0
	for _, st := range prod().statements() {
		if st.stack != "flow" || !strings.HasPrefix(st.id, "apiread") ||
			!slices.Contains(st.actions, "dynamodb:UpdateItem") {
			continue
		}
		counts++
		const own = `{"ForAllValues:StringLike":{"dynamodb:LeadingKeys":["quota#*"]}}`
		if got := compact(at(st.whole, "Condition")); len(st.actions) > 1 || got != own {
			t.Errorf("%s may write under %s; want nothing but the count of requests, under %s", APIRead, got, own)
		}
	}
	if counts != 1 {
		t.Errorf("%d statements let %s count requests", counts, APIRead)
	}
}

func TestTimers_RoleIsForThisAccountsSchedulerOnly(t *testing.T) {
	t.Parallel()
	found := 0
	prod().each("AWS::IAM::Role", func(_ template, id string, r object) {
		trust := at(r, "Properties.AssumeRolePolicyDocument.Statement.0")
		if text(at(trust, "Principal.Service")) != "scheduler.amazonaws.com" {
			return
		}
		found++
		if at(trust, "Condition.StringEquals.aws:SourceAccount") == nil ||
			at(trust, "Condition.StringEquals.aws:SourceArn") == nil {
			t.Errorf("%s may be taken for anybody's timers: %s", id, compact(trust))
		}
	})
	if found != 2 {
		t.Errorf("%d roles are Scheduler's; want those of timers and ticks", found)
	}
	for _, st := range prod().statements() {
		for _, a := range st.actions {
			if a == "iam:PassRole" &&
				at(st.whole, "Condition.StringEquals.iam:PassedToService") != "scheduler.amazonaws.com" {
				t.Errorf("%s may pass roles to more than Scheduler", st.id)
			}
		}
	}
}

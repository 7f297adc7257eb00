package stack

import (
	"regexp"
	"strings"
	"testing"
)

// anything are the statements that may name every resource, each with its reason.
var anything = []struct{ stack, role, action, reason string }{
	{"data", "Key.*", ".*", "a key's own policy speaks of that key alone"},
	{"data", "Queue.*", "sqs:\\*", "the statement denies everything that does not come by TLS"},
	{"data", "Payloads.*", "s3:\\*", "the statement denies everything that does not come by TLS"},
	{"watch", "OnCall.*", ".*", "the statement denies everything that does not come by TLS"},
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
		for _, path := range []string{"Properties.PolicyDocument", "Properties.KeyPolicy", "Properties.AssumeRolePolicyDocument"} {
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

func TestNoStatementAllowsEverything(t *testing.T) {
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

// isRoot tells the statement by which a key's account may give its use away in IAM.
func isRoot(st statement) bool {
	return strings.Contains(compact(at(st.whole, "Principal")), ":root") && regexp.MustCompile(`key`).MatchString(strings.ToLower(st.id))
}

func TestFunctionsHaveNoManagedPoliciesAndARoleEach(t *testing.T) {
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
// tells it, without its log and the key.
func mayDo(d *synthesized, function string) map[string]bool {
	may := map[string]bool{}
	for _, st := range d.statements() {
		if st.stack != "flow" || !strings.HasPrefix(st.id, strings.ReplaceAll(function, "-", "")+"role") || at(st.whole, "Principal") != nil {
			continue
		}
		for _, a := range st.actions {
			if strings.HasPrefix(a, "logs:") || strings.HasPrefix(a, "kms:") {
				continue
			}
			for _, r := range st.resources {
				may[a+" "+resourceIs.FindString(r)] = true
			}
		}
	}
	return may
}

var resourceIs = regexp.MustCompile(`(?:Table|Queue)[a-z]+|Payloads|TimerRole|schedule/`)

func TestReadingNeverWrites(t *testing.T) {
	t.Parallel()
	for a := range mayDo(prod(), APIRead) {
		verb, _, _ := strings.Cut(a, " ")
		switch verb {
		case "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "s3:GetObject", "s3:ListBucket", "sqs:GetQueueAttributes", "sqs:GetQueueUrl":
		default:
			t.Errorf("%s may %s", APIRead, a)
		}
	}
}

func TestTheAuthorizerMayDoNothing(t *testing.T) {
	t.Parallel()
	if may := mayDo(prod(), Authorizer); len(may) > 0 {
		t.Errorf("it may %v", may)
	}
}

// TestGrantsThatFunctionsCannotDoWithout names, for each function, what stops working first
// when a statement is lost.
func TestGrantsThatFunctionsCannotDoWithout(t *testing.T) {
	t.Parallel()
	for function, needs := range map[string][]string{
		APIRead:  {"dynamodb:GetItem Tablejobs", "dynamodb:Query Tablejobs", "dynamodb:GetItem Tableclaims", "dynamodb:Query Tabletasks", "s3:GetObject Payloads"},
		APIWrite: {"dynamodb:PutItem Tablejobs", "dynamodb:UpdateItem Tableclaims", "dynamodb:PutItem Tabletasks", "sqs:SendMessage Queuefiringshortnormal", "sqs:SendMessage Queuedispatch", "scheduler:CreateSchedule schedule/", "iam:PassRole TimerRole", "s3:PutObject Payloads"},
		Stream:   {"dynamodb:GetRecords Tablejobs", "sqs:SendMessage Queuefiringlonglow", "sqs:SendMessage Queuefiringdead", "scheduler:CreateSchedule schedule/", "scheduler:DeleteSchedule schedule/", "iam:PassRole TimerRole"},
		Promoter: {"dynamodb:Query Tablejobs", "dynamodb:UpdateItem Tabletasks", "scheduler:CreateSchedule schedule/", "iam:PassRole TimerRole", "sqs:SendMessage Queuefiringshortcritical", "sqs:SendMessage Queuedispatch"},
		Sweeper:  {"dynamodb:Query Tablejobs", "dynamodb:GetItem Tablejobs", "dynamodb:UpdateItem Tablejobs", "dynamodb:UpdateItem Tableclaims", "sqs:GetQueueAttributes Queuefiringshortnormal", "sqs:SendMessage Queueredrive"},
		Dispatch: {"sqs:ReceiveMessage Queuedispatch", "sqs:DeleteMessage Queuedispatch", "sqs:SendMessage Queuefiringshortnormal", "sqs:SendMessage Queuedispatch", "dynamodb:Query Tablejobs"},
		Status:   {"sqs:ReceiveMessage Queuereport", "sqs:DeleteMessage Queuereport", "dynamodb:UpdateItem Tablejobs", "dynamodb:PutItem Tablejobs", "sqs:SendMessage Queueredrive", "sqs:SendMessage Queuefiringshortnormal"},
		Redrive:  {"sqs:ReceiveMessage Queueredrive", "sqs:ChangeMessageVisibility Queueredrive", "dynamodb:PutItem Tablejobs", "dynamodb:UpdateItem Tablejobs", "sqs:SendMessage Queuefiringshortnormal"},
		Prewarm:  {"dynamodb:Query Tablejobs", "dynamodb:GetItem Tabletasks", "dynamodb:UpdateItem Tabletasks", "dynamodb:GetItem Tablejobs"},
	} {
		may := mayDo(prod(), function)
		for _, need := range needs {
			if !may[need] {
				t.Errorf("%s may not %s", function, need)
			}
		}
	}
}

func TestOnlySchedulerOfThisAccountMayTakeTheTimersRole(t *testing.T) {
	t.Parallel()
	found := 0
	prod().each("AWS::IAM::Role", func(_ template, id string, r object) {
		trust := at(r, "Properties.AssumeRolePolicyDocument.Statement.0")
		if text(at(trust, "Principal.Service")) != "scheduler.amazonaws.com" {
			return
		}
		found++
		if at(trust, "Condition.StringEquals.aws:SourceAccount") == nil || at(trust, "Condition.StringEquals.aws:SourceArn") == nil {
			t.Errorf("%s may be taken for anybody's timers: %s", id, compact(trust))
		}
	})
	if found != 2 {
		t.Errorf("%d roles are Scheduler's; want those of timers and ticks", found)
	}
	for _, st := range prod().statements() {
		for _, a := range st.actions {
			if a == "iam:PassRole" && at(st.whole, "Condition.StringEquals.iam:PassedToService") != "scheduler.amazonaws.com" {
				t.Errorf("%s may pass roles to more than Scheduler", st.id)
			}
		}
	}
}

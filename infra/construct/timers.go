package construct

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// TimersProps says what timers reach.
type TimersProps struct {
	Group  string // name of the schedule group
	Queues Queues
	Key    Key
	Target string // logical queue that a timer sends to
	Dead   string // logical queue for what it could not send
	// AnyGroup also grants timers of the default group: the emulator checks that name for timers of every group.
	AnyGroup bool
}

// Timers is the group of the timers, and the role with which they send.
type Timers struct {
	group    string
	anyGroup bool
	Role     awsiam.Role
	stack    awscdk.Stack
}

// NewTimers makes them. Only Scheduler, for this group of this account, may take the role.
func NewTimers(scope constructs.Construct, p TimersProps) Timers {
	stack := awscdk.Stack_Of(scope)
	awsscheduler.NewCfnScheduleGroup(scope, jsii.String("TimerGroup"),
		&awsscheduler.CfnScheduleGroupProps{Name: jsii.String(p.Group)})
	role := awsiam.NewRole(scope, jsii.String("TimerRole"), &awsiam.RoleProps{
		Description: jsii.String("What timers may do: send to the dispatch queue"),
		AssumedBy:   schedulerOf(stack, p.Group),
	})
	allow(role, strs("sqs:SendMessage"), p.Queues.Queue(p.Target).QueueArn(), p.Queues.Queue(p.Dead).QueueArn())
	p.Key.GrantUse(role, SQS)
	return Timers{group: p.Group, anyGroup: p.AnyGroup, Role: role, stack: stack}
}

// schedulerOf is Scheduler acting for one group of this account; without the conditions,
// another account's timers could borrow the role.
func schedulerOf(stack awscdk.Stack, group string) awsiam.IPrincipal {
	return awsiam.NewServicePrincipal(jsii.String("scheduler.amazonaws.com"), &awsiam.ServicePrincipalOpts{
		Conditions: &map[string]any{"StringEquals": map[string]any{
			"aws:SourceAccount": stack.Account(),
			"aws:SourceArn": stack.FormatArn(&awscdk.ArnComponents{
				Service: jsii.String("scheduler"), Resource: jsii.String("schedule-group"),
				ResourceName: jsii.String(group),
			}),
		}},
	})
}

// GrantArm lets a role make, read and replace timers, and hand them their role.
func (t Timers) GrantArm(role awsiam.IRole) {
	allow(role, strs("scheduler:CreateSchedule", "scheduler:GetSchedule", "scheduler:UpdateSchedule"), t.arns()...)
	role.AddToPrincipalPolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions: strs("iam:PassRole"), Resources: &[]*string{t.Role.RoleArn()},
		Conditions: &map[string]any{"StringEquals": map[string]any{"iam:PassedToService": "scheduler.amazonaws.com"}},
	}))
}

func (t Timers) arns() []*string {
	groups := []string{t.group}
	if t.anyGroup {
		groups = append(groups, "default")
	}
	var arns []*string
	for _, g := range groups {
		arns = append(arns, t.stack.FormatArn(&awscdk.ArnComponents{
			Service: jsii.String("scheduler"), Resource: jsii.String("schedule"), ResourceName: jsii.String(g + "/*"),
		}))
	}
	return arns
}

package construct

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// Tick calls functions once a minute. A call that is lost is not repeated: the next pass continues where the last one
// ended.
type Tick struct {
	scope constructs.Construct
	group awsscheduler.CfnScheduleGroup
	role  awsiam.Role
}

// NewTick makes the group of the ticks and their role.
func NewTick(scope constructs.Construct, group string) Tick {
	made := awsscheduler.NewCfnScheduleGroup(scope, jsii.String("TickGroup"),
		&awsscheduler.CfnScheduleGroupProps{Name: jsii.String(group)})
	role := awsiam.NewRole(scope, jsii.String("TickRole"), &awsiam.RoleProps{
		Description: jsii.String("What ticks may do: call the functions of each minute"),
		AssumedBy:   schedulerOf(awscdk.Stack_Of(scope), group),
	})
	return Tick{scope, made, role}
}

// EveryMinute has f called each minute, unless it is off.
func (t Tick) EveryMinute(id string, f Function, on bool) {
	state := "ENABLED"
	if !on {
		state = "DISABLED"
	}
	allow(t.role, strs("lambda:InvokeFunction"), f.Live.FunctionArn())
	// The alias configures itself, so its reference orders the two. AliasName is a literal: CloudFormation would
	// configure an alias that does not exist yet.
	f.Live.ConfigureAsyncInvoke(&awslambda.EventInvokeConfigOptions{
		RetryAttempts: jsii.Number(0), MaxEventAge: awscdk.Duration_Seconds(jsii.Number(60)),
	})
	schedule := awsscheduler.NewCfnSchedule(t.scope, jsii.String("Tick-"+id), &awsscheduler.CfnScheduleProps{
		GroupName: t.group.Ref(), Name: jsii.String(*t.stackName() + "-" + id),
		Description:        jsii.String("Each minute: " + id),
		ScheduleExpression: jsii.String("rate(1 minute)"), State: jsii.String(state),
		FlexibleTimeWindow: &awsscheduler.CfnSchedule_FlexibleTimeWindowProperty{Mode: jsii.String("OFF")},
		Target: &awsscheduler.CfnSchedule_TargetProperty{
			Arn: f.Live.FunctionArn(), RoleArn: t.role.RoleArn(), Input: jsii.String(`{"tick":"` + id + `"}`),
			RetryPolicy: &awsscheduler.CfnSchedule_RetryPolicyProperty{MaximumEventAgeInSeconds: jsii.Number(60),
				MaximumRetryAttempts: jsii.Number(0)},
		},
	})
	schedule.Node().AddDependency(t.role) // with its policy, or the first calls are refused
}

func (t Tick) stackName() *string { return awscdk.Stack_Of(t.scope).StackName() }

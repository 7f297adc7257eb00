package stack

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"punctual/infra/construct"
	"punctual/infra/target"
)

// Watch is what a person sees of a deployment: dashboards, alarms, and the topic of those on call.
type Watch struct {
	awscdk.Stack
	Topic  construct.Topic
	Alarms []awscloudwatch.Alarm
}

// Runbook is where the pages are that alarms name.
const Runbook = "infra/runbook/"

// NewWatch makes the stack.
func NewWatch(scope constructs.Construct, s target.Settings, d Data, f Flow) Watch {
	stack := newStack(scope, s, "watch", "dashboards and alarms", false)
	w := Watch{Stack: stack, Topic: construct.NewTopic(stack, "OnCall", s.Prefix+"-oncall", d.Key, s.Alarms.Mail)}
	for _, a := range alarms(s) {
		if a.math && s.Emulated {
			continue
		}
		w.Alarms = append(w.Alarms, construct.NewAlarm(stack, a.name, construct.AlarmProps{
			Name: s.Prefix + "-" + a.name, About: fmt.Sprintf("%s See %s%s.md", a.means, Runbook, a.runbook),
			Metric: a.metric, Over: a.over, Below: a.below, Bad: a.bad, Of: a.of, Missing: a.missing, Tell: w.Topic,
		}))
	}
	dashboards(stack, s, f)
	output(stack, "DashboardUrl",
		jsii.String(
			"https://"+s.Region+".console.aws.amazon.com/cloudwatch/home?region="+s.Region+"#dashboards:name="+
				s.Prefix),
		"What is going on")
	output(stack, "OnCallTopic", w.Topic.Arn(), "Subscribe those on call")
	return w
}

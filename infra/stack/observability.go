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

// Observability is what a person sees of a deployment: dashboards, alarms, and the topics that alarms notify.
type Observability struct {
	awscdk.Stack
	Page   construct.Topic // of alarms that wake the person on call
	Mail   construct.Topic // of alarms that can wait for the morning
	Alarms []awscloudwatch.Alarm
}

// Runbook is where the pages are that alarms name.
const Runbook = "infra/runbook/"

// NewObservability makes the stack.
func NewObservability(scope constructs.Construct, s target.Settings, d Data, f Flow) Observability {
	// The stack keeps its former name: under another one CloudFormation would make a second stack.
	stack := newStack(scope, s, "watch", "dashboards and alarms", false)
	w := Observability{Stack: stack,
		Page: construct.NewTopic(stack, "OnCall", s.Prefix+"-oncall", d.Key, s.Alarms.PageAddress()),
		Mail: construct.NewTopic(stack, "Mail", s.Prefix+"-mail", d.Key, s.Alarms.Mail),
	}
	for _, a := range alarms(s) {
		if a.math && s.Emulated {
			continue
		}
		topic := w.Mail
		if a.pages {
			topic = w.Page
		}
		w.Alarms = append(w.Alarms, construct.NewAlarm(stack, a.name, construct.AlarmProps{
			Name: s.Prefix + "-" + a.name, About: fmt.Sprintf("%s See %s%s.md", a.means, Runbook, a.runbook),
			Metric: a.metric, Over: a.over, Below: a.below, Bad: a.bad, Of: a.of, Missing: a.missing, Notify: topic,
			Quiet: a.quiet && s.Hold,
		}))
	}
	dashboards(stack, s, f)
	output(stack, "DashboardUrl",
		jsii.String(
			"https://"+s.Region+".console.aws.amazon.com/cloudwatch/home?region="+s.Region+"#dashboards:name="+
				s.Prefix),
		"What is going on")
	output(stack, "OnCallTopic", w.Page.Arn(), "Alarms that wake the person on call: subscribe the pager")
	output(stack, "MailTopic", w.Mail.Arn(), "Alarms that can wait for the morning: subscribe the team")
	return w
}

package construct

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// Topic notifies people of alarms. It is encrypted and takes alarms of this account only.
type Topic struct{ sns awssns.Topic }

// NewTopic makes the topic and subscribes mail to it; "" subscribes no one.
func NewTopic(scope constructs.Construct, id, name string, key Key, mail string) Topic {
	topic := awssns.NewTopic(scope, jsii.String(id), &awssns.TopicProps{
		TopicName: jsii.String(name), DisplayName: jsii.String("Punctual"), MasterKey: key.kms,
		EnforceSSL: jsii.Bool(true),
	})
	topic.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Principals: &[]awsiam.IPrincipal{awsiam.NewServicePrincipal(jsii.String("cloudwatch.amazonaws.com"), nil)},
		Actions:    strs("sns:Publish"), Resources: &[]*string{topic.TopicArn()},
		Conditions: &map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": awscdk.Stack_Of(scope).
			Account()}},
	}))
	if mail != "" {
		topic.AddSubscription(awssnssubscriptions.NewEmailSubscription(jsii.String(mail), nil))
	}
	return Topic{topic}
}

// Arn is the topic's.
func (t Topic) Arn() *string { return t.sns.TopicArn() }

// Missing says what it means when a metric has no value.
type Missing int

// What missing values can mean.
const (
	Good Missing = iota // nothing happened: the usual case of a count of bad things
	Bad                 // the sign of life has stopped
)

// AlarmProps says when an alarm goes off.
type AlarmProps struct {
	Name    string // real name
	About   string // what it means, and the address of its page
	Metric  awscloudwatch.IMetric
	Over    float64 // the value that is still good
	Below   bool    // bad is below Over instead of above
	Bad, Of int     // so many of the last so many minutes
	Missing Missing
	Notify  Topic // the zero Topic notifies no one: the alarm only ends a canary
	Quiet   bool  // it shows its state and notifies no one
}

// NewAlarm makes an alarm.
func NewAlarm(scope constructs.Construct, id string, p AlarmProps) awscloudwatch.Alarm {
	compare, missing := awscloudwatch.ComparisonOperator_GREATER_THAN_THRESHOLD,
		awscloudwatch.TreatMissingData_NOT_BREACHING
	if p.Below {
		compare = awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD
	}
	if p.Missing == Bad {
		missing = awscloudwatch.TreatMissingData_BREACHING
	}
	alarm := awscloudwatch.NewAlarm(scope, jsii.String(id), &awscloudwatch.AlarmProps{
		AlarmName: jsii.String(p.Name), AlarmDescription: jsii.String(p.About), Metric: p.Metric,
		Threshold:          jsii.Number(p.Over),
		ComparisonOperator: compare, DatapointsToAlarm: jsii.Number(p.Bad), EvaluationPeriods: jsii.Number(p.Of),
		TreatMissingData: missing,
		ActionsEnabled:   jsii.Bool(!p.Quiet),
	})
	if p.Notify.sns != nil {
		alarm.AddAlarmAction(awscloudwatchactions.NewSnsAction(p.Notify.sns))
		alarm.AddOkAction(awscloudwatchactions.NewSnsAction(p.Notify.sns))
	}
	return alarm
}

// Measure is a metric over a minute.
func Measure(namespace, name, statistic string, dims ...string) awscloudwatch.Metric {
	return measure(namespace, name, statistic, 1, dims)
}

// MeasureOver is a metric over some minutes.
func MeasureOver(minutes int, namespace, name, statistic string, dims ...string) awscloudwatch.Metric {
	return measure(namespace, name, statistic, minutes, dims)
}

func measure(namespace, name, statistic string, minutes int, dims []string) awscloudwatch.Metric {
	p := &awscloudwatch.MetricProps{
		Namespace: jsii.String(namespace), MetricName: jsii.String(name), Statistic: jsii.String(statistic),
		Period: awscdk.Duration_Minutes(jsii.Number(minutes)),
	}
	if len(dims) > 0 {
		m := map[string]*string{}
		for i := 0; i+1 < len(dims); i += 2 {
			m[dims[i]] = jsii.String(dims[i+1])
		}
		p.DimensionsMap = &m
	}
	return awscloudwatch.NewMetric(p)
}

// Labelled is the same metric under another name in a graph.
func Labelled(m awscloudwatch.Metric, label string) awscloudwatch.IMetric {
	return m.With(&awscloudwatch.MetricOptions{Label: jsii.String(label)})
}

// Math is an expression over metrics; using comes in pairs of a lower-case name and a metric.
func Math(minutes int, label, expression string, using ...any) awscloudwatch.MathExpression {
	m := map[string]awscloudwatch.IMetric{}
	for i := 0; i+1 < len(using); i += 2 {
		m[using[i].(string)] = using[i+1].(awscloudwatch.IMetric)
	}
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(expression), UsingMetrics: &m, Label: jsii.String(label),
		Period: awscdk.Duration_Minutes(jsii.Number(minutes)),
	})
}

// Search is every metric of a name that has one dimension, whatever its value: a line for each.
func Search(namespace, name, statistic, dim string) awscloudwatch.MathExpression {
	expression := fmt.Sprintf(`SEARCH('{%s,%s} MetricName="%s"', '%s', 60)`, namespace, dim, name, statistic)
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(expression), UsingMetrics: &map[string]awscloudwatch.IMetric{}, Label: jsii.String(""),
		Period: awscdk.Duration_Minutes(jsii.Number(1)),
	})
}

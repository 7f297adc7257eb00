package construct

import (
	"maps"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// Logs are the log groups of a deployment, by what writes to them. They are in the stack of the data. If they were in
// the stack of the writers, the groups would be retained when it is deleted, and block its next deploy.
type Logs struct {
	groups map[string]awslogs.LogGroup
	names  map[string]string
}

// NewLogs makes a group for each name, whose lines expire after some days; keep retains the groups when their stack is
// deleted. The keys of names are the arguments of days, Group and In.
func NewLogs(scope constructs.Construct, names map[string]string, days func(what string) int, keep bool) Logs {
	l := Logs{groups: map[string]awslogs.LogGroup{}, names: names}
	for _, what := range slices.Sorted(maps.Keys(names)) {
		l.groups[what] = awslogs.NewLogGroup(scope, jsii.String("Log-"+what), &awslogs.LogGroupProps{
			LogGroupName: jsii.String(names[what]), Retention: retention(days(what)), RemovalPolicy: removal(keep),
		})
	}
	return l
}

// NewStream makes a stream in one of them, for what does not make its own. It is in the stack of the group, so that it
// is retained together with it.
func (l Logs) NewStream(what, name string, keep bool) {
	group := l.groups[what]
	awslogs.NewLogStream(group.Stack(), jsii.String("Stream-"+what), &awslogs.LogStreamProps{
		LogGroup: group, LogStreamName: jsii.String(name), RemovalPolicy: removal(keep),
	})
}

// Group returns one of them, in its own stack.
func (l Logs) Group(what string) awslogs.LogGroup { return l.groups[what] }

// In returns one of them by its name, for the stack of what writes to it.
func (l Logs) In(scope constructs.Construct, what string) awslogs.ILogGroup {
	return awslogs.LogGroup_FromLogGroupName(scope, jsii.String(what+"-log"), jsii.String(l.names[what]))
}

// GrantLog lets a role write to a log group.
func GrantLog(role awsiam.IRole, group awslogs.ILogGroup) {
	allow(role, strs("logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"), group.LogGroupArn())
}

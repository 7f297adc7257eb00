package construct

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// NewLog makes a log group that forgets after some days; keep leaves it when its stack goes.
func NewLog(scope constructs.Construct, id, name string, days int, keep bool) awslogs.LogGroup {
	return awslogs.NewLogGroup(scope, jsii.String(id), &awslogs.LogGroupProps{
		LogGroupName: jsii.String(name), Retention: retention(days), RemovalPolicy: removal(keep),
	})
}

// GrantLog lets a role write to a log group.
func GrantLog(role awsiam.IRole, group awslogs.LogGroup) {
	allow(role, strs("logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"), group.LogGroupArn())
}

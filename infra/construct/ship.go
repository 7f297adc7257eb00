package construct

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awspipes"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// ShipProps says what is written to a log group.
type ShipProps struct {
	Name      string // of the pipe
	Table     string // by its logical name
	Attribute string // text of an item that becomes a line
	Group     awslogs.ILogGroup
	LogStream string // in the group, where it is
}

// Ship has a line written to a log group for each new item of a table, at least once. An item that cannot be written is
// tried again for as long as the stream holds it, which is a day; those after it wait.
func (t Tables) Ship(scope constructs.Construct, p ShipProps) {
	account := awscdk.Stack_Of(scope).Account()
	role := awsiam.NewRole(scope, jsii.String("Role-"+p.Name), &awsiam.RoleProps{
		Description: jsii.String("Punctual. Writes new items of the table " + p.Table + " to a log group"),
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("pipes.amazonaws.com"),
			&awsiam.ServicePrincipalOpts{Conditions: &map[string]any{
				"StringEquals": map[string]any{"aws:SourceAccount": account},
			}}),
	})
	stream := t.Table(p.Table).TableStreamArn()
	allow(role, strs("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator",
		"dynamodb:ListStreams"), stream)
	t.key.GrantUse(role, DynamoDB)
	GrantLog(role, p.Group)
	pipe := awspipes.NewCfnPipe(scope, jsii.String("Pipe-"+p.Name), &awspipes.CfnPipeProps{
		Name: jsii.String(p.Name), RoleArn: role.RoleArn(), Source: stream, Target: p.Group.LogGroupArn(),
		Description: jsii.String("Punctual. Writes new items of the table " + p.Table + " to a log group"),
		SourceParameters: &awspipes.CfnPipe_PipeSourceParametersProperty{
			DynamoDbStreamParameters: &awspipes.CfnPipe_PipeSourceDynamoDBStreamParametersProperty{
				StartingPosition: jsii.String("TRIM_HORIZON"), BatchSize: jsii.Number(10),
				MaximumRecordAgeInSeconds: jsii.Number(-1), MaximumRetryAttempts: jsii.Number(-1), // both: no bound
				OnPartialBatchItemFailure: jsii.String("AUTOMATIC_BISECT"),
			},
			FilterCriteria: &awspipes.CfnPipe_FilterCriteriaProperty{Filters: &[]any{
				awspipes.CfnPipe_FilterProperty{Pattern: jsii.String(`{"eventName":["INSERT"]}`)},
			}},
		},
		TargetParameters: &awspipes.CfnPipe_PipeTargetParametersProperty{
			CloudWatchLogsParameters: &awspipes.CfnPipe_PipeTargetCloudWatchLogsParametersProperty{
				LogStreamName: jsii.String(p.LogStream),
			},
			InputTemplate: jsii.String(fmt.Sprintf(`{"%[1]s": <$.dynamodb.NewImage.%[1]s.S>}`, p.Attribute)),
		},
	})
	pipe.Node().AddDependency(role)
}

package construct

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"punctual/shared/contract"
)

// Bounds of the stream's source. With Lambda's defaults, one bad record would block its shard for a day, and then the
// later records would be lost.
const (
	streamRetries = 20
	streamAge     = 6 * time.Hour
)

// FeedFromQueue has Lambda call the function with the messages of a queue, at once and in batches of up to ten: with a
// batch window, messages of a quiet queue may wait for 20 s. Only the messages that the function names are redelivered.
//
// on is false while a deployment is held: messages wait in the queue.
func (f Function) FeedFromQueue(q Queues, logical string, most int, on bool) {
	q.GrantPoll(f.Role, logical)
	awslambda.NewEventSourceMapping(f.Function, jsii.String("from-"+logical), &awslambda.EventSourceMappingProps{
		Target: f.Live, EventSourceArn: q.Queue(logical).QueueArn(), Enabled: jsii.Bool(on),
		BatchSize: jsii.Number(10), MaxBatchingWindow: awscdk.Duration_Seconds(jsii.Number(0)),
		ReportBatchItemFailures: jsii.Bool(true),
		MaxConcurrency:          jsii.Number(most),
	})
}

// FeedFromStream has Lambda call the function with the changes of the jobs table whose attribute near is "1", and with
// expired rows that may have contents: a payload, a result, tags, or attempts before the last. The other changes cost
// no call. The position of a record that fails too often or too long is sent to the queue dead.
//
// Each shard of the stream has parallel invocations at once, 1 to 10. other is the ARN of the stream to use if the
// table was replaced by a restored one; "" uses the table's own.
func (f Function) FeedFromStream(t Tables, logical string, dead awssqs.Queue, parallel int, on bool, other string) {
	source := f.read(t, logical, dead, other, &awslambda.EventSourceMappingProps{
		Enabled: jsii.Bool(on), BatchSize: jsii.Number(100), MaxBatchingWindow: awscdk.Duration_Seconds(jsii.Number(0)),
		BisectBatchOnError: jsii.Bool(true), RetryAttempts: jsii.Number(streamRetries),
		MaxRecordAge:          awscdk.Duration_Hours(jsii.Number(streamAge.Hours())),
		ParallelizationFactor: jsii.Number(parallel),
		Filters:               shown(),
	})
	// Named here: CDK's own destination would grant the role more than to send.
	source.Node().DefaultChild().(awslambda.CfnEventSourceMapping).
		AddPropertyOverride(jsii.String("DestinationConfig.OnFailure.Destination"), dead.QueueArn())
}

// Followed bounds the calls of a function that follows a table.
type Followed struct {
	Batch int           // most changes of a call
	Wait  time.Duration // how long a call waits for more of them
	// Window is the length of the windows in which each call is given what those before it have counted. Each shard
	// then has one invocation at a time.
	Window time.Duration
}

// FollowStream has Lambda call the function with each change of a row of the jobs table, in windows of time. A change
// that fails is delivered until it succeeds, or the stream no longer has it: the function itself sends to the queue
// dead what can never succeed. on and other are as for FeedFromStream.
func (f Function) FollowStream(t Tables, logical string, dead awssqs.Queue, by Followed, on bool, other string) {
	f.read(t, logical, dead, other, &awslambda.EventSourceMappingProps{
		Enabled: jsii.Bool(on), BatchSize: jsii.Number(by.Batch),
		MaxBatchingWindow:     awscdk.Duration_Seconds(jsii.Number(by.Wait.Seconds())),
		TumblingWindow:        awscdk.Duration_Seconds(jsii.Number(by.Window.Seconds())),
		ParallelizationFactor: jsii.Number(1), // Lambda takes no other with windows
		Filters:               rows(),
	})
}

// read has Lambda call the function with changes of a table.
func (f Function) read(t Tables, logical string, dead awssqs.Queue, other string,
	props *awslambda.EventSourceMappingProps) awslambda.EventSourceMapping {
	stream := t.Table(logical).TableStreamArn()
	if other != "" {
		// The function's stack uses the export of the table's own until it is deployed, and the table's stack goes
		// first: CloudFormation refuses to remove what is in use.
		awscdk.Stack_Of(t.Table(logical)).ExportValue(stream, nil)
		stream = jsii.String(other)
	}
	allow(f.Role, strs("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator",
		"dynamodb:ListStreams"), stream)
	t.key.GrantUse(f.Role, DynamoDB)
	allow(f.Role, strs("sqs:SendMessage"), dead.QueueArn())
	props.Target, props.EventSourceArn, props.ReportBatchItemFailures = f.Live, stream, jsii.Bool(true)
	props.StartingPosition = awslambda.StartingPosition_TRIM_HORIZON
	return awslambda.NewEventSourceMapping(f.Function, jsii.String("from-"+logical), props)
}

// rows is the filter of what follows the jobs table: changes of rows, not of their contents.
func rows() *[]*map[string]any {
	row := map[string]any{contract.AttrSchema: map[string]any{"N": awslambda.FilterRule_Exists()}}
	return &[]*map[string]any{
		awslambda.FilterCriteria_Filter(&map[string]any{"dynamodb": map[string]any{"NewImage": row}}),
		gone(contract.AttrSchema, "N", awslambda.FilterRule_Exists()),
	}
}

// shown is the filter of the stream's consumer; functions/batch has the same filter for one process.
func shown() *[]*map[string]any {
	near := map[string]any{contract.AttrNear: map[string]any{"S": awslambda.FilterRule_IsEqual(jsii.String("1"))}}
	patterns := []*map[string]any{
		awslambda.FilterCriteria_Filter(&map[string]any{"dynamodb": map[string]any{"NewImage": near}}),
		gone(contract.AttrAttempt, "N", awslambda.FilterRule_NotEquals(jsii.String("1"))),
	}
	for _, attr := range contract.ContentMarks {
		patterns = append(patterns, gone(attr, "S", awslambda.FilterRule_Exists()))
	}
	return &patterns
}

// gone matches items that were removed and had such an attribute. A source takes five patterns.
func gone(attr, kind string, rule any) *map[string]any {
	return awslambda.FilterCriteria_Filter(&map[string]any{
		"eventName": awslambda.FilterRule_IsEqual(jsii.String("REMOVE")),
		"dynamodb":  map[string]any{"OldImage": map[string]any{attr: map[string]any{kind: rule}}},
	})
}

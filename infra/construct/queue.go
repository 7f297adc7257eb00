package construct

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"punctual/shared/contract"
)

// keyReuse is how long SQS uses one data key: without it, every send would be a call to KMS.
const keyReuse = 3600

// Queues are all queues of contract.Queues: standard ones, on which a message group is a
// tenant to be treated fairly.
type Queues struct{ queues map[string]awssqs.Queue }

// NewQueues makes them, with the redrive policies that the contract names; name gives the real
// name of each.
func NewQueues(scope constructs.Construct, key Key, name func(logical string) string, keep bool) Queues {
	q := Queues{queues: map[string]awssqs.Queue{}}
	for _, c := range contract.Queues() { // DLQs come first
		props := &awssqs.QueueProps{
			QueueName:  jsii.String(name(c.Name)),
			Encryption: awssqs.QueueEncryption_KMS, EncryptionMasterKey: key.kms,
			DataKeyReuse:      awscdk.Duration_Seconds(jsii.Number(keyReuse)),
			EnforceSSL:        jsii.Bool(true),
			VisibilityTimeout: awscdk.Duration_Seconds(jsii.Number(c.Visibility.Seconds())),
			RetentionPeriod:   awscdk.Duration_Seconds(jsii.Number(c.Retention.Seconds())),
			// a receive without a wait of its own waits that long
			ReceiveMessageWaitTime: awscdk.Duration_Seconds(jsii.Number(20)),
			RemovalPolicy:          removal(keep),
		}
		if c.DeadLetter != "" {
			props.DeadLetterQueue = &awssqs.DeadLetterQueue{Queue: q.queues[c.DeadLetter],
				MaxReceiveCount: jsii.Number(c.MaxReceives)}
		}
		q.queues[c.Name] = awssqs.NewQueue(scope, jsii.String("Queue-"+c.Name), props)
	}
	return q
}

// All lists the queues, for dependencies.
func (q Queues) All() []constructs.IDependable {
	var all []constructs.IDependable
	for _, c := range contract.Queues() {
		all = append(all, q.queues[c.Name])
	}
	return all
}

// Queue returns one of them, by logical name.
func (q Queues) Queue(logical string) awssqs.Queue { return q.queues[logical] }

func (q Queues) arns(logical []string) []*string {
	arns := make([]*string, len(logical))
	for i, l := range logical {
		arns[i] = q.queues[l].QueueArn()
	}
	return arns
}

// GrantSend lets a role find queues and send to them.
func (q Queues) GrantSend(role awsiam.IRole, logical ...string) {
	allow(role, strs("sqs:SendMessage", "sqs:GetQueueUrl"), q.arns(logical)...)
}

// GrantMeasure lets a role find queues and read their depths.
func (q Queues) GrantMeasure(role awsiam.IRole, logical ...string) {
	allow(role, strs("sqs:GetQueueAttributes", "sqs:GetQueueUrl"), q.arns(logical)...)
}

// GrantHide lets a role find queues and change the visibility of messages that it has received.
func (q Queues) GrantHide(role awsiam.IRole, logical ...string) {
	allow(role, strs("sqs:ChangeMessageVisibility", "sqs:GetQueueUrl"), q.arns(logical)...)
}

// GrantPoll lets Lambda take messages for a function with this role.
func (q Queues) GrantPoll(role awsiam.IRole, logical ...string) {
	allow(role, strs("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"), q.arns(logical)...)
}

// GrantTake lets a role find queues, receive and delete. Messages that it does not delete become visible by themselves.
func (q Queues) GrantTake(role awsiam.IRole, logical ...string) {
	allow(role, strs("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueUrl"), q.arns(logical)...)
}

// GrantReceive lets a role take messages by itself: find, receive, hide, delete.
func (q Queues) GrantReceive(role awsiam.IRole, logical ...string) {
	allow(role, strs("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueUrl"),
		q.arns(logical)...)
}

package construct

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// Key is the customer key that everything at rest is encrypted with.
type Key struct{ kms awskms.Key }

// NewKey makes a key that rotates yearly. keep retains it when its stack is deleted: without the key, the data that it
// has encrypted is lost.
func NewKey(scope constructs.Construct, id, alias string, keep bool) Key {
	key := awskms.NewKey(scope, jsii.String(id), &awskms.KeyProps{
		Alias: jsii.String("alias/" + alias), Description: jsii.String("Punctual: tables, queues and payloads of " +
			alias),
		EnableKeyRotation: jsii.Bool(true), RemovalPolicy: removal(keep),
	})
	return Key{key}
}

// Services through which a role may use the key.
const (
	DynamoDB = "dynamodb"
	SQS      = "sqs"
	S3       = "s3"
)

// GrantUse lets a role encrypt and decrypt through the named services only, not by calling the key itself.
func (k Key) GrantUse(role awsiam.IRole, services ...string) {
	stack := awscdk.Stack_Of(k.kms)
	via := make([]any, len(services))
	for i, s := range services {
		via[i] = s + "." + *stack.Region() + ".amazonaws.com"
	}
	role.AddToPrincipalPolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions: strs("kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo",
			"kms:DescribeKey"),
		Resources:  &[]*string{k.kms.KeyArn()},
		Conditions: &map[string]any{"StringEquals": map[string]any{"kms:ViaService": via}},
	}))
}

// GrantService lets a service of AWS that acts for no principal in particular, such as alarms, use
// the key, when it acts for this account.
func (k Key) GrantService(principal string) {
	k.kms.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Principals: &[]awsiam.IPrincipal{awsiam.NewServicePrincipal(jsii.String(principal), nil)},
		Actions:    strs("kms:Decrypt", "kms:GenerateDataKey"),
		Resources:  strs("*"), // in a key's own policy the only resource is the key
		Conditions: &map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": awscdk.Stack_Of(k.kms).
			Account()}},
	}), jsii.Bool(false))
}

// removal retains resources of a deployed stack. If the stack's first deploy is rolled back, they are deleted all the
// same, because their names would block the next try.
func removal(keep bool) awscdk.RemovalPolicy {
	if keep {
		return awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE
	}
	return awscdk.RemovalPolicy_DESTROY
}

func strs(values ...string) *[]*string {
	p := make([]*string, len(values))
	for i, v := range values {
		p[i] = jsii.String(v)
	}
	return &p
}

package construct

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"punctual/shared/contract"
)

// Bucket keeps payloads and results that are too large for an item.
type Bucket struct{ s3 awss3.Bucket }

// NewBucket makes the bucket. A job's object is deleted with its row. An object whose row was never written expires
// after the longest time that a job may wait and then be kept. A schedule's payload never expires; the write that
// replaces it deletes it.
//
// A deleted object stays as an old version for as long as the tables can be restored: a restored row may name it.
//
// If asked to, the bucket empties itself when its stack is deleted: a stack with a full bucket cannot be deleted.
func NewBucket(scope constructs.Construct, id string, key Key, keep, empties bool) Bucket {
	const day = 24
	longest := int((contract.MaxAhead+contract.DeadKept).Hours()/day) + 1
	props := &awss3.BucketProps{
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		ObjectOwnership:   awss3.ObjectOwnership_BUCKET_OWNER_ENFORCED,
		Encryption:        awss3.BucketEncryption_KMS, EncryptionKey: key.kms, BucketKeyEnabled: jsii.Bool(true),
		EnforceSSL: jsii.Bool(true), Versioned: jsii.Bool(true),
		LifecycleRules: &[]*awss3.LifecycleRule{
			{Id: jsii.String("nobody-needs-it"), Prefix: jsii.String(contract.JobBlobs),
				Expiration: awscdk.Duration_Days(jsii.Number(longest))},
			{Id: jsii.String("deleted"), ExpiredObjectDeleteMarker: jsii.Bool(true),
				NoncurrentVersionExpiration: awscdk.Duration_Days(jsii.Number(RecoveryDays + 1))},
			{Id: jsii.String("never-finished"), AbortIncompleteMultipartUploadAfter: awscdk.Duration_Days(
				jsii.Number(1))},
		},
		RemovalPolicy: removal(keep),
	}
	if empties {
		props.AutoDeleteObjects = jsii.Bool(true)
	}
	return Bucket{awss3.NewBucket(scope, jsii.String(id), props)}
}

// Made is the bucket, for dependencies.
func (b Bucket) Made() constructs.IDependable { return b.s3 }

// Name is the bucket's real name.
func (b Bucket) Name() *string { return b.s3.BucketName() }

// GrantRead lets a role get objects. It may not list them, so for an absent key S3 answers "denied".
func (b Bucket) GrantRead(role awsiam.IRole) {
	allow(role, strs("s3:GetObject"), b.s3.ArnForObjects(jsii.String("*")))
}

// GrantList lets a role list objects, so that S3 says of an absent key that it is absent.
func (b Bucket) GrantList(role awsiam.IRole) { allow(role, strs("s3:ListBucket"), b.s3.BucketArn()) }

// GrantWrite lets a role put objects.
func (b Bucket) GrantWrite(role awsiam.IRole) {
	allow(role, strs("s3:PutObject"), b.s3.ArnForObjects(jsii.String("*")))
}

// GrantPutResults lets a role put results of jobs, and nothing else.
func (b Bucket) GrantPutResults(role awsiam.IRole) {
	allow(role, strs("s3:PutObject"), b.s3.ArnForObjects(jsii.String(contract.ResultObjects)))
}

// GrantDelete lets a role delete objects.
func (b Bucket) GrantDelete(role awsiam.IRole) {
	allow(role, strs("s3:DeleteObject"), b.s3.ArnForObjects(jsii.String("*")))
}

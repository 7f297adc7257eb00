package construct

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsbackup"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"punctual/shared/contract"
)

// BackupProps says what is copied to where.
type BackupProps struct {
	Name    string // of the vault here and there
	Account string // the account that takes the copies
	Key     Key
	Tables  Tables
	Bucket  Bucket
}

// NewBackup copies all tables and the payloads into a vault of another account, once a day. The loss of this account,
// or of its key, then costs a day at most. The other account has made the vault, and lets this one copy into it.
func NewBackup(scope constructs.Construct, p BackupProps) {
	stack := awscdk.Stack_Of(scope)
	vault := awsbackup.NewBackupVault(scope, jsii.String("BackupVault"), &awsbackup.BackupVaultProps{
		BackupVaultName: jsii.String(p.Name), EncryptionKey: p.Key.kms, RemovalPolicy: removal(true),
	})
	there := awsbackup.BackupVault_FromBackupVaultArn(scope, jsii.String("BackupCopies"), stack.FormatArn(
		&awscdk.ArnComponents{Service: jsii.String("backup"), Account: jsii.String(p.Account),
			Resource: jsii.String("backup-vault"), ResourceName: jsii.String(p.Name),
			ArnFormat: awscdk.ArnFormat_COLON_RESOURCE_NAME}))
	kept := awscdk.Duration_Days(jsii.Number(RecoveryDays))
	plan := awsbackup.NewBackupPlan(scope, jsii.String("BackupPlan"), &awsbackup.BackupPlanProps{
		BackupPlanName: jsii.String(p.Name), BackupVault: vault,
		BackupPlanRules: &[]awsbackup.BackupPlanRule{awsbackup.NewBackupPlanRule(&awsbackup.BackupPlanRuleProps{
			RuleName: jsii.String("daily"), DeleteAfter: kept,
			ScheduleExpression: awsevents.Schedule_Cron(&awsevents.CronOptions{Hour: jsii.String("5"),
				Minute: jsii.String("0")}),
			StartWindow: awscdk.Duration_Hours(
				jsii.Number(1),
			), CompletionWindow: awscdk.Duration_Hours(jsii.Number(12)),
			CopyActions: &[]*awsbackup.BackupPlanCopyActionProps{{DestinationBackupVault: there, DeleteAfter: kept}},
		})},
	})
	var tables []*string
	for _, s := range contract.Schemas() {
		tables = append(tables, p.Tables.Table(s.Name).TableArn())
	}
	var what []awsbackup.BackupResource
	for _, arn := range append(tables, p.Bucket.s3.BucketArn()) {
		what = append(what, awsbackup.BackupResource_FromArn(arn))
	}
	plan.AddSelection(jsii.String("All"), &awsbackup.BackupSelectionOptions{
		Resources: &what, Role: p.role(scope, tables, vault.BackupVaultArn(), there.BackupVaultArn()),
		DisableDefaultBackupPolicy: jsii.Bool(true),
	})
}

// role is what AWS Backup may do: what its own policies allow, for these tables, this bucket and these vaults only.
func (p BackupProps) role(scope constructs.Construct, tables []*string, vaults ...*string) awsiam.Role {
	role := awsiam.NewRole(scope, jsii.String("BackupRole"), &awsiam.RoleProps{
		Description: jsii.String("What AWS Backup may do: copy the tables and payloads of " + p.Name),
		AssumedBy:   awsiam.NewServicePrincipal(jsii.String("backup.amazonaws.com"), nil),
	})
	stack := awscdk.Stack_Of(scope)
	allow(role, strs("dynamodb:DescribeTable", "dynamodb:ListTagsOfResource", "dynamodb:StartAwsBackupJob"), tables...)
	allow(
		role,
		strs("backup:DescribeBackupVault", "backup:CopyIntoBackupVault", "backup:CopyFromBackupVault"),
		vaults...)
	allow(role, strs("s3:GetInventoryConfiguration", "s3:PutInventoryConfiguration", "s3:ListBucketVersions",
		"s3:ListBucket", "s3:GetBucketVersioning", "s3:GetBucketNotification", "s3:PutBucketNotification",
		"s3:GetBucketLocation", "s3:GetBucketTagging", "s3:GetBucketAcl"), p.Bucket.s3.BucketArn())
	allow(role, strs("s3:GetObject", "s3:GetObjectAcl", "s3:GetObjectVersion", "s3:GetObjectVersionAcl",
		"s3:GetObjectTagging", "s3:GetObjectVersionTagging"), p.Bucket.s3.ArnForObjects(jsii.String("*")))
	rules := stack.FormatArn(&awscdk.ArnComponents{Service: jsii.String("events"), Resource: jsii.String("rule"),
		ResourceName: jsii.String("AwsBackupManagedRule*")})
	allow(role, strs("events:DescribeRule", "events:EnableRule", "events:PutRule", "events:DeleteRule",
		"events:PutTargets", "events:RemoveTargets", "events:ListTargetsByRule", "events:DisableRule"), rules)
	allow(role, strs("cloudwatch:GetMetricData", "events:ListRules"), jsii.String("*")) // these know no resources
	allow(role, strs("kms:Decrypt", "kms:GenerateDataKey", "kms:DescribeKey"), p.Key.kms.KeyArn())
	role.AddToPrincipalPolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions: strs("kms:CreateGrant"), Resources: &[]*string{p.Key.kms.KeyArn()},
		Conditions: &map[string]any{"Bool": map[string]any{"kms:GrantIsForAWSResource": "true"}},
	}))
	return role
}

package construct

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// FunctionProps says how a function is made.
type FunctionProps struct {
	Name    string // real name
	About   string // its description in the console
	Folder  string // holds its bootstrap
	Arch    string // "arm64" or "amd64"
	Timeout time.Duration
	MiB     int // memory, and with it CPU
	Env     []Var
	Log     awslogs.ILogGroup

	Layer string // ARN of a version of a layer; "" is none

	// Reserved is concurrency kept for it, and its most; 0, the default, reserves none.
	Reserved int
}

// Var is a variable of a function's environment.
type Var struct{ Name, Value string }

// Live is the alias by which a function is called. It names the version of the last deploy; invocations that run during
// a deploy are finished by the version before.
const Live = "live"

// Function is a Lambda function with a role of its own, which may write its log and nothing else.
type Function struct {
	awslambda.Function
	Live awslambda.Alias
	Role awsiam.Role
	Log  awslogs.ILogGroup
}

// NewFunction makes it from a prebuilt bootstrap on provided.al2023.
func NewFunction(scope constructs.Construct, id string, p FunctionProps) Function {
	role := awsiam.NewRole(scope, jsii.String(id+"-role"), &awsiam.RoleProps{
		AssumedBy:   awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
		Description: jsii.String("What " + p.Name + " may do"),
	})
	allow(role, strs("logs:CreateLogStream", "logs:PutLogEvents"), p.Log.LogGroupArn())
	env := map[string]*string{}
	for _, v := range p.Env {
		env[v.Name] = jsii.String(v.Value)
	}
	props := &awslambda.FunctionProps{
		FunctionName: jsii.String(p.Name), Description: jsii.String(p.About),
		Runtime: awslambda.Runtime_PROVIDED_AL2023(), Architecture: architecture(p.Arch),
		Handler: jsii.String("bootstrap"),
		Code:    awslambda.Code_FromAsset(jsii.String(p.Folder), nil),
		Timeout: awscdk.Duration_Seconds(jsii.Number(p.Timeout.Seconds())), MemorySize: jsii.Number(p.MiB),
		Environment: &env, Role: role, LogGroup: p.Log,
		// Versions stay until an operator deletes them: a rollback points the alias at one.
		CurrentVersionOptions: &awslambda.VersionOptions{RemovalPolicy: removal(true)},
	}
	if p.Layer != "" {
		props.Layers = &[]awslambda.ILayerVersion{awslambda.LayerVersion_FromLayerVersionArn(scope,
			jsii.String(id+"-layer"), jsii.String(p.Layer))}
	}
	if p.Reserved > 0 {
		props.ReservedConcurrentExecutions = jsii.Number(p.Reserved)
	}
	fn := awslambda.NewFunction(scope, jsii.String(id), props)
	live := awslambda.NewAlias(scope, jsii.String(id+"-live"), &awslambda.AliasProps{AliasName: jsii.String(Live),
		Version: fn.CurrentVersion()})
	return Function{fn, live, role, p.Log}
}

// GrantTags lets a role read the tags of the account's roles and users, who sign requests.
func GrantTags(role awsiam.IRole) {
	stack := awscdk.Stack_Of(role)
	of := func(kind string) *string {
		return stack.FormatArn(&awscdk.ArnComponents{Service: jsii.String("iam"), Region: jsii.String(""),
			Resource: jsii.String(kind), ResourceName: jsii.String("*")})
	}
	allow(role, strs("iam:ListRoleTags"), of("role"))
	allow(role, strs("iam:ListUserTags"), of("user"))
}

func architecture(goarch string) awslambda.Architecture {
	if goarch == "amd64" {
		return awslambda.Architecture_X86_64()
	}
	return awslambda.Architecture_ARM_64()
}

// retention is the smallest one of AWS's that is not under days; target allows no other.
func retention(days int) awslogs.RetentionDays {
	for _, r := range []struct {
		days int
		is   awslogs.RetentionDays
	}{
		{1, awslogs.RetentionDays_ONE_DAY}, {3, awslogs.RetentionDays_THREE_DAYS}, {5, awslogs.RetentionDays_FIVE_DAYS},
		{7, awslogs.RetentionDays_ONE_WEEK}, {14, awslogs.RetentionDays_TWO_WEEKS},
		{30, awslogs.RetentionDays_ONE_MONTH},
		{60, awslogs.RetentionDays_TWO_MONTHS}, {90, awslogs.RetentionDays_THREE_MONTHS},
		{120, awslogs.RetentionDays_FOUR_MONTHS},
		{150, awslogs.RetentionDays_FIVE_MONTHS}, {180, awslogs.RetentionDays_SIX_MONTHS},
		{365, awslogs.RetentionDays_ONE_YEAR}, {400, awslogs.RetentionDays_THIRTEEN_MONTHS},
		{545, awslogs.RetentionDays_EIGHTEEN_MONTHS}, {731, awslogs.RetentionDays_TWO_YEARS},
		{1096, awslogs.RetentionDays_THREE_YEARS}, {1827, awslogs.RetentionDays_FIVE_YEARS},
		{2192, awslogs.RetentionDays_SIX_YEARS}, {2557, awslogs.RetentionDays_SEVEN_YEARS},
		{2922, awslogs.RetentionDays_EIGHT_YEARS}, {3288, awslogs.RetentionDays_NINE_YEARS},
	} {
		if days <= r.days {
			return r.is
		}
	}
	return awslogs.RetentionDays_TEN_YEARS
}

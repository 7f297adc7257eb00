package construct

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscodedeploy"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// Canary gives the new version of a function a part of its calls for some minutes, and then all of them. If an alarm
// goes off meanwhile, all calls return to the version before, and the deploy fails. It works for functions that are
// called by one alias.
type Canary struct {
	scope  constructs.Construct
	app    awscodedeploy.ILambdaApplication
	role   awsiam.Role
	shifts [2]awscodedeploy.ILambdaDeploymentConfig
}

// TrafficShift is how many of its calls a new version gets, and for how long.
type TrafficShift int

// The shifts. Half is for what is called once a minute: that none of ten calls meets the new version is one case in a
// thousand.
const (
	Tenth TrafficShift = iota // for five minutes
	Half                      // for ten
)

// NewCanary makes what all canaries of a deployment share: their name, and the role that moves calls
// from one version to another.
func NewCanary(scope constructs.Construct, name string) Canary {
	role := awsiam.NewRole(scope, jsii.String("CanaryRole"), &awsiam.RoleProps{
		Description: jsii.String("What canaries may do: move calls between versions of functions, and look at alarms"),
		AssumedBy:   awsiam.NewServicePrincipal(jsii.String("codedeploy.amazonaws.com"), nil),
	})
	allow(role, strs("cloudwatch:DescribeAlarms"), jsii.String("*")) // CloudWatch knows no resources here
	app := awscodedeploy.NewLambdaApplication(scope, jsii.String("Canary"), &awscodedeploy.LambdaApplicationProps{
		ApplicationName: jsii.String(name)})
	half := awscodedeploy.NewLambdaDeploymentConfig(scope, jsii.String("CanaryHalf"),
		&awscodedeploy.LambdaDeploymentConfigProps{
			DeploymentConfigName: jsii.String(name + "-half"),
			TrafficRouting: awscodedeploy.NewTimeBasedCanaryTrafficRouting(
				&awscodedeploy.TimeBasedCanaryTrafficRoutingProps{
					Interval: awscdk.Duration_Minutes(jsii.Number(10)), Percentage: jsii.Number(50)}),
		})
	return Canary{scope, app, role, [2]awscodedeploy.ILambdaDeploymentConfig{
		Tenth: awscodedeploy.LambdaDeploymentConfig_CANARY_10PERCENT_5MINUTES(), Half: half}}
}

// Over deploys new versions of f by a canary, which any of the alarms ends.
func (c Canary) Over(id string, f Function, shift TrafficShift, alarms ...awscloudwatch.Alarm) {
	// The alias by its name: it waits for its group, which waits for the role.
	allow(c.role, strs("lambda:GetAlias", "lambda:UpdateAlias", "lambda:GetProvisionedConcurrencyConfig"),
		f.FunctionArn(), jsii.String(*f.FunctionArn()+":"+Live))
	refs := make([]interfacesawscloudwatch.IAlarmRef, len(alarms))
	for i, a := range alarms {
		refs[i] = a
	}
	group := awscodedeploy.NewLambdaDeploymentGroup(c.scope, jsii.String("Canary-"+id),
		&awscodedeploy.LambdaDeploymentGroupProps{
			Application: c.app, Alias: f.Live, Alarms: &refs,
			// As it is: CDK would add a managed policy to the role.
			Role:             c.role.WithoutPolicyUpdates(nil),
			DeploymentConfig: c.shifts[shift],
			AutoRollback: &awscodedeploy.AutoRollbackConfig{FailedDeployment: jsii.Bool(true),
				StoppedDeployment: jsii.Bool(true), DeploymentInAlarm: jsii.Bool(true)},
		})
	group.Node().AddDependency(c.role) // with its policy
}

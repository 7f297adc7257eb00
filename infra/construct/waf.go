package construct

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awswafv2"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// perAddress is how many requests one address may send in five minutes before it is blocked.
const perAddress = 100_000

// NewWAF puts a web ACL in front of an API. It blocks addresses that AWS knows for attacks, and bounds the requests of
// every other address. It inspects no bodies: a job's payload may contain anything, even what looks like an attack.
func NewWAF(scope constructs.Construct, id, name string, api REST) {
	seen := func(metric string) *awswafv2.CfnWebACL_VisibilityConfigProperty {
		return &awswafv2.CfnWebACL_VisibilityConfigProperty{CloudWatchMetricsEnabled: jsii.Bool(true),
			SampledRequestsEnabled: jsii.Bool(false), MetricName: jsii.String(name + "-" + metric)}
	}
	acl := awswafv2.NewCfnWebACL(scope, jsii.String(id), &awswafv2.CfnWebACLProps{
		Name: jsii.String(name), Scope: jsii.String("REGIONAL"), VisibilityConfig: seen("all"),
		DefaultAction: &awswafv2.CfnWebACL_DefaultActionProperty{Allow: map[string]any{}},
		Rules: []any{
			&awswafv2.CfnWebACL_RuleProperty{
				Name: jsii.String("each-address"), Priority: jsii.Number(0), VisibilityConfig: seen("each-address"),
				Action: &awswafv2.CfnWebACL_RuleActionProperty{Block: map[string]any{}},
				Statement: &awswafv2.CfnWebACL_StatementProperty{
					RateBasedStatement: &awswafv2.CfnWebACL_RateBasedStatementProperty{
						AggregateKeyType: jsii.String("IP"), Limit: jsii.Number(perAddress)},
				},
			},
			&awswafv2.CfnWebACL_RuleProperty{
				Name: jsii.String("known-attackers"), Priority: jsii.Number(1),
				VisibilityConfig: seen("known-attackers"),
				OverrideAction:   &awswafv2.CfnWebACL_OverrideActionProperty{None: map[string]any{}},
				Statement: &awswafv2.CfnWebACL_StatementProperty{
					ManagedRuleGroupStatement: &awswafv2.CfnWebACL_ManagedRuleGroupStatementProperty{
						VendorName: jsii.String("AWS"), Name: jsii.String("AWSManagedRulesAmazonIpReputationList")},
				},
			},
		},
	})
	stage := api.DeploymentStage()
	association := awswafv2.NewCfnWebACLAssociation(scope, jsii.String(id+"-stage"),
		&awswafv2.CfnWebACLAssociationProps{
			WebAclArn: acl.AttrArn(),
			ResourceArn: awscdk.Stack_Of(scope).FormatArn(&awscdk.ArnComponents{
				Service: jsii.String("apigateway"), Account: jsii.String(""), Resource: jsii.String("/restapis"),
				ResourceName: jsii.String(*api.RestApiId() + "/stages/" + Version),
			}),
		})
	association.Node().AddDependency(stage)
}

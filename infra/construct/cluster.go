package construct

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseks"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseksv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"punctual/shared/contract"
)

// ClusterProps says how the cluster is made.
type ClusterProps struct {
	Name       string
	Kubernetes string // version
	Network    awsec2.Vpc
	Kubectl    string // zip of the kubectl layer
	// Operators is the role of people who may read everything, and change what is in the namespaces Theirs; ""
	// is no one.
	Operators string
	Theirs    []string
	Reach     []string // CIDRs that reach the API over the internet; none by default
	LogDays   int      // how long CDK's handler's log is kept
	LogAll    bool     // all logs of the control plane; otherwise only who has signed in
}

// Cluster is an EKS cluster in Auto Mode: AWS runs its nodes. Its API is reached from its network and from
// ClusterProps.Reach; access entries say who may use it.
type Cluster struct {
	cluster awseksv2.Cluster
	scope   constructs.Construct
}

// NewCluster makes it, with a key of its own for the secrets in it.
func NewCluster(scope constructs.Construct, id string, p ClusterProps) Cluster {
	layer := awslambda.NewLayerVersion(scope, jsii.String(id+"-kubectl"), &awslambda.LayerVersionProps{
		Code:        awslambda.Code_FromAsset(jsii.String(p.Kubectl), nil),
		Description: jsii.String("kubectl and helm, from the pinned npm package"),
	})
	key := NewKey(scope, id+"-key", p.Name+"-cluster", false) // of a cluster that is gone it opens nothing
	cluster := awseksv2.NewCluster(scope, jsii.String(id), &awseksv2.ClusterProps{
		ClusterName: jsii.String(p.Name), Version: awseksv2.KubernetesVersion_Of(jsii.String(p.Kubernetes)),
		Vpc: p.Network, VpcSubnets: &[]*awsec2.SubnetSelection{{SubnetType: awsec2.SubnetType_PRIVATE_WITH_EGRESS}},
		EndpointAccess:         p.endpoint(),
		DefaultCapacityType:    awseksv2.DefaultCapacityType_AUTOMODE,
		Compute:                &awseksv2.ComputeConfig{NodePools: strs("system", "general-purpose")},
		ClusterLogging:         p.logging(),
		SecretsEncryptionKey:   key.kms,
		KubectlProviderOptions: &awseksv2.KubectlProviderOptions{KubectlLayer: layer},
	})
	// At the end of standard support AWS then upgrades the cluster instead of charging six times as much.
	cluster.Node().DefaultChild().(awseksv2.CfnCluster).AddPropertyOverride(jsii.String("UpgradePolicy.SupportType"),
		jsii.String("STANDARD"))
	for _, c := range *cluster.Node().FindAll(constructs.ConstructOrder_PREORDER) {
		if group, ok := c.(awslogs.CfnLogGroup); ok { // of CDK's handler, which keeps its log for two years
			group.SetRetentionInDays(jsii.Number(p.LogDays))
			group.ApplyRemovalPolicy(awscdk.RemovalPolicy_DESTROY, nil)
		}
	}
	if p.Operators != "" {
		cluster.GrantAccess(jsii.String("Operators"), jsii.String(p.Operators), &[]awseksv2.IAccessPolicy{
			access("AmazonEKSAdminViewPolicy", awseksv2.AccessScopeType_CLUSTER, nil),
			access("AmazonEKSClusterAdminPolicy", awseksv2.AccessScopeType_NAMESPACE, strs(p.Theirs...)),
		}, nil)
	}
	return Cluster{cluster, scope}
}

func (p ClusterProps) endpoint() awseksv2.EndpointAccess {
	if len(p.Reach) == 0 {
		return awseksv2.EndpointAccess_PRIVATE()
	}
	return awseksv2.EndpointAccess_PUBLIC_AND_PRIVATE().OnlyFrom(*strs(p.Reach...)...)
}

// logging is what the control plane writes: by the gigabyte, most of it in the audit.
func (p ClusterProps) logging() *[]awseksv2.ClusterLoggingTypes {
	if !p.LogAll {
		return &[]awseksv2.ClusterLoggingTypes{awseksv2.ClusterLoggingTypes_AUTHENTICATOR}
	}
	return &[]awseksv2.ClusterLoggingTypes{
		awseksv2.ClusterLoggingTypes_API, awseksv2.ClusterLoggingTypes_AUDIT,
		awseksv2.ClusterLoggingTypes_AUTHENTICATOR,
		awseksv2.ClusterLoggingTypes_CONTROLLER_MANAGER, awseksv2.ClusterLoggingTypes_SCHEDULER,
	}
}

func access(policy string, scope awseksv2.AccessScopeType, namespaces *[]*string) awseksv2.IAccessPolicy {
	return awseksv2.AccessPolicy_FromAccessPolicyName(jsii.String(policy),
		&awseksv2.AccessPolicyNameOptions{AccessScopeType: scope, Namespaces: namespaces})
}

// Name is the cluster's.
func (c Cluster) Name() *string { return c.cluster.ClusterName() }

// Identity gives the pods of a service account a role, by Pod Identity: EKS alone may take it, for
// these pods alone. Pods that are made before the identity is there never get it.
func (c Cluster) Identity(id, namespace, account, about string) (awsiam.Role, constructs.IDependable) {
	role := awsiam.NewRole(c.scope, jsii.String(id+"-role"), &awsiam.RoleProps{
		Description: jsii.String(about),
		AssumedBy: awsiam.NewSessionTagsPrincipal(awsiam.NewServicePrincipal(jsii.String("pods.eks.amazonaws.com"),
			&awsiam.ServicePrincipalOpts{
				Conditions: &map[string]any{"StringEquals": map[string]any{
					"aws:RequestTag/eks-cluster-arn":            c.cluster.ClusterArn(),
					"aws:RequestTag/kubernetes-namespace":       namespace,
					"aws:RequestTag/kubernetes-service-account": account,
				}},
			})),
	})
	identity := awseks.NewCfnPodIdentityAssociation(c.scope, jsii.String(id+"-identity"),
		&awseks.CfnPodIdentityAssociationProps{
			ClusterName: c.cluster.ClusterName(), Namespace: jsii.String(namespace),
			ServiceAccount: jsii.String(account),
			RoleArn:        role.RoleArn(),
		})
	identity.Node().AddDependency(role) // with its policy
	return role, identity
}

// Apply applies objects to the cluster, after those that it has returned for others.
func (c Cluster) Apply(id string, after []constructs.IDependable, objects ...map[string]any) constructs.IDependable {
	list := make([]*map[string]any, len(objects))
	for i := range objects {
		list[i] = &objects[i]
	}
	m := c.cluster.AddManifest(jsii.String(id), list...)
	for _, a := range after {
		m.Node().AddDependency(a)
	}
	return m
}

// Chart is a Helm chart.
type Chart struct {
	Name, Repository, Version string
	Namespace                 string
	Values                    map[string]any
}

// Install installs a chart in the cluster, and waits until it runs.
func (c Cluster) Install(id string, chart Chart, after ...constructs.IDependable) constructs.IDependable {
	h := c.cluster.AddHelmChart(jsii.String(id), &awseksv2.HelmChartOptions{
		Chart: jsii.String(chart.Name), Repository: jsii.String(chart.Repository), Version: jsii.String(chart.Version),
		Release:   jsii.String(id),
		Namespace: jsii.String(chart.Namespace), CreateNamespace: jsii.Bool(false), Values: &chart.Values,
		Wait: jsii.Bool(true), Atomic: jsii.Bool(true),
		Timeout: awscdk.Duration_Minutes(jsii.Number(10)),
	})
	for _, a := range after {
		h.Node().AddDependency(a)
	}
	return h
}

// WebIdentity makes a service account whose pods take a role by IAM roles for service accounts,
// for programs that do not know Pod Identity.
func (c Cluster) WebIdentity(id, namespace, account string, after constructs.IDependable) awseksv2.ServiceAccount {
	sa := c.cluster.AddServiceAccount(jsii.String(id), &awseksv2.ServiceAccountOptions{
		Name: jsii.String(account), Namespace: jsii.String(namespace), IdentityType: awseksv2.IdentityType_IRSA,
	})
	sa.Node().AddDependency(after)
	return sa
}

// GrantAsk lets a role read metrics and queue depths, as a scaler needs.
func GrantAsk(role awsiam.IRole, queues Queues, logical ...string) {
	allow(role, strs("sqs:GetQueueAttributes"), queues.arns(logical)...) // it is given their URLs
	allow(role, strs("cloudwatch:GetMetricData"), jsii.String("*"))      // CloudWatch knows no resources here
}

// GrantRun lets a role run functions, send to queues, and read secrets for jobs: the account's functions and queues
// that are tagged for a tenant of the deployment with that prefix, whose tags it may also read, and the secrets under
// punctual/ and that prefix. The worker decides which tenant may use which. AWS refuses functions and queues without a
// tag, such as Punctual's own, and those of other accounts. A queue with a key of its own must let the role use it.
func GrantRun(role awsiam.IRole, prefix string) {
	stack := awscdk.Stack_Of(role)
	functions := stack.FormatArn(&awscdk.ArnComponents{
		Service: jsii.String("lambda"), Resource: jsii.String("function"), ResourceName: jsii.String("*"),
		ArnFormat: awscdk.ArnFormat_COLON_RESOURCE_NAME,
	})
	queues := stack.FormatArn(&awscdk.ArnComponents{
		Service: jsii.String("sqs"), Resource: jsii.String("*"), ArnFormat: awscdk.ArnFormat_NO_RESOURCE_NAME,
	})
	allowTagged(role, prefix, functions, "lambda:InvokeFunction", "lambda:GetFunctionConfiguration", "lambda:ListTags")
	allowTagged(role, prefix, queues, "sqs:SendMessage", "sqs:GetQueueUrl", "sqs:ListQueueTags")
	allow(role, strs("secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"),
		stack.FormatArn(&awscdk.ArnComponents{
			Service: jsii.String("secretsmanager"), Resource: jsii.String("secret"),
			ResourceName: jsii.String("punctual/" + prefix + "/*"), ArnFormat: awscdk.ArnFormat_COLON_RESOURCE_NAME,
		}))
}

// allowTagged allows actions on those of the resources that are tagged for a tenant of the deployment.
func allowTagged(role awsiam.IRole, prefix string, resources *string, actions ...string) {
	role.AddToPrincipalPolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions: strs(actions...), Resources: &[]*string{resources},
		Conditions: &map[string]any{
			"Null":         map[string]any{"aws:ResourceTag/" + contract.TenantTag: "false"},
			"StringEquals": map[string]any{"aws:ResourceTag/" + contract.DeploymentTag: prefix},
		},
	}))
}

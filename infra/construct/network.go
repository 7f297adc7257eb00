package construct

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// NetworkProps says how large the fleet's network is.
type NetworkProps struct {
	Name  string
	CIDR  string
	Zones int
	In    []string // the zones' names; none takes the first so many of IDs, or of the region
	IDs   []string // the zones that may be taken, by id; none: any of the region
	NATs  int
	Log   awslogs.ILogGroup // of refused connections
}

// NewNetwork makes a VPC: workers in private subnets, out to the internet by NAT, to DynamoDB
// and S3 by gateways that cost nothing, and refused connections in a log.
func NewNetwork(scope constructs.Construct, id string, p NetworkProps) awsec2.Vpc {
	// Zones are taken by their number, unless they are named: names differ between regions, and a look-up of them would
	// need an account.
	zones := make([]*string, p.Zones)
	for i := range zones {
		zones[i] = awscdk.Fn_Select(jsii.Number(i), awscdk.Fn_GetAzs(nil))
		if i < len(p.In) {
			zones[i] = jsii.String(p.In[i])
		}
	}
	network := awsec2.NewVpc(scope, jsii.String(id), &awsec2.VpcProps{
		VpcName: jsii.String(p.Name), IpAddresses: awsec2.IpAddresses_Cidr(jsii.String(p.CIDR)),
		AvailabilityZones: &zones, NatGateways: jsii.Number(p.NATs),
		SubnetConfiguration: &[]*awsec2.SubnetConfiguration{
			{Name: jsii.String("public"), SubnetType: awsec2.SubnetType_PUBLIC, CidrMask: jsii.Number(24),
				MapPublicIpOnLaunch: jsii.Bool(false)},
			{Name: jsii.String("private"), SubnetType: awsec2.SubnetType_PRIVATE_WITH_EGRESS,
				CidrMask: jsii.Number(22)},
		},
		GatewayEndpoints: &map[string]*awsec2.GatewayVpcEndpointOptions{
			"dynamodb": {Service: awsec2.GatewayVpcEndpointAwsService_DYNAMODB()},
			"s3":       {Service: awsec2.GatewayVpcEndpointAwsService_S3()},
		},
		FlowLogs: &map[string]*awsec2.FlowLogOptions{
			"refused": {Destination: awsec2.FlowLogDestination_ToCloudWatchLogs(p.Log, nil),
				TrafficType: awsec2.FlowLogTrafficType_REJECT},
		},
	})
	if len(p.In) == 0 && len(p.IDs) >= p.Zones {
		byID(network, p.IDs)
	}
	return network
}

// byID puts subnets into zones by what AWS calls them for everybody: a zone's name, us-east-1a, is
// another zone in each account.
func byID(network awsec2.Vpc, ids []string) {
	for _, subnets := range []*[]awsec2.ISubnet{network.PublicSubnets(), network.PrivateSubnets()} {
		for i, s := range *subnets {
			made := s.Node().DefaultChild().(awsec2.CfnSubnet)
			made.AddPropertyDeletionOverride(jsii.String("AvailabilityZone"))
			made.AddPropertyOverride(jsii.String("AvailabilityZoneId"), jsii.String(ids[i]))
		}
	}
}

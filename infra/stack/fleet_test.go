package stack

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"punctual/infra/construct"
	"punctual/infra/target"
	"punctual/shared/contract"
)

const (
	kubernetesResource = "Custom::AWSCDK-EKS-KubernetesResource"
	helmChart          = "Custom::AWSCDK-EKS-HelmChart"
)

// plain is a value of a template as text: what is known only when it is deployed becomes the name
// of what it is taken from.
func plain(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case object:
		for _, name := range []string{"Ref", "Fn::GetAtt", "Fn::Sub", "Fn::GetStackOutput"} {
			if of, ok := x[name]; ok {
				return strings.ReplaceAll(compact(of), `"`, "")
			}
		}
		if parts := list(at(x, "Fn::Join.1")); parts != nil {
			var b strings.Builder
			for _, p := range parts {
				b.WriteString(plain(p))
			}
			return b.String()
		}
	}
	return strings.ReplaceAll(compact(v), `"`, "")
}

// applied lists the Kubernetes objects that a deployment applies, as "Kind name", and the id of
// the resource that applies each.
func (d *synthesized) applied(t *testing.T) (objects map[string]object, by map[string]string) {
	t.Helper()
	objects, by = map[string]object{}, map[string]string{}
	d.each(kubernetesResource, func(_ template, id string, r object) {
		var some []object
		if err := json.Unmarshal([]byte(plain(at(r, "Properties.Manifest"))), &some); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		for _, o := range some {
			name := text(o["kind"]) + " " + text(at(o, "metadata.name"))
			if by[name] != "" {
				t.Errorf("%s is applied twice", name)
			}
			objects[name], by[name] = o, id
		}
	})
	return objects, by
}

func TestCluster_HasAllObjectsOfThePools(t *testing.T) {
	t.Parallel()
	want := []string{
		"Namespace punctual", "Namespace keda", "Namespace punctual-courier", "TriggerAuthentication scaler",
		"ConfigMap amazon-vpc-cni", "NetworkPolicy unreachable", "ServiceAccount keda-operator",
		"ServiceAccount punctual-courier", "ConfigMap punctual-courier", "DaemonSet punctual-courier",
	}
	for _, pool := range contract.Pools {
		for _, kind := range []string{"NodePool", "ServiceAccount", "Deployment", "PodDisruptionBudget",
			"ScaledObject"} {
			want = append(want, kind+" worker-"+pool)
		}
	}
	slices.Sort(want)
	have, _ := prod().applied(t)
	if got := sorted(have); !slices.Equal(got, want) {
		t.Errorf("it holds\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

//proof:of 128
func TestPods_HaveTheSizesOfTheSettings(t *testing.T) {
	t.Parallel()
	have, _ := prod().applied(t)
	for pool, want := range map[string]string{
		"short": `{"limits":{"cpu":"1500m","memory":"2560Mi"},"requests":{"cpu":"1500m","memory":"2560Mi"}}`,
		"long":  `{"limits":{"cpu":"1500m","memory":"2560Mi"},"requests":{"cpu":"1500m","memory":"2560Mi"}}`,
	} {
		if got := compact(at(have["Deployment worker-"+pool],
			"spec.template.spec.containers.0.resources")); got != want {
			t.Errorf("pods of %s get %s; want %s", pool, got, want)
		}
	}
}

// What a machine of 2 vCPU and 4 GB has for pods: Bottlerocket and the kubelet keep the rest.
const machineMilli, machineMiB = 1930, 3000

func TestPods_FitTheSmallestMachineTogetherWithScalerAndLogShipper(t *testing.T) {
	t.Parallel()
	for _, d := range []*synthesized{prod(), ownTokens()} {
		have, _ := d.applied(t)
		asks := func(v any) (milli, mib int) {
			_, _ = fmt.Sscanf(text(at(v, "requests.cpu")), "%dm", &milli)
			_, _ = fmt.Sscanf(text(at(v, "requests.memory")), "%dMi", &mib)
			if milli == 0 || mib == 0 {
				t.Errorf("%s asks for nothing", compact(v))
			}
			return milli, mib
		}
		milli, mib := asks(at(have["DaemonSet punctual-courier"], "spec.template.spec.containers.0.resources"))
		d.each(helmChart, func(_ template, id string, r object) {
			var values object
			if err := json.Unmarshal([]byte(text(at(r, "Properties.Values"))), &values); err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"operator", "metricServer", "webhooks"} {
				m, b := asks(at(values, "resources."+part))
				milli, mib = milli+m, mib+b
			}
			if compact(at(values, "nodeSelector")) != `{"kubernetes.io/arch":"arm64","punctual.dev/pool":"short"}` ||
				at(values, "tolerations.0.value") != "short" {
				t.Errorf("%s runs elsewhere than on the workers' machines: %s", id, compact(values))
			}
		})
		for _, pool := range contract.Pools {
			m, b := asks(at(have["Deployment worker-"+pool], "spec.template.spec.containers.0.resources"))
			if milli+m > machineMilli || mib+b > machineMiB {
				t.Errorf("%s: a pod of %s, the scaler and the log shipper ask for %dm and %d MiB; a machine has "+
					"%dm and %d MiB",
					d.settings.Target, pool, milli+m, mib+b, machineMilli, machineMiB)
			}
		}
	}
}

// after says whether the resource id comes after one of a type whose id begins with prefix,
// at any remove.
func after(s template, id, kind, prefix string) bool {
	seen := map[string]bool{}
	var reaches func(id string) bool
	reaches = func(id string) bool {
		for _, v := range list(s.resources[id]["DependsOn"]) {
			on := text(v)
			if seen[on] {
				continue
			}
			seen[on] = true
			if s.resources[on]["Type"] == kind && strings.HasPrefix(on, prefix) || reaches(on) {
				return true
			}
		}
		return false
	}
	return reaches(id)
}

func TestFleet_StartsNothingBeforeWhatItNeeds(t *testing.T) {
	t.Parallel()
	fleet := prod().template("fleet")
	_, by := prod().applied(t)
	needs := []struct{ what, id, kind, prefix string }{
		{"the courier", by["DaemonSet punctual-courier"], "AWS::IAM::Policy", "Clustercourieraccount"},
	}
	for id, r := range fleet.resources {
		if r["Type"] == helmChart {
			needs = append(needs, struct{ what, id, kind, prefix string }{"the scaler", id, "AWS::IAM::Policy",
				"Clusterscaleraccount"})
		}
	}
	for _, pool := range contract.Pools {
		needs = append(needs, []struct{ what, id, kind, prefix string }{
			{"workers of " + pool, by["Deployment worker-"+pool], "AWS::EKS::PodIdentityAssociation", "worker" + pool},
			{"workers of " + pool, by["Deployment worker-"+pool], "AWS::IAM::Policy", "worker" + pool},
			{"the scaling of " + pool, by["ScaledObject worker-"+pool], helmChart, ""},
			{"the scaling of " + pool, by["ScaledObject worker-"+pool], kubernetesResource, "Clustermanifestworker" +
				pool},
			{"workers of " + pool, by["Deployment worker-"+pool], kubernetesResource, "Clustermanifestisolation"},
		}...)
	}
	if len(needs) != 2+5*len(contract.Pools) {
		t.Errorf("%d needs; want one chart's", len(needs))
	}
	for _, n := range needs {
		if fleet.resources[n.id] == nil || !after(fleet, n.id, n.kind, n.prefix) {
			t.Errorf("%s (%s) may start before there is a %s of %s", n.what, n.id, n.kind, n.prefix)
		}
	}
}

// roleMay lists what a role of the fleet may do, as "action resource", without the key.
func roleMay(d *synthesized, role string) map[string]bool {
	may := map[string]bool{}
	for _, st := range d.statements() {
		if st.stack != "fleet" || !strings.HasPrefix(st.id, role) || at(st.whole, "Principal") != nil {
			continue
		}
		for _, a := range st.actions {
			if strings.HasPrefix(a, "kms:") {
				continue
			}
			for _, r := range list(st.whole["Resource"]) {
				named := plain(r)
				part := ""
				if strings.HasSuffix(named, "/"+contract.ResultObjects) {
					part = "/" + contract.ResultObjects
				}
				if found := resourceIs.FindString(named); found != "" {
					named = found + part
				}
				may[a+" "+named] = true
			}
		}
	}
	return may
}

func requireMay(t *testing.T, who string, may map[string]bool, want []string) {
	t.Helper()
	for _, w := range want {
		if !may[w] {
			t.Errorf("%s may not %s", who, w)
		}
		delete(may, w)
	}
	for _, m := range sorted(may) {
		t.Errorf("%s may %s", who, m)
	}
}

// TestWorkerRole_AllowsExactlyWhatWorkersCall names every call of workers/worker, its executors and the
// adapters under them.
func TestWorkerRole_AllowsExactlyWhatWorkersCall(t *testing.T) {
	t.Parallel()
	for _, pool := range contract.Pools {
		const here = "arn:aws:%s:us-east-1:AWS::AccountId:%s"
		want := []string{
			"dynamodb:GetItem Tablejobs", "dynamodb:GetItem Tableclaims", "dynamodb:PutItem Tableclaims",
			"dynamodb:UpdateItem Tableclaims", "dynamodb:Query Tableclaims", "dynamodb:BatchGetItem Tableclaims",
			"dynamodb:GetItem Tableschedules", "dynamodb:GetItem Tableruns",
			"dynamodb:Query Tabletasks", "dynamodb:GetItem Tabletasks", "dynamodb:PutItem Tabletasks",
			"dynamodb:DescribeTable Tablejobs",
			"dynamodb:DescribeTable Tableclaims", "dynamodb:DescribeTable Tableschedules",
			"dynamodb:DescribeTable Tableruns",
			"s3:GetObject Payloads", "s3:ListBucket Payloads", "s3:PutObject Payloads/jobs/*/result#*",
			"sqs:SendMessage Queuereport", "sqs:GetQueueUrl Queuereport",
			"secretsmanager:DescribeSecret " + fmt.Sprintf(here, "secretsmanager", "secret:punctual/punctual/*"),
			"secretsmanager:GetSecretValue " + fmt.Sprintf(here, "secretsmanager", "secret:punctual/punctual/*"),
		}
		for _, call := range []string{"InvokeFunction", "GetFunctionConfiguration", "ListTags"} {
			want = append(want, "lambda:"+call+" "+fmt.Sprintf(here, "lambda", "function:*"))
		}
		for _, call := range []string{"SendMessage", "GetQueueUrl", "ListQueueTags"} {
			want = append(want, "sqs:"+call+" "+fmt.Sprintf(here, "sqs", "*"))
		}
		for _, priority := range contract.Priorities {
			for _, call := range []string{"ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueUrl"} {
				want = append(want, "sqs:"+call+" Queuefiring"+pool+priority)
			}
		}
		requireMay(t, "a worker of "+pool, roleMay(prod(), "worker"+pool+"role"), want)
	}
}

func TestWorkerRole_ReachesOnlyResourcesTaggedForATenant(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	for _, st := range prod().statements() {
		if st.stack != "fleet" || !strings.HasPrefix(st.id, "worker") {
			continue
		}
		service, _, _ := strings.Cut(st.actions[0], ":")
		if service != "lambda" && (service != "sqs" || !strings.Contains(st.resources[0], ":*")) {
			continue // its own queues are named
		}
		found[service]++
		if got := at(st.whole, "Condition.Null"); compact(got) != `{"aws:ResourceTag/punctual:tenant":"false"}` {
			t.Errorf("%s: anything of %s, under %s", st.id, service, compact(got))
		}
		if got := at(st.whole,
			"Condition.StringEquals"); compact(got) != `{"aws:ResourceTag/punctual:deployment":"punctual"}` {
			t.Errorf("%s: %s of any deployment, under %s", st.id, service, compact(got))
		}
	}
	if found["lambda"] != len(contract.Pools) || found["sqs"] != len(contract.Pools) {
		t.Errorf("%v statements are about tenants' functions and queues; want one of each for each pool", found)
	}
}

func TestFleet_ScalerAndLogShipperMayDoOneThingEach(t *testing.T) {
	t.Parallel()
	want := []string{"cloudwatch:GetMetricData *"}
	for _, q := range contract.FiringQueues() {
		want = append(want, "sqs:GetQueueAttributes Queue"+strings.ReplaceAll(q, "-", ""))
	}
	requireMay(t, "the scaler", roleMay(prod(), "Clusterscaleraccount"), want)
	shipper := roleMay(prod(), "Clustercourieraccount")
	for may := range shipper {
		call, group, _ := strings.Cut(may, " ")
		if !strings.HasSuffix(group, ":log-group:/punctual/punctual-worker:*") {
			t.Errorf("the log shipper may %s of %s", call, group)
		}
	}
	if len(shipper) != 3 {
		t.Errorf("the log shipper may do %v", sorted(shipper))
	}
}

func TestWorkerRole_IsForPodsOfItsPoolOnly(t *testing.T) {
	t.Parallel()
	found := 0
	prod().each("AWS::IAM::Role", func(_ template, id string, r object) {
		for _, st := range list(at(r, "Properties.AssumeRolePolicyDocument.Statement")) {
			if text(at(st, "Principal.Service")) != "pods.eks.amazonaws.com" {
				continue
			}
			found++
			tags, _ := at(st, "Condition.StringEquals").(object)
			account := text(tags["aws:RequestTag/kubernetes-service-account"])
			if tags["aws:RequestTag/kubernetes-namespace"] != "punctual" ||
				!strings.HasPrefix(id, strings.ReplaceAll(account, "-", "")+"role") || account == "" ||
				tags["aws:RequestTag/eks-cluster-arn"] == nil {
				t.Errorf("%s may be taken by %s", id, compact(st))
			}
		}
	})
	if found == 0 {
		t.Error("no role is for pods")
	}
	var accounts []string
	prod().each("AWS::EKS::PodIdentityAssociation", func(_ template, _ string, r object) {
		accounts = append(accounts, text(at(r, "Properties.Namespace"))+"/"+text(at(r, "Properties.ServiceAccount")))
	})
	slices.Sort(accounts)
	if want := []string{"punctual/worker-long", "punctual/worker-short"}; !slices.Equal(accounts, want) {
		t.Errorf("identities are for %v; want %v", accounts, want)
	}
}

func TestNetwork_IsolatesWorkersAndReachesTablesWithoutTheInternet(t *testing.T) {
	t.Parallel()
	d := prod()
	var gateways []string
	d.each("AWS::EC2::VPCEndpoint", func(_ template, _ string, r object) {
		service := plain(at(r, "Properties.ServiceName"))
		gateways = append(gateways, service[strings.LastIndexByte(service, '.')+1:])
		if n := len(list(at(r, "Properties.RouteTableIds"))); n < d.settings.Fleet.Zones {
			t.Errorf("%s is in %d route tables", service, n)
		}
	})
	slices.Sort(gateways)
	if !slices.Equal(gateways, []string{"dynamodb", "s3"}) {
		t.Errorf("gateways are %v", gateways)
	}
	d.each("AWS::EC2::Subnet", func(_ template, id string, r object) {
		if at(r, "Properties.MapPublicIpOnLaunch") != false {
			t.Errorf("machines in %s get public addresses", id)
		}
	})
	d.each("AWS::EKS::Cluster", func(_ template, id string, r object) {
		access := at(r, "Properties.ResourcesVpcConfig")
		if at(access, "EndpointPublicAccess") != false || at(access, "EndpointPrivateAccess") != true {
			t.Errorf("the API of %s is reached by %s", id, compact(access))
		}
		if n := len(list(at(r, "Properties.Logging.ClusterLogging.EnabledTypes"))); n != 5 {
			t.Errorf("%s logs %d kinds of its 5", id, n)
		}
		if at(r, "Properties.ComputeConfig.Enabled") != true ||
			text(at(r, "Properties.Version")) != d.settings.Fleet.Kubernetes {
			t.Errorf("%s is %s", id, compact(at(r, "Properties.ComputeConfig")))
		}
		if at(r, "Properties.UpgradePolicy.SupportType") != "STANDARD" {
			t.Errorf("%s would go on in extended support, at six times the price", id)
		}
		if at(r, "Properties.EncryptionConfig") == nil {
			t.Errorf("secrets in %s have no key of ours", id)
		}
	})
}

func someLog(scope constructs.Construct, name string) awslogs.ILogGroup {
	return awslogs.LogGroup_FromLogGroupName(scope, jsii.String(name), jsii.String(name))
}

//proof:of 198
func TestNetwork_TakesTheFirstZonesOfTheRegionUnlessTheyAreNamed(t *testing.T) {
	t.Parallel()
	one.Lock()
	defer one.Unlock()
	for want, c := range map[string]struct{ names, ids []string }{
		`"us-east-1b"null "us-east-1d"null`: {[]string{"us-east-1b",
			"us-east-1d"}, target.ZoneIDs("us-east-1")},
		`{"Fn::Select":[0,{"Fn::GetAZs":""}]}null {"Fn::Select":[1,{"Fn::GetAZs":""}]}null`: {},
		`null"use1-az1" null"use1-az2"`: {nil,
			target.ZoneIDs("us-east-1")},
	} {
		stack := awscdk.NewStack(awscdk.NewApp(nil), jsii.String("zones"),
			&awscdk.StackProps{Env: &awscdk.Environment{Region: jsii.String("us-east-1")}})
		construct.NewNetwork(stack, "Network", construct.NetworkProps{Name: "zones", CIDR: "10.42.0.0/16", Zones: 2,
			In: c.names, IDs: c.ids, NATs: 1, Log: someLog(stack, "refused")})
		var have []string
		for _, r := range *assertions.Template_FromStack(stack, nil).FindResources(jsii.String("AWS::EC2::Subnet"),
			nil) {
			have = append(have, compact(at(any(*r), "Properties.AvailabilityZone"))+
				compact(at(any(*r), "Properties.AvailabilityZoneId")))
		}
		slices.Sort(have)
		if got := strings.Join(slices.Compact(have), " "); got != want {
			t.Errorf("subnets are in %s; want %s", got, want)
		}
	}
}

func TestOperators_ReadEverythingAndChangeTheWorkersNamespace(t *testing.T) {
	t.Parallel()
	one.Lock()
	defer one.Unlock()
	stack := awscdk.NewStack(awscdk.NewApp(nil), jsii.String("operators"),
		&awscdk.StackProps{Env: &awscdk.Environment{Region: jsii.String("us-east-1")}})
	construct.NewCluster(stack, "Cluster", construct.ClusterProps{
		Name: "operators", Kubernetes: "1.36", Kubectl: placeholders().Kubectl, LogDays: 1,
		Network: construct.NewNetwork(stack, "Network", construct.NetworkProps{Name: "operators",
			CIDR: "10.42.0.0/16", Zones: 2, NATs: 1, Log: someLog(stack, "refused")}),
		Operators: "arn:aws:iam::123456789012:role/oncall", Theirs: []string{"punctual"},
		Reach: []string{"203.0.113.0/24"},
	})
	made := assertions.Template_FromStack(stack, nil)
	made.HasResourceProperties(jsii.String("AWS::EKS::Cluster"), &map[string]any{"ResourcesVpcConfig": map[string]any{
		"EndpointPublicAccess": true, "EndpointPrivateAccess": true, "PublicAccessCidrs": []any{"203.0.113.0/24"},
	}})
	var said string
	for _, r := range *made.FindResources(jsii.String("AWS::EKS::AccessEntry"), nil) {
		if text(at(any(*r), "Properties.PrincipalArn")) == "arn:aws:iam::123456789012:role/oncall" {
			said = compact(at(any(*r), "Properties.AccessPolicies"))
		}
	}
	for _, want := range []string{
		`{"AccessScope":{"Type":"cluster"},"PolicyArn":{"Fn::Join":["",["arn:",{"Ref":"AWS::Partition"},":eks::aws:cluster-access-policy/AmazonEKSAdminViewPolicy"]]}}`,
		`{"AccessScope":{"Namespaces":["punctual"],"Type":"namespace"},"PolicyArn":{"Fn::Join":["",["arn:",{"Ref":"AWS::Partition"},":eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"]]}}`,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("operators have %s; want %s", said, want)
		}
	}
}

func TestWorkerImage_IsBuiltForItsNodesFromItsFolder(t *testing.T) {
	t.Parallel()
	d := prod()
	body, err := os.ReadFile(filepath.Join(d.out, d.settings.Prefix+"-fleet.assets.json"))
	if err != nil {
		t.Fatal(err)
	}
	var assets struct {
		DockerImages map[string]struct {
			Source struct{ Directory, Platform string }
		}
	}
	if err := json.Unmarshal(body, &assets); err != nil {
		t.Fatal(err)
	}
	if len(assets.DockerImages) != 1 {
		t.Fatalf("images: %v", slices.Collect(maps.Keys(assets.DockerImages)))
	}
	have, _ := d.applied(t)
	for hash, image := range assets.DockerImages {
		if image.Source.Platform != "linux/"+string(d.settings.Arch) {
			t.Errorf("the image is for %s; the nodes are %s", image.Source.Platform, d.settings.Arch)
		}
		if _, err := os.Stat(filepath.Join(d.out, image.Source.Directory, "Dockerfile")); err != nil {
			t.Errorf("the folder of the image: %v", err)
		}
		for _, pool := range contract.Pools {
			if got := text(at(have["Deployment worker-"+pool],
				"spec.template.spec.containers.0.image")); !strings.HasSuffix(got, hash) {
				t.Errorf("workers of %s run %s, not %s", pool, got, hash)
			}
			if got := compact(at(have["Deployment worker-"+pool],
				"spec.template.spec.nodeSelector")); !strings.Contains(got,
				`"kubernetes.io/arch":"`+string(d.settings.Arch)+`"`) {
				t.Errorf("workers of %s run on %s", pool, got)
			}
		}
	}
}

func TestEmulator_HasNoCluster(t *testing.T) {
	t.Parallel()
	emulator().each("", func(s template, id string, r object) {
		kind := text(r["Type"])
		for _, of := range []string{"AWS::EKS::", "AWS::EC2::", "Custom::AWSCDK-EKS"} { // it knows none of them
			if strings.HasPrefix(kind, of) {
				t.Errorf("%s %s is a %s", s.name, id, kind)
			}
		}
	})
	if emulator().stacks.Fleet.Stack != nil {
		t.Error("it has Fleet's stack")
	}
}

// countedFleet is how many resources of each type prod's Fleet has, as counted has the others'.
var countedFleet = map[string]int{
	"AWS::EC2::EIP": 3, "AWS::EC2::FlowLog": 1, "AWS::EC2::InternetGateway": 1, "AWS::EC2::NatGateway": 3,
	"AWS::EC2::Route": 6, "AWS::EC2::RouteTable": 6, "AWS::EC2::SecurityGroup": 1, "AWS::EC2::Subnet": 6,
	"AWS::EC2::SubnetRouteTableAssociation": 6, "AWS::EC2::VPC": 1, "AWS::EC2::VPCEndpoint": 2,
	"AWS::EC2::VPCGatewayAttachment": 1,
	"AWS::EKS::AccessEntry":          1, "AWS::EKS::Cluster": 1, "AWS::EKS::PodIdentityAssociation": 2,
	"AWS::IAM::OIDCProvider": 1, "AWS::IAM::Policy": 7, "AWS::IAM::Role": 11,
	"AWS::KMS::Alias": 1, "AWS::KMS::Key": 1,
	"AWS::Lambda::Function": 4, "AWS::Lambda::LayerVersion": 2,
	"AWS::Logs::LogGroup":          2,
	"AWS::SSM::Parameter":          1,
	"Custom::AWSCDK-EKS-HelmChart": 1, "Custom::AWSCDK-EKS-KubernetesResource": 14, "Custom::AWSCDKCfnJson": 2,
	"Custom::VpcRestrictDefaultSG": 1,
}

func TestFleet_HasAKnownNumberOfResources(t *testing.T) {
	t.Parallel()
	have := map[string]int{}
	for _, r := range prod().template("fleet").resources {
		have[text(r["Type"])]++
	}
	for _, kind := range sorted(have) {
		if have[kind] != countedFleet[kind] {
			t.Errorf("%d of %s; %d are counted on", have[kind], kind, countedFleet[kind])
		}
	}
	for _, kind := range sorted(countedFleet) {
		if have[kind] == 0 {
			t.Errorf("none of %s", kind)
		}
	}
}

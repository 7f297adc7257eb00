package stack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecrassets"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"punctual/infra/construct"
	"punctual/infra/manifest"
	"punctual/infra/target"
	"punctual/shared/contract"
	"punctual/shared/telemetry"
)

// Fleet is the workers' cluster.
type Fleet struct {
	awscdk.Stack
	Cluster construct.Cluster
	Pools   []manifest.Pool
}

// The scaler, by its chart.
const (
	scalerNamespace = "keda"
	scalerAccount   = "keda-operator"
	scalerVersion   = "2.21.1"
)

// NewFleet makes the stack.
func NewFleet(scope constructs.Construct, s target.Settings, d Data) Fleet {
	stack := newStack(scope, s, "fleet", "the workers' cluster", false)
	network := construct.NewNetwork(stack, "Network", construct.NetworkProps{
		Name: s.Prefix, CIDR: s.Fleet.CIDR, Zones: s.Fleet.Zones, In: s.Fleet.In, NATs: s.Fleet.NATs,
		IDs: target.ZoneIDs(s.Region), Log: d.Logs.In(stack, networkLog),
	})
	stack.AddDependency(d.Stack, jsii.String("it writes to log groups there, by their names"))
	f := Fleet{Stack: stack}
	f.Cluster = construct.NewCluster(stack, "Cluster", construct.ClusterProps{
		Name: s.Prefix, Kubernetes: s.Fleet.Kubernetes, Network: network, Kubectl: s.Origin.Kubectl,
		Operators: s.Fleet.Operators, Theirs: []string{manifest.Namespace}, Reach: s.Fleet.Reach, LogDays: int(s.Logs),
		LogAll: s.Keep,
	})
	image := awsecrassets.NewDockerImageAsset(stack, jsii.String("Worker"), &awsecrassets.DockerImageAssetProps{
		Directory: jsii.String(s.Origin.Worker), Platform: platform(s.Arch),
	})
	// Nodes first: the scaler runs on those of the first pool.
	var nodes constructs.IDependable
	for i, p := range s.Fleet.Pools() {
		pool := f.pool(s, d, p, *image.ImageUri())
		f.Pools = append(f.Pools, pool)
		made := f.Cluster.Apply(pool.App()+"-nodes", nil, pool.NodePool())
		if i == 0 {
			nodes = made
		}
	}
	scaler := f.scaler(s, d, nodes)
	f.logs(s, d)
	space := f.Cluster.Apply("namespace", nil, manifest.NamespaceObject())
	isolation := f.Cluster.Apply("isolation", []constructs.IDependable{space}, manifest.Isolation()...)
	identity := f.Cluster.Apply("scaler-identity", []constructs.IDependable{space, scaler}, manifest.ScalerIdentity())
	for _, pool := range f.Pools {
		workers := f.Cluster.Apply(pool.App(), []constructs.IDependable{isolation, f.identity(s, d, pool)},
			pool.Objects()...)
		f.Cluster.Apply(pool.App()+"-scaler", []constructs.IDependable{workers, identity},
			pool.Scaler(contract.Env{Prefix: s.Prefix}.Namespace(), string(telemetry.SlotsWanted)))
	}
	output(stack, "ClusterName", f.Cluster.Name(), "The workers' cluster; kubectl needs -c operators=ROLE, and -c "+
		"reach=CIDRS from outside its network: aws eks update-kubeconfig --name NAME --role-arn ROLE")
	return f
}

func machines(categories []string) []any {
	all := make([]any, len(categories))
	for i, c := range categories {
		all[i] = c
	}
	return all
}

func platform(a target.Arch) awsecrassets.Platform {
	if a == target.X86 {
		return awsecrassets.Platform_LINUX_AMD64()
	}
	return awsecrassets.Platform_LINUX_ARM64()
}

// pool is the workers of one pool.
func (f Fleet) pool(s target.Settings, d Data, p target.NamedPool, image string) manifest.Pool {
	pool := manifest.Pool{
		Name: p.Name, Image: image, Arch: string(s.Arch), Least: p.Least, Most: p.Most, Slots: p.Slots, Milli: p.Milli,
		MiB: p.MiB, Drain: p.Drain, Region: s.Region, Machines: machines(s.Fleet.Machines), Hold: s.Hold,
		Asks: s.Fleet.ScalerSeconds,
		Env: []manifest.Var{
			{Name: "AWS_REGION", Value: s.Region}, {Name: "PUNCTUAL_PREFIX", Value: s.Prefix},
			{Name: "PUNCTUAL_BUCKET", Value: *d.Bucket.Name()},
		},
	}
	if len(s.HTTPAllow) > 0 {
		pool.Env = append(pool.Env, manifest.Var{Name: "PUNCTUAL_HTTP_ALLOW", Value: strings.Join(s.HTTPAllow, ",")})
	}
	for _, priority := range contract.Priorities {
		pool.Queues = append(pool.Queues, manifest.Queue{Priority: priority,
			URL: *d.Queues.Queue(contract.FiringQueue(p.Name, priority)).QueueUrl()})
	}
	return pool
}

// identity gives the workers of a pool their role, with their grants.
func (f Fleet) identity(s target.Settings, d Data, pool manifest.Pool) constructs.IDependable {
	role, identity := f.Cluster.Identity(pool.App(), manifest.Namespace, pool.App(),
		"What workers of the "+pool.Name+" pool may do")
	d.grantWorkers(role, s.Prefix, pool.Name)
	return identity
}

// scaler installs KEDA. It does not know Pod Identity, so it takes its role the older way.
func (f Fleet) scaler(s target.Settings, d Data, nodes constructs.IDependable) constructs.IDependable {
	selector, tolerations := f.Pools[0].OnNodesOf()
	// small is what a part of it asks for: on a machine with a worker there is little more.
	small := func(milli, mib, most int) map[string]any {
		return map[string]any{
			"requests": map[string]any{"cpu": fmt.Sprintf("%dm", milli), "memory": fmt.Sprintf("%dMi", mib)},
			"limits":   map[string]any{"memory": fmt.Sprintf("%dMi", most)},
		}
	}
	space := f.Cluster.Apply("scaler-namespace", nil, manifest.Object{"apiVersion": "v1", "kind": "Namespace",
		"metadata": manifest.Object{"name": scalerNamespace}})
	account := f.Cluster.WebIdentity("scaler-account", scalerNamespace, scalerAccount, space)
	construct.GrantAsk(account.Role(), d.Queues, contract.FiringQueues()...)
	return f.Cluster.Install("keda", construct.Chart{
		Name: "keda", Repository: "https://kedacore.github.io/charts", Version: scalerVersion,
		Namespace: scalerNamespace,
		Values: map[string]any{
			"serviceAccount": map[string]any{"operator": map[string]any{"create": false, "name": scalerAccount}},
			"operator":       map[string]any{"replicaCount": min(2, s.Fleet.Pools()[0].Least)},
			"nodeSelector":   selector, "tolerations": tolerations,
			"resources": map[string]any{
				"operator": small(50, 128, 1000), "metricServer": small(50, 64, 1000), "webhooks": small(10, 32, 50),
			},
		},
	}, space, account, nodes)
}

// logs has what workers write taken to CloudWatch, where their metric lines become metrics.
func (f Fleet) logs(s target.Settings, d Data) {
	group := d.Logs.In(f.Stack, workerLog)
	// The ids of the log shipper keep its former name: another id would replace the resource.
	space := f.Cluster.Apply("courier-namespace", nil, manifest.LogShipperNamespace())
	account := f.Cluster.WebIdentity("courier-account", manifest.LogShipper, manifest.LogShipper, space)
	construct.GrantLog(account.Role(), group)
	f.Cluster.Apply("courier", []constructs.IDependable{account}, manifest.LogShipperObjects(s.Region, WorkerLog(s))...)
}

// WorkerLog is the name of the log group of what workers write.
func WorkerLog(s target.Settings) string { return "/punctual/" + s.Prefix + "-worker" }

// fleetBuilt reports what of the fleet has not been built or installed yet.
func fleetBuilt(s target.Settings) []string {
	var missing []string
	if _, err := os.Stat(filepath.Join(s.Origin.Worker, "worker")); err != nil {
		missing = append(missing, "worker")
	}
	return missing
}

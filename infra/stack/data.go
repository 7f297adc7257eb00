package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"punctual/infra/construct"
	"punctual/infra/target"
	"punctual/shared/contract"
)

// Data is what must never be lost: tables, payloads, queues, and the key to them.
type Data struct {
	awscdk.Stack
	Key    construct.Key
	Tables construct.Tables
	Queues construct.Queues
	Bucket construct.Bucket
	Logs   construct.Logs
	// Pool is nil unless the deployment makes its own tokens. Its clients' secrets are in its users'
	// hands, so it is kept as the tables are.
	Pool *construct.UserPool
}

// NewData makes the stack.
func NewData(scope constructs.Construct, s target.Settings) Data {
	stack := newStack(scope, s, "data", "what must never be lost: tables, payloads and queues", s.Keep)
	names := contract.Env{Prefix: s.Prefix}
	d := Data{Stack: stack}
	d.Key = construct.NewKey(stack, "Key", s.Prefix, s.Keep)
	d.Key.GrantService("cloudwatch.amazonaws.com") // alarms notify an encrypted topic
	d.Tables = construct.NewTables(stack, construct.TablesProps{
		Name: names.TableName, Key: d.Key, Keep: s.Keep, Search: s.Search,
		Least: s.Tables.Provisioned.Least, Most: s.Tables.Provisioned.Most,
		WarmWrites: s.Tables.WarmWrites, WarmReads: s.Tables.WarmReads,
	})
	d.Queues = construct.NewQueues(stack, d.Key, names.QueueName, s.Keep)
	d.Bucket = construct.NewBucket(stack, "Payloads", d.Key, s.Keep, !s.Keep && !s.Emulated)
	d.Logs = construct.NewLogs(stack, logNames(s), func(what string) int {
		if what == auditLog {
			return int(s.Audit)
		}
		return int(s.Logs)
	}, s.Keep)
	if !s.Emulated { // an emulator has no pipes
		d.Logs.NewStream(auditLog, auditStream, s.Keep)
		d.Tables.Ship(stack, construct.ShipProps{Name: auditPipe(s), Table: contract.Audit,
			Attribute: contract.AttrEntry, Group: d.Logs.Group(auditLog), LogStream: auditStream})
	}
	// What refuses its deletion is made last: a resource that fails after it would block the roll-back.
	first := append(d.Queues.All(), d.Bucket.Made())
	if s.Tokens.Auth == target.ByCognito {
		pool := construct.NewUserPool(stack, "Tokens", construct.UserPoolProps{Name: s.Prefix,
			Server: target.PoolServer, Tenant: target.PoolTenant, Tenants: s.Tokens.Tenants, Keep: s.Keep})
		d.Pool = &pool
		if s.Keep {
			pool.After(first...)
		}
		output(stack, "UserPool", pool.Id(), "Who may sign in, and whose clients, one of each tenant, get tokens; "+
			"see infra/auth.md")
		output(stack, "TokenUrl", pool.TokenURL(), "Where clients ask for tokens")
	}
	if s.Keep {
		d.Tables.After(first...)
	}
	if s.BackupAccount != "" {
		construct.NewBackup(stack, construct.BackupProps{Name: s.Prefix, Account: s.BackupAccount, Key: d.Key,
			Tables: d.Tables, Bucket: d.Bucket})
	}
	output(stack, "DeadLetterQueue", d.Queues.Queue(contract.DeadLetters).QueueName(),
		"Dead letters; see infra/runbook/redrive.md")
	output(stack, "RedriveQueue", d.Queues.Queue(contract.RedriveQueue).QueueName(), "Where redriven dead letters go")
	output(stack, "PayloadBucket", d.Bucket.Name(), "Payloads and results over 256 KB")
	output(stack, "FiringDeadQueue", d.Queues.Queue(contract.FiringDead).QueueName(),
		"Messages that nobody could read; see infra/runbook/firing-dead.md")
	return d
}

// Who writes logs, besides the functions.
const (
	accessLog  = "access"  // a line for each request to the API
	auditLog   = "audit"   // a line for each change that a caller made
	workerLog  = "worker"  // what workers write
	networkLog = "network" // refused connections
	clusterLog = "cluster" // the cluster's control plane
)

// auditStream is the stream of the log group of the audit: what fills it makes none.
const auditStream = "entries"

// auditPipe names the pipe that copies entries of the audit into its log group.
func auditPipe(s target.Settings) string { return s.Prefix + "-audit" }

// logNames are the names of all log groups. EKS writes under a name of its own, and would make a
// group that is kept for ever.
func logNames(s target.Settings) map[string]string {
	names := map[string]string{accessLog: "/punctual/" + s.Prefix + "/access", workerLog: WorkerLog(s)}
	for _, p := range partsOf(s) {
		names[p.name] = "/punctual/" + s.Prefix + "-" + p.name
	}
	if !s.Emulated {
		names[auditLog] = "/punctual/" + s.Prefix + "/audit"
		names[networkLog] = "/punctual/" + s.Prefix + "-network"
		names[clusterLog] = "/aws/eks/" + s.Prefix + "/cluster"
	}
	return names
}

// newStack makes a stack of the deployment, named <prefix>-<what>.
func newStack(scope constructs.Construct, s target.Settings, what, about string, protect bool) awscdk.Stack {
	env := &awscdk.Environment{Region: jsii.String(s.Region)}
	if s.Account != "" {
		env.Account = jsii.String(s.Account)
	}
	stack := awscdk.NewStack(scope, jsii.String(s.Prefix+"-"+what), &awscdk.StackProps{
		Env: env, Description: jsii.String("Punctual (" + s.Target + "): " + about),
		TerminationProtection: jsii.Bool(protect),
		AnalyticsReporting:    jsii.Bool(false),
	})
	awscdk.Tags_Of(stack).Add(jsii.String("punctual:deployment"), jsii.String(s.Prefix), nil)
	return stack
}

func output(stack awscdk.Stack, id string, value *string, about string) {
	awscdk.NewCfnOutput(stack, jsii.String(id), &awscdk.CfnOutputProps{Value: value, Description: jsii.String(about)})
}

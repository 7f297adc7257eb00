package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"punctual/infra/construct"
	"punctual/infra/target"
	"punctual/shared/contract"
)

// grantWorkers lets the workers of a pool do what they do: take firings of their pool, read
// jobs, write claims and large results, and report. Nothing else of Punctual is theirs to write.
func (d Data) grantWorkers(role awsiam.IRole, prefix, pool string) {
	var firings []string
	for _, priority := range contract.Priorities {
		firings = append(firings, contract.FiringQueue(pool, priority))
	}
	d.Queues.GrantReceive(role, firings...)
	d.Queues.GrantSend(role, contract.ReportQueue)
	d.Tables.GrantItems(role, contract.Jobs, construct.Get)
	d.Tables.GrantItems(role, contract.Claims, construct.Get, construct.GetMany, construct.Put, construct.Update)
	d.Tables.GrantQuery(role, contract.Claims, "") // a cancel, eventually consistent
	d.Tables.GrantItems(role, contract.Schedules, construct.Get)
	d.Tables.GrantItems(role, contract.Runs, construct.Get)
	d.Tables.GrantItems(role, contract.Tasks, construct.Get) // what an operator lets run
	d.Tables.GrantIdentify(role, contract.Guarded...)
	d.Tables.GrantQuery(role, contract.Tasks, "")                             // pauses
	d.Tables.GrantUnder(role, contract.Tasks, "system#worker", construct.Put) // that it works
	d.Bucket.GrantRead(role)
	d.Bucket.GrantList(role)
	d.Bucket.GrantPutResults(role)
	d.Key.GrantUse(role, construct.DynamoDB, construct.SQS, construct.S3)
	construct.GrantRun(role, prefix)
}

// NewWorkerRoles makes what an emulator can have of the Fleet: the role of each pool's workers, with
// the same grants, for a person of the account who starts a worker.
func NewWorkerRoles(scope constructs.Construct, s target.Settings, d Data) awscdk.Stack {
	// The stack keeps its former name: under another one CloudFormation would make a second stack.
	stack := newStack(scope, s, "crew", "the workers' roles, without a cluster", false)
	for _, p := range s.Fleet.Pools() {
		role := awsiam.NewRole(stack, jsii.String("worker-"+p.Name+"-role"), &awsiam.RoleProps{
			RoleName:    jsii.String(WorkerRole(s.Prefix, p.Name)),
			Description: jsii.String("What workers of the " + p.Name + " pool may do"),
			AssumedBy:   awsiam.NewAccountRootPrincipal(),
		})
		d.grantWorkers(role, s.Prefix, p.Name)
	}
	return stack
}

// WorkerRole is the name of the role of a pool's workers where there is no cluster.
func WorkerRole(prefix, pool string) string { return prefix + "-worker-" + pool }

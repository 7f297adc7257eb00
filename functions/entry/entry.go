package entry

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"punctual/functions/batch"
	"punctual/shared/aws/blob"
	"punctual/shared/aws/queue"
	"punctual/shared/aws/session"
	"punctual/shared/aws/table"
	"punctual/shared/aws/timer"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/process"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/zonefile"
)

// Stage is what a stage is started with.
type Stage struct {
	Env    contract.Env
	Log    *slog.Logger
	Meter  *telemetry.Meter
	Config session.Config // counts the calls that are throttled
}

// New reads the environment of a stage, whose name is in each line that it logs. The variables that it needs besides
// those of all stages are named; a missing one ends the process.
func New(stage string, needs ...string) Stage {
	env := contract.MustEnv(os.LookupEnv, needs...)
	log := telemetry.Logger(os.Stdout, stage)
	zonefile.Take(env.ZoneFile, log)
	meter := &telemetry.Meter{Namespace: env.Namespace(), Version: lambdacontext.FunctionVersion}
	return Stage{Env: env, Log: log, Meter: meter,
		Config: session.Metered(session.MustLoad(context.Background()), meter)}
}

// Base returns what the parts of the stage share.
func (s Stage) Base() process.Base {
	return process.Base{Clock: clock.System{}, Log: s.Log, Meter: s.Meter, Shards: s.Env.Shards, Announced: true}
}

// Store returns the rows and items of the deployment.
func (s Stage) Store() *store.Store {
	return store.New(table.New(s.Config, s.Env.TableName), blob.New(s.Config, s.Env.Bucket))
}

// Search returns the index of jobs, nil where the deployment has none.
func (s Stage) Search() store.SearchIndex {
	return store.SearchIn(table.New(s.Config, s.Env.TableName), s.Env.Search)
}

// Queues returns the queues of the deployment.
func (s Stage) Queues() *queue.Queues { return queue.New(s.Config, s.Env.QueueName) }

// Timers returns the timers of the deployment. Its main needs PUNCTUAL_TIMER_ROLE and PUNCTUAL_TIMER_TARGET.
func (s Stage) Timers() *timer.Timers {
	return timer.New(s.Config, timer.Settings{Group: s.Env.TimerGroup, Role: s.Env.TimerRole,
		Target: s.Env.TimerTarget, DeadLetter: s.Env.TimerDLQ})
}

// RateLimit returns what a tenant's requests and the releases of its runs draw on.
func (s Stage) RateLimit() store.RateLimit {
	return store.RateLimit{Rate: s.Env.TenantRate, Burst: s.Env.TenantBurst}
}

// Start handles events until the process ends, and writes the metrics of each invocation at its end.
func Start[E, R any](s Stage, handle func(context.Context, E) (R, error)) {
	lambda.Start(batch.Metered(handle, s.Meter, os.Stdout))
}

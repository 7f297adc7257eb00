// Command lambda is the door of the dispatch queue's consumer.
package main

import (
	"context"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"punctual/functions/batch"
	"punctual/functions/dispatch"
	"punctual/shared/aws/blob"
	"punctual/shared/aws/queue"
	"punctual/shared/aws/session"
	"punctual/shared/aws/table"
	"punctual/shared/aws/timer"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/zonefile"
)

func main() {
	env := contract.MustEnv(os.LookupEnv, "PUNCTUAL_TIMER_ROLE", "PUNCTUAL_TIMER_TARGET")
	log := telemetry.Logger(os.Stdout, "dispatch")
	zonefile.Take(env.ZoneFile, log)
	meter := &telemetry.Meter{Namespace: env.Namespace(), Version: lambdacontext.FunctionVersion}
	cfg := session.Metered(session.MustLoad(context.Background()), meter)
	lambda.Start(batch.Metered(dispatch.New(dispatch.Deps{
		Store: store.New(table.New(cfg, env.TableName), blob.New(cfg, env.Bucket)),
		Queue: queue.New(cfg, env.QueueName),
		Timer: timer.New(cfg, timer.Settings{
			Group: env.TimerGroup, Role: env.TimerRole, Target: env.TimerTarget, DeadLetter: env.TimerDLQ,
		}),
		Clock: clock.System{},
		Log:   log,
		Meter: meter, Shards: env.Shards,
		RateLimit: store.RateLimit{Rate: env.TenantRate, Burst: env.TenantBurst},
	}).Handle, meter, os.Stdout))
}

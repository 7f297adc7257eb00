// Command lambda is the door of the sweeper, which a rule calls each minute.
package main

import (
	"context"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"punctual/functions/batch"
	"punctual/functions/sweeper"
	"punctual/shared/aws/blob"
	"punctual/shared/aws/queue"
	"punctual/shared/aws/session"
	"punctual/shared/aws/table"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/zonefile"
)

func main() {
	env := contract.MustEnv(os.LookupEnv)
	log := telemetry.Logger(os.Stdout, "sweeper")
	zonefile.Take(env.ZoneFile, log)
	meter := &telemetry.Meter{Namespace: env.Namespace()}
	cfg := session.Metered(session.MustLoad(context.Background()), meter)
	lambda.Start(batch.Metered(sweeper.New(sweeper.Deps{
		Store:     store.New(table.New(cfg, env.TableName), blob.New(cfg, env.Bucket)),
		Queue:     queue.New(cfg, env.QueueName),
		Clock:     clock.System{},
		Log:       log,
		Meter:     meter,
		Shards:    env.Shards,
		RateLimit: store.RateLimit{Rate: env.TenantRate, Burst: env.TenantBurst},
	}).Handle, meter, os.Stdout))
}

// Command lambda is the door of the redrive queue's consumer.
package main

import (
	"context"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"punctual/functions/batch"
	"punctual/functions/redrive"
	"punctual/shared/aws/blob"
	"punctual/shared/aws/queue"
	"punctual/shared/aws/session"
	"punctual/shared/aws/table"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

func main() {
	env := contract.MustEnv(os.LookupEnv, "PUNCTUAL_BUCKET")
	meter := &telemetry.Meter{Namespace: env.Namespace(), Version: lambdacontext.FunctionVersion}
	cfg := session.Metered(session.MustLoad(context.Background()), meter)
	lambda.Start(batch.Metered(redrive.New(redrive.Deps{
		Store:     store.New(table.New(cfg, env.TableName), blob.New(cfg, env.Bucket)),
		Queue:     queue.New(cfg, env.QueueName),
		Clock:     clock.System{},
		Log:       telemetry.Logger(os.Stdout, "redrive"),
		Meter:     meter,
		Shards:    env.Shards,
		RateLimit: store.RateLimit{Rate: env.TenantRate, Burst: env.TenantBurst},
	}).Handle, meter, os.Stdout))
}

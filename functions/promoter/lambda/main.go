// Command lambda is the door of the promoter, which a rule calls each minute.
package main

import (
	"context"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"punctual/functions/batch"
	"punctual/functions/promoter"
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
	log := telemetry.Logger(os.Stdout, "promoter")
	zonefile.Take(env.ZoneFile, log)
	meter := &telemetry.Meter{Namespace: env.Namespace()}
	cfg := session.Metered(session.MustLoad(context.Background()), meter)
	lambda.Start(batch.Metered(promoter.New(promoter.Deps{
		Store:  store.New(table.New(cfg, env.TableName), blob.New(cfg, env.Bucket)),
		Queue:  queue.New(cfg, env.QueueName),
		Clock:  clock.System{},
		Log:    log,
		Meter:  meter,
		Shards: env.Shards, Heartbeats: env.Heartbeats,
	}).Handle, meter, os.Stdout))
}

// Command lambda is the entry point of the look ahead, which a rule calls each minute.
package main

import (
	"context"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"punctual/functions/batch"
	"punctual/functions/forecast"
	"punctual/shared/aws/blob"
	"punctual/shared/aws/session"
	"punctual/shared/aws/table"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/store"
	"punctual/shared/telemetry"
)

func main() {
	env := contract.MustEnv(os.LookupEnv)
	meter := &telemetry.Meter{Namespace: env.Namespace()}
	cfg := session.Metered(session.MustLoad(context.Background()), meter)
	lambda.Start(batch.Metered(forecast.New(forecast.Deps{
		Store:  store.New(table.New(cfg, env.TableName), blob.New(cfg, env.Bucket)),
		Clock:  clock.System{},
		Log:    telemetry.Logger(os.Stdout, "forecast"),
		Meter:  meter,
		Shards: env.Shards,
	}).Handle, meter, os.Stdout))
}

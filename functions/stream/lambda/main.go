// Command lambda is the door of the stream consumer.
package main

import (
	"context"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"punctual/functions/batch"
	"punctual/functions/stream"
	"punctual/shared/aws/queue"
	"punctual/shared/aws/session"
	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/telemetry"
)

func main() {
	env := contract.MustEnv(os.LookupEnv)
	meter := &telemetry.Meter{Namespace: env.Namespace(), Version: lambdacontext.FunctionVersion}
	cfg := session.Metered(session.MustLoad(context.Background()), meter)
	lambda.Start(batch.Metered(stream.New(stream.Deps{
		Queue: queue.New(cfg, env.QueueName),
		Clock: clock.System{},
		Log:   telemetry.Logger(os.Stdout, "stream"),
		Meter: meter,
	}).Handle, meter, os.Stdout))
}

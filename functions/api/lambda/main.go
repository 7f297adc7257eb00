// Command lambda is the door of the REST API: behind API Gateway, with the authorizer before it.
package main

import (
	"context"
	"os"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"punctual/functions/api"
	"punctual/functions/api/console"
	"punctual/shared/aws/blob"
	"punctual/shared/aws/principal"
	"punctual/shared/aws/queue"
	"punctual/shared/aws/session"
	"punctual/shared/aws/table"
	"punctual/shared/aws/timer"
	"punctual/shared/contract"
	"punctual/shared/store"
	"punctual/shared/telemetry"
	"punctual/shared/zonefile"
)

func main() {
	env := contract.MustEnv(os.LookupEnv, "PUNCTUAL_BUCKET", "PUNCTUAL_TIMER_ROLE", "PUNCTUAL_TIMER_TARGET")
	log := telemetry.Logger(os.Stdout, "api")
	zonefile.Take(env.ZoneFile, log)
	meter := &telemetry.Meter{Namespace: env.Namespace(), Version: lambdacontext.FunctionVersion}
	cfg := session.Metered(session.MustLoad(context.Background()), meter)
	rest := api.New(api.Deps{
		Store:  store.New(table.New(cfg, env.TableName), blob.New(cfg, env.Bucket)),
		Queues: queue.New(cfg, env.QueueName),
		Timers: timer.New(cfg,
			timer.Settings{Group: env.TimerGroup, Role: env.TimerRole, Target: env.TimerTarget,
				DeadLetter: env.TimerDLQ}),
		Log:        log,
		Meter:      meter,
		Shards:     env.Shards,
		Deployment: env.Prefix,
		HTTPAllow:  api.MustRanges(env.HTTPAllow),

		ScheduleQuota: env.Quota,
		Waiting:       env.TenantWaiting,
		RateLimit:     store.RateLimit{Rate: env.TenantRate, Burst: env.TenantBurst},
	})
	stage := strings.TrimPrefix(lambdacontext.FunctionName, env.Prefix+"-")
	page := console.Mount(console.SettingsOf(env), rest)
	lambda.Start(api.Signed(env.Auth, principal.New(cfg), api.Proxy(page, stage, meter, os.Stdout)))
}

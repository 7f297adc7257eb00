// Command lambda is the main of the REST API: behind API Gateway, with the authorizer before it.
package main

import (
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"punctual/functions/api"
	"punctual/functions/console"
	"punctual/functions/entry"
	"punctual/shared/aws/principal"
)

func main() {
	s := entry.New("api", "PUNCTUAL_BUCKET", "PUNCTUAL_TIMER_ROLE", "PUNCTUAL_TIMER_TARGET")
	rest := api.New(api.Deps{
		Store:         s.Store(),
		Queues:        s.Queues(),
		Timers:        s.Timers(),
		Base:          s.Base(),
		Deployment:    s.Env.Prefix,
		HTTPAllow:     api.MustRanges(s.Env.HTTPAllow),
		ScheduleQuota: s.Env.Quota,
		Waiting:       s.Env.TenantWaiting,
		AuditKept:     time.Duration(s.Env.AuditDays) * 24 * time.Hour,
		Counted:       true,
		Search:        s.Search(),
		UsageTags:     s.Env.UsageTags,
		RateLimit:     s.RateLimit(),
	})
	part := strings.TrimPrefix(lambdacontext.FunctionName, s.Env.Prefix+"-")
	page := console.Mount(console.SettingsOf(s.Env), rest)
	lambda.Start(api.Signed(s.Env.Auth, principal.New(s.Config), api.Proxy(page, part, s.Meter, os.Stdout)))
}

// Command lambda is the main of the authorizer.
package main

import (
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"punctual/functions/authorizer"
	"punctual/functions/batch"
	"punctual/shared/contract"
	"punctual/shared/process"
	"punctual/shared/telemetry"
)

func main() {
	env := contract.MustEnv(os.LookupEnv, "PUNCTUAL_ISSUER", "PUNCTUAL_AUDIENCE", "PUNCTUAL_JWKS_URL")
	meter := &telemetry.Meter{Namespace: env.Namespace()}
	lambda.Start(batch.Metered(authorizer.New(authorizer.Deps{
		JWKSURL:       env.JWKS,
		Issuer:        env.Issuer,
		Audiences:     env.Audiences,
		AudienceClaim: env.AudienceClaim,
		TenantClaim:   env.TenantClaim,
		TenantScope:   env.TenantScope,
		GroupClaim:    env.GroupClaim,
		ScopeClaim:    env.ScopeClaim,
		ScopePrefix:   env.ScopePrefix,
		Base:          process.Base{Log: telemetry.Logger(os.Stdout, "authorizer"), Meter: meter},
	}).Handle, meter, os.Stdout))
}

// Command infra is Punctual's CDK app: it turns a target's settings into templates.
//
// The CDK CLI runs it, as cdk.json says: `npx cdk synth -c target=dev -c issuer=… -c audience=…`. It
// first builds the functions and the worker, unless `-c functions=…` says where they are.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"punctual/infra/build"
	"punctual/infra/quota"
	"punctual/infra/stack"
	"punctual/infra/target"
)

func main() {
	defer jsii.Close()
	app := awscdk.NewApp(nil)
	said := func(key string) string {
		value, _ := app.Node().TryGetContext(jsii.String(key)).(string)
		if key == "region" && value == "" {
			// As the CLI takes it for bootstrap: from the environment or the AWS profile.
			value = os.Getenv("CDK_DEFAULT_REGION")
		}
		return value
	}
	settings, err := target.Load(said)
	if err == nil && said("functions") == "" {
		err = assets(settings)
	}
	if err == nil {
		settings, err = within(settings)
	}
	if err == nil {
		for _, warning := range settings.Warnings() {
			fmt.Fprintln(os.Stderr, warning)
		}
		_, err = stack.New(app, settings)
	}
	if err != nil {
		jsii.Close()
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	app.Synth(nil)
}

// askWithin is how long the account may take to say what it allows.
const askWithin = 15 * time.Second

// within reduces the settings to what the account allows, if there are credentials to ask it. It refuses to move a
// fleet that is deployed there.
func within(s target.Settings) (target.Settings, error) {
	if s.Emulated || os.Getenv("CDK_DEFAULT_ACCOUNT") == "" {
		return s, nil
	}
	ctx, stop := context.WithTimeout(context.Background(), askWithin)
	defer stop()
	account, err := quota.Account(ctx, s.Region)
	if err != nil {
		fmt.Fprintln(os.Stderr, "quotas could not be read, and are taken to be large enough:", err)
		return s, nil
	}
	if err := quota.Moved(ctx, s, account); err != nil || s.Concurrency > 0 {
		return s, err
	}
	found := quota.Read(ctx, s, account)
	for _, said := range found.Says {
		fmt.Fprintln(os.Stderr, said)
	}
	s.Flow = s.Flow.Within(found.Concurrency)
	return s, nil
}

// assets builds the files of the deployment.
func assets(s target.Settings) error {
	b := build.Builder{Root: ".", Arch: string(s.Arch)}
	err := b.Functions(context.Background(), s.Origin.Functions)
	if !s.Emulated {
		err = errors.Join(err, b.Worker(context.Background(), s.Origin.Worker))
	}
	return err
}

// Command infra is Punctual's CDK app: it turns a target's settings into templates.
//
// The CDK CLI runs it, as cdk.json says: `cdk synth -c target=dev -c issuer=… -c audience=…`.
package main

import (
	"fmt"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"punctual/infra/stack"
	"punctual/infra/target"
)

func main() {
	defer jsii.Close()
	app := awscdk.NewApp(nil)
	settings, err := target.Load(func(key string) string {
		value, _ := app.Node().TryGetContext(jsii.String(key)).(string)
		return value
	})
	if err == nil {
		_, err = stack.New(app, settings)
	}
	if err != nil {
		jsii.Close()
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	app.Synth(nil)
}

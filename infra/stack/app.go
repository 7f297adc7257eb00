package stack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"punctual/infra/target"
)

// Stacks are all of a deployment. Where it is emulated, only the workers' roles are there of the Fleet.
type Stacks struct {
	Data          Data
	Flow          Flow
	Observability Observability
	Fleet         Fleet
}

// New builds a deployment.
func New(app awscdk.App, s target.Settings) (Stacks, error) {
	if err := built(s); err != nil {
		return Stacks{}, err
	}
	var d Stacks
	d.Data = NewData(app, s)
	d.Flow = NewFlow(app, s, d.Data)
	if s.Emulated {
		NewWorkerRoles(app, s, d.Data)
	} else {
		d.Fleet = NewFleet(app, s, d.Data)
	}
	d.Observability = NewObservability(app, s, d.Data, d.Flow)
	if !s.Emulated {
		// Until there are workers, their silence means nothing.
		d.Observability.AddDependency(d.Fleet.Stack, jsii.String("it watches the workers"))
	}
	return d, nil
}

// built reports what has not been built yet.
func built(s target.Settings) error {
	var missing []string
	for _, p := range Programs() {
		if _, err := os.Stat(filepath.Join(s.Origin.Functions, p, "bootstrap")); err != nil {
			missing = append(missing, p)
		}
	}
	if !s.Emulated {
		missing = append(missing, fleetBuilt(s)...)
		if _, err := os.Stat(s.Origin.Kubectl); err != nil {
			return fmt.Errorf("%s is not there: run `npm ci --prefix infra` first", s.Origin.Kubectl)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s lacks %s: run `make build` first", s.Origin.Functions, strings.Join(missing, ", "))
	}
	return nil
}

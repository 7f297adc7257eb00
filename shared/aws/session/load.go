package session

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
)

// emulatorRegion is where everything lives when an endpoint is named and no region is:
// emulators know no regions, but the SDK signs with one.
const emulatorRegion = "us-east-1"

// Config is the SDK's configuration, for a main to pass on without importing the SDK.
type Config = aws.Config

// Load reads the SDK's configuration from the environment: region, credentials and endpoints.
// A missing region is an error that names the variable, except where an endpoint is given.
func Load(ctx context.Context) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return aws.Config{}, fmt.Errorf("loading the AWS configuration: %w", err)
	}
	if cfg.Region == "" && cfg.BaseEndpoint != nil {
		cfg.Region = emulatorRegion
	}
	if cfg.Region == "" {
		return aws.Config{}, errors.New("loading the AWS configuration: no region is known: set AWS_REGION")
	}
	if name := os.Getenv(recordTo); name != "" {
		return recorded(cfg, name)
	}
	return cfg, nil
}

// MustLoad is Load for a main: what is missing ends the process with its name.
func MustLoad(ctx context.Context) aws.Config {
	cfg, err := Load(ctx)
	if err != nil {
		panic(err)
	}
	return cfg
}

package session_test

import (
	"os"
	"strings"
	"testing"

	"punctual/shared/aws/session"
)

func alone(t *testing.T) {
	t.Helper()
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
}

func TestLoad_TakesTheRegionOfTheEnvironmentOrAnEmulator(t *testing.T) {
	alone(t)
	if _, err := session.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("without a region: %v; want an error that names AWS_REGION", err)
	}
	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")
	cfg, err := session.Load(t.Context())
	if err != nil || cfg.Region != "us-east-1" {
		t.Errorf("with an endpoint alone: region %q, %v", cfg.Region, err)
	}
	t.Setenv("AWS_REGION", "eu-central-1")
	if cfg := session.MustLoad(t.Context()); cfg.Region != "eu-central-1" {
		t.Errorf("region %q; want the environment's", cfg.Region)
	}
}

func TestMustLoad_PanicsWithoutARegion(t *testing.T) {
	alone(t)
	defer func() {
		if recover() == nil {
			t.Error("MustLoad went on without a region")
		}
	}()
	session.MustLoad(t.Context())
}

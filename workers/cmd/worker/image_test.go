package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// bare makes the test's process the worker of an empty image.
const bare = "PUNCTUAL_TEST_BARE"

func TestImage_IsBuiltOnNothingThatCanChange(t *testing.T) {
	t.Parallel()
	recipe, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	bases := regexp.MustCompile(`(?m)^FROM .*$`).FindAllString(string(recipe), -1)
	for _, base := range bases {
		if base != "FROM scratch" && !regexp.MustCompile(`@sha256:[0-9a-f]{64}\b`).MatchString(base) {
			t.Errorf("%q names no digest", base)
		}
	}
	if len(bases) == 0 {
		t.Error("the recipe names no base")
	}
}

// The image has neither /etc nor /usr/share.
func TestImage_LeavesNothingToTheHost(t *testing.T) {
	t.Parallel()
	if os.Getenv(bare) != "" {
		roots, err := x509.SystemCertPool()
		if err != nil || roots.Equal(x509.NewCertPool()) {
			t.Errorf("without the host's certificates no server is trusted (%v)", err)
		}
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), bare+"=yes", "SSL_CERT_FILE="+t.TempDir()+"/none", "SSL_CERT_DIR="+t.TempDir())
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	// That a zone is found here would prove nothing: the toolchain's folder is looked into as well.
	imports, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil || !strings.Contains(string(imports), "\ntime/tzdata\n") {
		t.Errorf("the worker does not hold time zones (%v)", err)
	}
}

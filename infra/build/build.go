package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// flags give the same bytes for the same source.
var flags = []string{"-trimpath", "-buildvcs=false", "-tags", "lambda.norpc", "-ldflags", "-s -w -buildid="}

// Builder builds for one architecture.
type Builder struct {
	Root string // of the repository
	Arch string // of the functions and the worker: a GOARCH
}

// Functions builds each function of functions/ into <into>/<function>/bootstrap.
func (b Builder) Functions(ctx context.Context, into string) error {
	mains, err := filepath.Glob(filepath.Join(b.Root, "functions/*/lambda"))
	if err != nil || len(mains) == 0 {
		return errors.Join(err, fmt.Errorf("no functions are in %s", filepath.Join(b.Root, "functions")))
	}
	for _, dir := range mains {
		name := filepath.Base(filepath.Dir(dir))
		if err := b.build(ctx, filepath.Join(into, name, "bootstrap"), "./functions/"+name+"/lambda"); err != nil {
			return err
		}
	}
	return nil
}

// Worker builds the worker into a folder that its image is made from.
func (b Builder) Worker(ctx context.Context, into string) error {
	const source = "workers/cmd/worker"
	if err := b.build(ctx, filepath.Join(into, "worker"), "./"+source); err != nil {
		return err
	}
	recipe, err := os.ReadFile(filepath.Join(b.Root, source, "Dockerfile"))
	if err != nil {
		return fmt.Errorf("building the worker's image: %w", err)
	}
	if err := os.WriteFile(filepath.Join(into, "Dockerfile"), recipe, 0o644); err != nil {
		return fmt.Errorf("building the worker's image: %w", err)
	}
	return nil
}

func (b Builder) build(ctx context.Context, into, program string) error {
	into, err := filepath.Abs(into)
	if err != nil {
		return fmt.Errorf("building %s: %w", program, err)
	}
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build"}, flags...), "-o", into, program)...)
	cmd.Dir = b.Root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+b.Arch)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", program, err, bytes.TrimSpace(said))
	}
	return nil
}

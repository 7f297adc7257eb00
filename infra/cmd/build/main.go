// Command build builds the functions and the worker into build/<arch>.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"punctual/infra/build"
)

func main() {
	arch := flag.String("arch", "arm64", "of the functions and the worker: arm64 or amd64")
	flag.Parse()
	b, into := build.Builder{Root: ".", Arch: *arch}, filepath.Join("build", *arch)
	err := errors.Join(b.Functions(context.Background(), into),
		b.Worker(context.Background(), filepath.Join(into, "worker")))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

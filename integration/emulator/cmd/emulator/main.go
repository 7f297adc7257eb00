// Command emulator starts a local AWS (MiniStack) in the foreground, for use
// by hand, and ends it with Ctrl-C:
//
//	go run ./integration/emulator/cmd/emulator -port 4566
//	go run ./integration/emulator/cmd/emulator -prepare    # only install what the tests will start
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"punctual/integration/emulator/environment"
)

func main() {
	port := flag.Int("port", 4566, "port to listen on, on the loopback interface")
	prepare := flag.Bool("prepare", false,
		"install the emulators and the tools that read the OpenAPI document, start none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *port, *prepare); err != nil {
		fmt.Fprintln(os.Stderr, "emulator:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, port int, prepare bool) error {
	if prepare {
		for _, k := range []environment.Kind{environment.MiniStackKind(), environment.LocalStackKind()} {
			python, err := environment.Install(ctx, k)
			if err != nil {
				return err
			}
			fmt.Printf("%s is installed: %s\n", k, python)
		}
		python, err := environment.InstallPinned(ctx, environment.OpenAPI)
		if err == nil {
			fmt.Printf("%s is installed: %s\n", environment.OpenAPI, python)
		}
		return err
	}
	e, err := environment.Start(ctx, environment.MiniStackKind(), environment.Options{Port: port, Output: os.Stderr})
	if err != nil {
		return err
	}
	defer e.Stop()
	fmt.Println("# A local AWS answers; in another shell:")
	for _, setting := range e.Environ() {
		fmt.Println("export " + setting)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-e.Done():
		return errors.New("it ended by itself")
	}
}

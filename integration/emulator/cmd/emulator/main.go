// Command emulator starts a local AWS (MiniStack) in the foreground, and ends it with Ctrl-C:
//
//	go run ./integration/emulator/cmd/emulator -port 4566
//	go run ./integration/emulator/cmd/emulator -prepare    # only install what tests start and call; in the root
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
		"install the emulators, and the tools that tests call, from the root of the repository; start none")
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
		return install(ctx)
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

// install installs what the tests will start, and names each before: what is not in the cache is downloaded.
func install(ctx context.Context) error {
	for _, name := range []string{environment.MiniStackKind().String(), environment.LocalStackKind().String(),
		environment.OpenAPI, environment.Webhooks} {
		fmt.Printf("Python packages of %s: ", name)
		python, err := environment.InstallPinned(ctx, name)
		if err != nil {
			return err
		}
		fmt.Println(python)
	}
	for _, folder := range []string{"integration/console", "integration/openapi", "integration/protocol"} {
		fmt.Printf("Node.js packages of %s: ", folder)
		modules, err := environment.InstallNode(ctx, folder)
		if err != nil {
			return err
		}
		fmt.Println(modules)
	}
	return nil
}

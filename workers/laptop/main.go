package laptop

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"punctual/workers/worker"
)

// Main is the program of a laptop with these handlers (nil: those of workers/handler): it reads the arguments of the
// process, serves until Ctrl-C and ends the process. A module of your own calls it in its main and has all that make
// run has; -help lists the arguments.
func Main(handlers func(*worker.Registry)) {
	os.Exit(command(context.Background(), os.Args, os.Stdout, os.Stderr, handlers))
}

// command runs the program with its name and arguments, and returns its exit code: 1 when it cannot serve, 2 when an
// argument is wrong.
func command(ctx context.Context, args []string, out, errs io.Writer, handlers func(*worker.Registry)) (exit int) {
	o := Options{Handlers: handlers}
	o.Serving = func(addr string) { o.Greet(out, addr) }
	o.Ending = func() { o.AnnounceDrain(out) }
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.StringVar(&o.Addr, "addr", "localhost:8080", "where to serve; loopback only")
	flags.DurationVar(&o.Drain, "drain", 10*time.Second, "how long running jobs may go on after Ctrl-C")
	flags.BoolVar(&o.Info, "v", false, "log more than faults")
	flags.StringVar(&o.Data, "data", "", "folder that keeps what is held across restarts")
	flags.StringVar(&o.Secrets, "secrets", "", "file of secrets: a JSON object of strings, or lines of NAME=value")
	flags.IntVar(&o.Speed, "speed", 0, "how many times as fast time passes while nothing is under way")
	flags.Func("at", "what time it is at the start, with a zone, such as 2027-03-28T00:55:00+01:00",
		func(text string) (err error) {
			o.At, err = time.Parse(time.RFC3339, text)
			return err
		})
	seed := flags.Bool("seed", false, "put examples into what is served at the address, and end")
	switch err := flags.Parse(args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // flags has said what is wrong
	}
	if *seed {
		return ended(Seed(ctx, "http://"+o.Addr, out), errs)
	}
	if exit = ended(Serve(ctx, o), errs); exit == 0 {
		_, _ = fmt.Fprintln(out, "drained; goodbye")
	}
	return exit
}

// ended writes an error, if there is one, and returns the exit code of the process.
func ended(err error, errs io.Writer) int {
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintln(errs, "punctual:", err)
	return 1
}

// Command local serves Punctual on localhost; make run starts it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"punctual/workers/laptop"
)

func main() {
	var o laptop.Options
	o.Serving = func(addr string) { o.Greet(os.Stdout, addr) }
	o.Ending = func() { o.AnnounceDrain(os.Stdout) }
	flag.StringVar(&o.Addr, "addr", "localhost:8080", "where to serve; loopback only")
	flag.DurationVar(&o.Drain, "drain", 10*time.Second, "how long running jobs may go on after Ctrl-C")
	flag.BoolVar(&o.Info, "v", false, "log more than faults")
	flag.StringVar(&o.Data, "data", "", "folder that keeps what is held across restarts")
	flag.StringVar(&o.Secrets, "secrets", "", "file of secrets: a JSON object of strings, or lines of NAME=value")
	flag.IntVar(&o.Speed, "speed", 0, "how many times as fast time passes while nothing is under way")
	flag.Func("at", "what time it is at the start, with a zone, such as 2027-03-28T00:55:00+01:00",
		func(text string) (err error) {
			o.At, err = time.Parse(time.RFC3339, text)
			return err
		})
	seed := flag.Bool("seed", false, "put examples into what is served at the address, and end")
	flag.Parse()
	if *seed {
		if err := laptop.Seed(context.Background(), "http://"+o.Addr, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "punctual:", err)
			os.Exit(1)
		}
		return
	}
	if err := laptop.Serve(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "punctual:", err)
		os.Exit(1)
	}
	fmt.Println("drained; goodbye")
}

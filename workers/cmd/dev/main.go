// Command dev runs the program of a package and runs it anew whenever Go files change; make dev starts it
// for workers/cmd/local. While the changed files do not build, the program goes on as it was.
//
//	dev -watch workers -watch shared ./workers/cmd/local -addr localhost:8080
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	var folders []string
	flag.Func("watch", "folder whose Go files are watched, with all below it; may be given again",
		func(dir string) error {
			folders = append(folders, dir)
			return nil
		})
	flag.Parse()
	if flag.NArg() == 0 || len(folders) == 0 {
		fmt.Fprintln(os.Stderr, "dev: want -watch FOLDER, and a package to run, with its arguments")
		os.Exit(2)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := run(signals, folders, flag.Args(), os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "dev:", err)
		os.Exit(1)
	}
}

// run builds and runs the package args[0] with the other arguments until a signal comes.
func run(signals <-chan os.Signal, folders, args []string, out, errs io.Writer) error {
	dir, err := os.MkdirTemp("", "punctual-dev")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system clears it, too
	changed, stop, err := watch(folders)
	if err != nil {
		return err
	}
	defer stop()
	d := &dev{file: filepath.Join(dir, "program"), pkg: args[0], args: args[1:], out: out, errs: errs}
	d.restart()
	for {
		select {
		case <-changed:
			d.restart()
		case how := <-d.ended:
			d.program, d.ended = nil, nil
			_, _ = fmt.Fprintf(errs, "dev: it ended (%s); the next change starts it again\n", how)
		case s := <-signals:
			d.end(s, signals)
			return nil
		}
	}
}

// dev is the program that runs, if one does.
type dev struct {
	file, pkg string
	args      []string
	out, errs io.Writer

	program *exec.Cmd
	ended   chan string // how it did
}

// restart builds the program, and if it builds, runs it in place of the one that runs.
func (d *dev) restart() {
	next := d.file + ".next"
	build := exec.Command("go", "build", "-o", next, d.pkg)
	build.Stdout, build.Stderr = d.errs, d.errs
	if err := build.Run(); err != nil {
		_, _ = fmt.Fprintf(d.errs, "dev: it does not build (%v); what runs goes on\n", err)
		return
	}
	if d.program != nil {
		_ = d.program.Process.Signal(syscall.SIGTERM) // it may have ended just now
		<-d.ended
	}
	d.program, d.ended = nil, nil
	err := os.Rename(next, d.file)
	program := exec.Command(d.file, d.args...)
	program.Stdout, program.Stderr = d.out, d.errs
	if err == nil {
		err = program.Start()
	}
	if err != nil {
		_, _ = fmt.Fprintln(d.errs, "dev: it does not start:", err)
		return
	}
	d.program, d.ended = program, make(chan string, 1)
	go func(ended chan<- string) {
		_ = program.Wait() // its state says as much
		ended <- program.ProcessState.String()
	}(d.ended)
}

// end waits for the program's end. Ctrl-C has reached it as well, from the terminal; another signal is passed on.
// A second one kills it.
func (d *dev) end(s os.Signal, signals <-chan os.Signal) {
	if d.program == nil {
		return
	}
	if s != os.Interrupt {
		_ = d.program.Process.Signal(s) // it may have ended just now
	}
	select {
	case <-d.ended:
	case <-signals:
		_ = d.program.Process.Kill()
		<-d.ended
	}
}

// settle is how long files must be left alone before they are built: an editor writes several.
const settle = 200 * time.Millisecond

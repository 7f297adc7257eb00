package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"punctual/shared/client"
	"punctual/workers/laptop"
)

// commands are the verbs and what holds for all of them.
type commands struct {
	URL     string `name:"url" env:"PUNCTUAL_URL" help:"Address of the API; default: http://localhost:8080."`
	Token   string `env:"PUNCTUAL_TOKEN" help:"Bearer token of the API; a laptop needs none."`
	Context string `env:"PUNCTUAL_CONTEXT" help:"Name of a context in the config file, used instead of --url."`
	Config  string `env:"PUNCTUAL_CONFIG" help:"Path of the config file; default: the user's punctual/config.yaml."`
	Output  string `short:"o" enum:"table,json,yaml,name" default:"table" help:"Output format: table, json, yaml or name."`

	Wide bool `help:"Neither cut columns of tables nor leave them out where the terminal is narrow."`

	Version kong.VersionFlag `help:"Show the version of this command."`

	kept  bool            // PUNCTUAL_TOKEN is not sent, because it belongs to another host
	typed map[string]bool // the flags of the command line; what else is set comes from the environment

	Serve     serve        `cmd:"" help:"Run Punctual on this machine, without AWS."`
	Run       runJob       `cmd:"" help:"Create a job of a task."`
	Get       getJob       `cmd:"" help:"Show a job."`
	Ls        listJobs     `cmd:"" help:"List jobs, newest first."`
	Cancel    cancelJobs   `cmd:"" help:"Cancel jobs."`
	Redrive   redriveJobs  `cmd:"" help:"Redrive dead jobs: create a new job for each."`
	Attempts  listAttempts `cmd:"" help:"List the attempts of a job, oldest first."`
	Logs      jobLogs      `cmd:"" help:"Show the lines that an attempt of a job has written."`
	Job       jobs         `cmd:"" help:"Pause and resume single jobs."`
	Apply     applyFile    `cmd:"" help:"Create or replace the resources of a YAML or JSON file, of all kinds."`
	Task      tasks        `cmd:"" help:"List, show, create, replace and delete tasks."`
	Exclusion exclusions   `cmd:"" help:"List, show, put and delete exclusions: days on which nothing runs."`
	Schedule  schedules    `cmd:"" help:"Apply, list, preview, run, pause, resume and delete schedules."`
	Dag       dags         `cmd:"" help:"Apply, run, watch and repair graphs of jobs."`
	Dead      deadLetters  `cmd:"" help:"List, redrive and purge dead jobs, which have used all their attempts."`
	Limit     limits       `cmd:"" help:"List, set, show and delete limits of work, and see the use of their keys."`
	Forecast  forecasts    `cmd:"" help:"Show the starts of jobs that are expected, and the calm minutes."`
	Workers   listWorkers  `cmd:"" help:"List the workers, and how full the queues are."`
	Webhook   webhooks     `cmd:"" help:"List, show, put, test and delete webhooks, and see their deliveries."`
	Operation operations   `cmd:"" help:"List, show, pause, resume and stop operations, such as backfills."`
	Audit     audit        `cmd:"" help:"List who changed what, when and why."`
	Pause     pauses       `cmd:"" help:"Pause a task or everything, and list the pauses."`
	Resume    resume       `cmd:"" help:"Remove a pause of a task or of everything."`
	Usage     usedByJobs   `cmd:"" help:"List what jobs used, and what that costs about."`
	Stats     jobStats     `cmd:"" help:"Count what became of jobs, step by step of time."`
	Tail      tailJobs     `cmd:"" help:"Show jobs as they start, end and fail."`
	Bench     bench        `cmd:"" help:"Measure how fast jobs are accepted and how late they start."`
	Doctor    doctor       `cmd:"" help:"Check the API, its clock, its health and your token."`
	Data      dataFolders  `cmd:"" help:"Check and repair a data folder of serve --data."`

	Login      login      `cmd:"" help:"Sign in to a context of the config file with a browser."`
	Logout     logout     `cmd:"" help:"Delete the tokens that login has saved."`
	Completion completion `cmd:"" help:"Print the completion script of a shell."`
}

// shell is what a verb is given.
type shell struct {
	ctx      context.Context
	in       io.Reader
	out, err io.Writer
	output   string
	client   *client.Client
	url      string
	at       deployment
	chosen   commands
	colour   bool           // out shows colours
	moves    bool           // err shows progress
	drawn    time.Time      // when progress was shown; zero: it is not
	asks     bool           // a person can answer at in
	width    int            // characters of a line of out; 0: tables are not cut
	zone     *time.Location // in which times are shown as well; nil: in UTC alone
	seen     bool           // a person looks at out
}

func main() {
	// The first Ctrl-C ends a verb with a word about what goes on; the second ends the process.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// leave is kong's wish to end the process, after --help.
type leave int

// run does what the arguments ask, and returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) (exit int) {
	defer func() {
		switch wish := recover().(type) {
		case nil:
		case leave:
			exit = int(wish)
		default:
			panic(wish)
		}
	}()
	var c commands
	parser, err := kong.New(&c, kong.Name("punctual"), kong.Writers(out, errs),
		kong.Description("Punctual's command line. Exit codes: 0 done, 1 refused, 2 wrong arguments or file, "+
			"3 not reached, 4 not allowed, 10 failed, 11 cancelled, 12 expired, 13 skipped, 130 interrupted."),
		kong.Vars{"version": "punctual " + version()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.PostBuild(showExamples),
		kong.Exit(func(n int) { panic(leave(n)) }))
	if err != nil {
		_, _ = fmt.Fprintln(errs, "punctual:", worded(err))
		return exitUsage
	}
	if len(args) > 0 && args[0] == completing {
		for _, c := range complete(parser.Model, args[1:], contexts) {
			_, _ = fmt.Fprintf(out, "%s\t%s\n", c.word, c.help)
		}
		return exitDone
	}
	if len(args) > 0 && args[0] == "help" { // as of many commands
		args = append(slices.Clone(args[1:]), "--help")
	}
	chosen, err := parser.Parse(args)
	if err != nil {
		_, _ = fmt.Fprintf(errs, "punctual: %s; see %s --help\n", misused(err), helped(err))
		return exitUsage
	}
	c.typed = map[string]bool{}
	for _, p := range chosen.Path {
		if p.Flag != nil && !p.Resolved {
			c.typed[p.Flag.Name] = true
		}
	}
	at, err := c.where()
	var options []client.Option
	if err == nil {
		options, err = c.signIn(at)
	}
	if err != nil {
		_, _ = fmt.Fprintln(errs, "punctual:", worded(err))
		return exitUsage
	}
	s := newShell(ctx, c, at, in, out, errs)
	options = append(options, client.WithRetries(3), client.WithBackoff(200*time.Millisecond, 5*time.Second))
	s.client, err = client.New(at.URL, options...)
	if err != nil {
		_, _ = fmt.Fprintln(errs, "punctual:", worded(err))
		return exitUsage
	}
	err = chosen.Run(s)
	if err != nil {
		say(s, err)
	}
	return code(err)
}

// newShell is what a verb is given, without its client.
func newShell(ctx context.Context, c commands, at deployment, in io.Reader, out, errs io.Writer) *shell {
	s := &shell{
		ctx:    ctx,
		in:     in,
		out:    &seen{to: out},
		err:    &seen{to: errs},
		output: c.Output,
		url:    at.URL,
		at:     at,
		chosen: c,
		colour: colours(out, os.Getenv),
		moves:  terminal(errs),
		asks:   terminal(in),
		seen:   terminal(out),
	}
	if s.seen {
		s.zone = time.Local
		if !c.Wide {
			s.width = widthOf(out, os.Getenv)
		}
	}
	return s
}

// misused says what is wrong with the arguments. Kong calls an unknown command an unexpected argument.
func misused(err error) string {
	said := worded(err)
	if name, ok := strings.CutPrefix(said, "unexpected argument "); ok && helped(err) == "punctual" {
		return "there is no command " + name
	}
	return said
}

// helped names the command whose help lists the arguments.
func helped(err error) string {
	failed, ok := errors.AsType[*kong.ParseError](err)
	if !ok || failed.Context.Selected() == nil {
		return "punctual"
	}
	return "punctual " + nameOf(failed.Context.Selected())
}

// say prints for a person what is wrong, and what to do about it where that is known.
func say(s *shell, err error) {
	if _, ok := errors.AsType[ended](err); ok {
		return // the answer says it
	}
	if code(err) == exitInterrupted {
		word, ok := errors.AsType[interrupted](err)
		if !ok {
			word = "interrupted"
		}
		_, _ = fmt.Fprintln(s.err, "punctual:", word)
		return
	}
	_, _ = fmt.Fprintln(s.err, "punctual:", worded(err))
	switch code(err) {
	case exitUnreached:
		_, _ = fmt.Fprintf(s.err,
			"Is %s the address? --url or PUNCTUAL_URL sets it; punctual serve starts a laptop's.\n", s.url)
	case exitForbidden:
		if _, ok := errors.AsType[*notSignedIn](err); ok {
			return // it says what to do
		}
		if s.chosen.kept {
			_, _ = fmt.Fprintf(
				s.err,
				"PUNCTUAL_TOKEN belongs to another host and was not sent to %s; --token sends one.\n",
				s.url,
			)
			return
		}
		_, _ = fmt.Fprintln(s.err, "--token or PUNCTUAL_TOKEN sets the token; it may have expired, or lack a scope.")
	}
}

type serve struct {
	Addr      string        `default:"localhost:8080" help:"Address to serve on; loopback addresses only."`
	Port      int           `help:"Port to serve on, in place of the one of --addr."`
	Drain     time.Duration `default:"10s" help:"Time that running jobs have to end after Ctrl-C."`
	Data      string        `help:"Folder that keeps the data; default: data is in memory only."`
	Secrets   string        `help:"File of secrets: a JSON object of strings, or lines of NAME=value."`
	UsageTags []string      `help:"Names of the tags, up to three, that usage --by can count by." placeholder:"NAME"`
	At        typedTime     `help:"Simulated time at the start: of today, or a date with a zone."`
	Speed     int           `help:"Factor by which time passes faster while no job runs."`
	Verbose   bool          `short:"v" help:"Log informational lines, not only warnings and errors."`
}

// Run serves until it is interrupted.
func (c serve) Run(s *shell) error {
	addr, err := c.address()
	if err != nil {
		return err
	}
	at, err := c.At.on(time.Now())
	if err != nil {
		return usage{fmt.Errorf("--at %w", err)}
	}
	o := laptop.Options{Addr: addr, Drain: c.Drain, Info: c.Verbose, Data: c.Data, Secrets: c.Secrets,
		UsageTags: c.UsageTags, At: at, Speed: c.Speed}
	o.Serving = func(addr string) { o.Greet(s.out, addr) }
	o.Ending = func() { o.AnnounceDrain(s.out) }
	return laptop.Serve(s.ctx, o)
}

// address is the one of --addr, with the port of --port if that is given.
func (c serve) address() (string, error) {
	if c.Port == 0 {
		return c.Addr, nil
	}
	host, _, err := net.SplitHostPort(c.Addr)
	if err != nil || c.Port < 0 || c.Port > 65535 {
		return "", usage{fmt.Errorf("--port %d of --addr %q: want a port from 1 to 65535", c.Port, c.Addr)}
	}
	return net.JoinHostPort(host, strconv.Itoa(c.Port)), nil
}

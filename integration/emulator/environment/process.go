package environment

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	readyWithin  = 2 * time.Minute       // for a cold disk on a busy machine; 1 to 3 s are usual
	askEvery     = 50 * time.Millisecond // between two checks of readiness
	answerWithin = 10 * time.Second      // of one such check
	stopWithin   = 5 * time.Second       // then the group is killed from outside
	logsKept     = 10                    // of each kind
	tailBytes    = 4 << 10               // of a log, in errors
	attempts     = 3                     // a free port may be taken before it is used
)

//go:embed guard.py
var guard string

// Options change how a separate emulator is started.
type Options struct {
	Port   int       // to listen on; 0 means any free one
	Output io.Writer // for its output; nil means a log file in the cache

	// Checked makes MiniStack enforce policies as AWS does: it checks signatures, and allows a
	// caller what its policies allow, a function what its role allows. It then uses TLS only.
	Checked bool
	Environ []string // more for it, and for the functions that it runs
}

// process is a running emulator process group.
type process struct {
	cmd      *exec.Cmd
	lifeline io.Closer     // closing it makes the guard end the group
	ended    chan struct{} // closed once the process has been waited for
	folder   string
	err      error // why it ended; read after ended
}

// Start installs k if needed, starts it and waits until it answers. Stop ends it, and so does the
// end of this process, however it comes about.
func Start(ctx context.Context, k Kind, o Options) (*Emulator, error) {
	python, err := Install(ctx, k)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		e, err := start(ctx, python, k, o)
		if err == nil || attempt == attempts || o.Port != 0 || ctx.Err() != nil {
			return e, err
		}
	}
}

func start(ctx context.Context, python string, k Kind, o Options) (*Emulator, error) {
	unlock, err := lockStart(ctx)
	if err != nil {
		return nil, fmt.Errorf("waiting to start %s: %w", k, err)
	}
	defer unlock()
	port, err := freePort(o.Port)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "punctual-"+k.name+"-")
	if err != nil {
		return nil, err
	}
	e := &Emulator{URL: fmt.Sprint("http://127.0.0.1:", port)}
	if o.Checked {
		if e.cert, err = newCertificate(folder); err != nil {
			return nil, errors.Join(err, os.RemoveAll(folder))
		}
		e.URL = fmt.Sprint("https://127.0.0.1:", port)
		o.Environ = append(e.cert.emulator(e.URL), o.Environ...)
	}
	output := o.Output
	if output == nil {
		log, err := newLog(k)
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(folder))
		}
		defer log.Close() // the child has its own handle
		e.Log, output = log.Name(), log
	}
	e.process, err = launch(python, k, port, folder, output, o.Environ)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", k, err), os.RemoveAll(folder))
	}
	if err := e.await(ctx, k); err != nil {
		e.Stop()
		return nil, fmt.Errorf("starting %s on port %d: %w, and it said:\n%s", k, port, err, tail(e.Log))
	}
	return e, nil
}

// launch starts the process group. It has its own home and nothing of the user's settings but PATH.
func launch(python string, k Kind, port int, folder string, output io.Writer, more []string) (*process, error) {
	for _, dir := range []string{"home", "tmp"} {
		if err := os.Mkdir(filepath.Join(folder, dir), 0o755); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(python, "-I", "-u", "-c", guard, k.module, folder)
	cmd.Dir = folder
	cmd.Env = append([]string{
		"PATH=" + filepath.Dir(python) + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + filepath.Join(folder, "home"),
		"TMPDIR=" + filepath.Join(folder, "tmp"),
		"LANG=C.UTF-8",
		"AWS_ACCESS_KEY_ID=" + secret,
		"AWS_SECRET_ACCESS_KEY=" + secret,
		"AWS_DEFAULT_REGION=" + Region,
		"AWS_EC2_METADATA_DISABLED=true",
	}, k.environ(port, folder)...)
	cmd.Env = append(cmd.Env, more...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, lifeline: lifeline, ended: make(chan struct{}), folder: folder}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// await returns once e answers, or with the reason why it never will.
func (e *Emulator) await(ctx context.Context, k Kind) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	ask := time.NewTicker(askEvery)
	defer ask.Stop()
	client := e.Client(answerWithin)
	defer client.CloseIdleConnections()
	for {
		select {
		case <-e.process.ended:
			return fmt.Errorf("it ended at once: %w", cmp.Or(e.process.err, io.EOF))
		case <-ctx.Done():
			return fmt.Errorf("it did not answer at %s: %w", k.ready, ctx.Err())
		case <-ask.C:
			if answers(ctx, client, e.URL+k.ready) {
				return nil
			}
		}
	}
}

func answers(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// stop ends the process group, by its guard or else from outside.
func (p *process) stop() {
	_ = p.lifeline.Close()
	select {
	case <-p.ended:
	case <-time.After(stopWithin):
	}
	// The group outlives its leader if that one ended by itself.
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.ended
	_ = os.RemoveAll(p.folder)
}

// lockStart lets one emulator of this user start at a time, from the search for a free port until
// it is taken. Two searches at the same time could find the same port, and the later emulator would
// count as ready because the other one answers.
func lockStart(ctx context.Context) (unlock func(), err error) {
	home, err := cache("environments")
	if err != nil {
		return nil, err
	}
	return lock(ctx, filepath.Join(home, "start.lock"))
}

// freePort returns wanted, or any port for 0, if it was free a moment ago.
func freePort(wanted int) (int, error) {
	l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", wanted))
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// newLog creates a log file for one run of k and deletes all but the last few.
func newLog(k Kind) (*os.File, error) {
	dir, err := cache("logs")
	if err != nil {
		return nil, err
	}
	if old, err := filepath.Glob(filepath.Join(dir, k.name+"-*.log")); err == nil && len(old) >= logsKept {
		slices.Sort(old) // their names begin with the time
		for _, name := range old[:len(old)-logsKept+1] {
			_ = os.Remove(name)
		}
	}
	return os.CreateTemp(dir, k.name+"-"+time.Now().UTC().Format("20060102T150405")+"-*.log")
}

// tail returns the end of a file in whole lines; empty when there is none.
func tail(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil && size > tailBytes {
		_, _ = f.Seek(-tailBytes, io.SeekEnd)
	} else {
		_, _ = f.Seek(0, io.SeekStart)
	}
	text, _ := io.ReadAll(f)
	if len(text) == tailBytes {
		_, rest, _ := strings.Cut(string(text), "\n")
		return rest
	}
	return string(text)
}

package docs

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"punctual/integration/emulator/environment"
)

// within is how long a page may take. The longest takes some seconds, and a minute or two where Go has
// nothing cached.
const within = 5 * time.Minute

// Pages mostly wait for jobs to be due, so more of them run at once than there are cores.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestDocuments_RunAsWritten(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl", "git", "python3"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is not here", tool)
			}
			t.Skip(tool + " is not here")
		}
	}
	bin := t.TempDir()
	build(t, root, filepath.Join(bin, "local"), "./workers/cmd/local")
	build(t, root, filepath.Join(bin, "punctual"), "./workers/cmd/punctual")
	var counts sync.Map
	t.Run("pages", func(t *testing.T) {
		for _, path := range documents(t) {
			t.Run(strings.TrimSuffix(strings.TrimPrefix(path, "shared/docs/"), ".md"), func(t *testing.T) {
				t.Parallel()
				p, err := read(path)
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				for _, b := range p.blocks {
					n, _ := counts.LoadOrStore(b.info, new(sync.Map))
					n.(*sync.Map).Store(fmt.Sprint(path, b.line), b)
				}
				run(t, p, bin)
			})
		}
	})
	count := func(info string) (n int) {
		if all, ok := counts.Load(info); ok {
			all.(*sync.Map).Range(func(any, any) bool { n++; return true })
		}
		return n
	}
	t.Logf("%d blocks of commands are for bash, %d of them install packages; %d need an account",
		count(runs)+count(installs), count(installs), count(account))
}

// The page about tokens lies in infra. Its commands need an account: they are read here, and integration/emulator runs
// them.
func TestDocuments_OfTokensAreReadByTheShell(t *testing.T) {
	t.Parallel()
	n := 0
	for _, path := range []string{"infra/auth.md"} {
		p, err := read(path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, b := range p.blocks {
			if b.info == account {
				n++
				parses(t, path, b)
			} else if !shown[b.info] || b.info == "" {
				t.Errorf("%s:%d: a block of %q; commands that need an account are %q", path, b.line, b.info, account)
			}
		}
	}
	t.Logf("%d blocks need an account, and bash has read them", n)
	if n < 5 {
		t.Errorf("only %d blocks are there", n)
	}
}

// goFlags save time: compiled packages are shared whatever the folder, and no one debugs what is linked.
const goFlags = "-trimpath -ldflags=-w"

// build builds a program of the repository at dir.
func build(t *testing.T, dir, into, program string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", into, program)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS="+goFlags)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", program, err, said)
	}
}

// starts are the lines that start a server, or that are for the other terminal.
var starts = regexp.MustCompile(`^(?:(?:make [a-z]+|bin/punctual serve)\b[^;&|\n]*\n)+$`)

// parses looks whether bash understands a block, and whether make and its settings are as the block says.
func parses(t *testing.T, path string, b block) {
	t.Helper()
	if b.info == serves && !starts.MatchString(b.body) {
		t.Errorf("%s:%d: this starts no server: it has to run", path, b.line)
	}
	for _, m := range made.FindAllStringSubmatch(b.body, -1) {
		if !strings.Contains(text(t, "Makefile"), "\n"+m[1]+": ") {
			t.Errorf("%s:%d: make %s is not there", path, b.line, m[1])
		}
	}
	for _, m := range settings.FindAllStringSubmatch(b.body, -1) {
		for _, setting := range strings.Fields(m[1]) {
			key, _, _ := strings.Cut(setting, "=")
			if !slices.Contains(strings.Fields(known.FindStringSubmatch(text(t, "infra/prerequisites.sh"))[1]), key) {
				t.Errorf("%s:%d: there is no setting %s", path, b.line, key)
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-n")
	cmd.Stdin = strings.NewReader(b.body)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s:%d: %v\n%s", path, b.line, err, said)
	}
}

var (
	made     = regexp.MustCompile(`\bmake(?: -[ks]| -C \S+)* ([a-z-]+)`)
	settings = regexp.MustCompile(`SETTINGS='?([^'\n]*)`)
	known    = regexp.MustCompile(`\nknown="([^"]*)"`)
)

// run runs a page's blocks in one shell, and looks at what it answers.
func run(t *testing.T, p page, bin string) {
	home := t.TempDir()
	repository := filepath.Join(home, "punctual")
	dir, server := filepath.Join(home, "work"), filepath.Join(bin, "local")
	if p.inCopy() {
		dir = repository
		copied(t, repository)
	} else {
		abs, err := filepath.Abs(root)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(abs, repository); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, body := range p.files {
		write(t, filepath.Join(dir, name), []byte(body))
	}
	if p.diffs != "" {
		apply := exec.CommandContext(t.Context(), "git", "apply", "-")
		apply.Dir, apply.Stdin = dir, strings.NewReader(p.diffs)
		if said, err := apply.CombinedOutput(); err != nil {
			t.Fatalf("%s: its change does not apply: %v\n%s", p.path, err, said)
		}
	}
	if p.inCopy() {
		server = filepath.Join(home, "local")
		build(t, dir, server, "./workers/cmd/local")
	}

	for _, b := range p.blocks {
		if b.info == serves || b.info == account {
			parses(t, p.path, b)
		}
	}
	var packages []string
	if p.has(installs) {
		if packages = registries(t, home); packages == nil {
			p.blocks = slices.DeleteFunc(p.blocks, func(b block) bool { return b.info == installs })
		}
	}
	text, wants := script(p.blocks)
	if text == "" {
		return
	}
	at := serve(t, server)
	for name, body := range p.files {
		write(t, filepath.Join(dir, name), []byte(strings.ReplaceAll(body, "localhost:8080", at)))
	}
	text = strings.ReplaceAll(text, "localhost:8080", at)
	for _, other := range []string{"localhost:9000", "localhost:9001"} { // what a page serves itself
		text = strings.ReplaceAll(text, other, free(t))
	}
	env := []string{"PUNCTUAL_URL=http://" + at, "PUNCTUAL_TOKEN=", "PUNCTUAL_CONFIG=" + home + "/none.yaml",
		"NO_PROXY=127.0.0.1,localhost", "GOFLAGS=" + goFlags, "GOWORK=",
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")}
	if strings.Contains(text, ofTeam) {
		env = append(env, pushed(t)...)
	}
	env = append(env, packages...)
	out, err := shell(t, dir, text, env...)
	for _, m := range differences(wants, out, err) {
		t.Errorf("%s: %s", p.path, m)
	}
}

// registries returns the environment in which npm and pip install for one page, from their caches where they can.
// It is nil where they are not to be asked: a test with -short, or without them, only reads such blocks.
func registries(t *testing.T, home string) []string {
	t.Helper()
	if testing.Short() {
		return nil
	}
	for _, tool := range []string{"node", "npm", "npx", "pip"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is not here", tool)
			}
			return nil
		}
	}
	python := filepath.Join(home, "python")
	if said, err := exec.CommandContext(t.Context(), "python3", "-m", "venv", "--without-pip",
		python).CombinedOutput(); err != nil {
		t.Fatalf("making an environment of Python: %v\n%s", err, said)
	}
	pins, err := filepath.Abs(filepath.Join(root, "integration/emulator/environment/openapi.lock.txt"))
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(python, "bin")
	return []string{"npm_config_prefer_offline=true", "npm_config_audit=false", "npm_config_fund=false",
		"npm_config_update_notifier=false", "npm_config_yes=true", "PIP_PYTHON=" + filepath.Join(bin, "python"),
		"PIP_CONSTRAINT=" + pins, "PIP_QUIET=1",
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")}
}

// ofTeam is where a page's reader keeps this repository.
const ofTeam = "git.example.com/team/"

// pushed pushes this repository's commit to a folder, and makes git take that folder for the reader's host.
func pushed(t *testing.T) (env []string) {
	t.Helper()
	host := t.TempDir() + "/"
	for _, args := range [][]string{
		{"init", "-q", "--bare", "-b", "main", host + "punctual.git"},
		{"-C", root, "push", "-q", host + "punctual.git", "HEAD:refs/heads/main"},
	} {
		if said, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, said)
		}
	}
	return []string{"GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=url." + host + ".insteadOf", "GIT_CONFIG_VALUE_0=https://" + ofTeam,
		"GIT_CONFIG_KEY_1=protocol.file.allow", "GIT_CONFIG_VALUE_1=always"}
}

const mark = "=== answered"

// script is what bash is given of a page: its blocks of commands, with a mark after each line that says what it
// must answer.
func script(all []block) (string, []want) {
	var text strings.Builder
	var wants []want
	for _, b := range all {
		if b.info != runs && b.info != installs {
			continue
		}
		n := b.line
		for line := range strings.Lines(b.body) {
			n++
			text.WriteString(line)
			if _, must, ok := strings.Cut(line, "# →"); ok {
				wants = append(wants, want{n, strings.TrimSpace(must)})
				text.WriteString("echo; echo '" + mark + "'\n")
			}
		}
	}
	return text.String(), wants
}

// differences are what is wrong with what a script has written, and with how it ended.
func differences(wants []want, out string, ended error) (all []string) {
	answers := strings.Split(out, mark)
	for i, a := range answers {
		if refused.MatchString(a) && (i >= len(wants) || !strings.Contains(wants[i].text, `"code"`)) {
			all = append(all, fmt.Sprintf("after %d answers something was refused:\n%s", i, a))
		}
		if i < len(wants) && i < len(answers)-1 && !wants[i].in(a) {
			all = append(all, fmt.Sprintf("line %d: the answer lacks %s:\n%s", wants[i].line, wants[i].text, a))
		}
	}
	if ended != nil || len(answers)-1 != len(wants) {
		all = append(all, fmt.Sprintf("it ended with %v after %d of %d answers\n%s", ended, len(answers)-1, len(wants),
			answers[len(answers)-1]))
	}
	return all
}

func TestErrors_AreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, wrong string }{
		{"echo one   # → one\necho two\n", ""},
		{"echo one\necho two   # → one … two\n", ""},
		{"echo one   # → two\n", "line 8: the answer lacks two"},
		{"echo one\nfalse\necho two   # → two\n", "exit status 1 after 0 of 1 answers"},
		{"echo one   # → one\nfalse\n", "exit status 1 after 1 of 1 answers"},
		{"echo \"$nothing\"\n", "unbound variable"},
		{"if\n", "syntax error"},
		{`echo '{"status":404,"code":"not_found"}'` + "\n", "something was refused"},
		{`echo '{"status":404,"code":"not_found"}'   # → "status":404` + "\n", "something was refused"},
		{`echo '{"status":404,"code":"not_found"}'   # → "code":"not_found"` + "\n", ""},
		{"exit 0\necho one   # → one\n", "<nil> after 0 of 1 answers"},
	} {
		text, wants := script([]block{{3, "yaml", "# x.yaml\n"}, {7, runs, c.body}})
		out, err := shell(t, t.TempDir(), text)
		got := strings.Join(differences(wants, out, err), "\n")
		if c.wrong == "" && got != "" || !strings.Contains(got, c.wrong) {
			t.Errorf("%q: %q, want %q", c.body, got, c.wrong)
		}
	}
}

// refused is a problem, of which curl makes no failure. A line that wants one names its code.
var refused = regexp.MustCompile(`"status":[45]\d\d\b`)

// want is what a line must answer.
type want struct {
	line int // in the page
	text string
}

// in says whether the answer holds the text, with anything in place of each ….
func (w want) in(answer string) bool {
	for part := range strings.SplitSeq(w.text, "…") {
		_, after, ok := strings.Cut(answer, strings.TrimSpace(part))
		if !ok {
			return false
		}
		answer = after
	}
	return true
}

func TestWant_TakesDotsForAnything(t *testing.T) {
	t.Parallel()
	for text, holds := range map[string]bool{"a": true, "a … c": true, "c … a": false, "d": false, "a…b…c": true} {
		if got := (want{1, text}).in("xa b c"); got != holds {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// shell runs a script in bash and ends what it leaves behind, also when the test is killed.
func shell(t *testing.T, dir, script string, env ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd, end, err := environment.Tied("bash", "-eu", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(end)
	defer end()
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	// A file, not a pipe: what the page has put in the background holds it open, and is not waited for.
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer context.AfterFunc(ctx, end)()
	err = errors.Join(cmd.Wait(), ctx.Err())
	end() // what is in the background
	said, unread := os.ReadFile(out.Name())
	return string(said), errors.Join(err, unread)
}

var served = regexp.MustCompile(`http://(127\.0\.0\.1:\d+)`)

// signingSecret is the example of the published specification of Standard Webhooks, by which pages sign.
const signingSecret = "PUNCTUAL_SECRET_HOOKS=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// serve starts a laptop's server of a page's own, and returns its address.
func serve(t *testing.T, server string) string {
	t.Helper()
	cmd, end, err := environment.Tied(server, "-addr", "127.0.0.1:0", "-drain", "1s")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Dir, cmd.Env = t.TempDir(), append(cmd.Environ(), signingSecret)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end()
		_ = cmd.Wait() // killed
	})
	greeting := bufio.NewReader(out)
	for {
		line, err := greeting.ReadString('\n')
		if m := served.FindStringSubmatch(line); m != nil {
			go io.Copy(io.Discard, greeting)
			return m[1]
		}
		if err != nil {
			t.Fatalf("the server does not say where it is: %v", err)
		}
	}
}

// free returns an address of this machine at which nothing serves.
func free(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// copied copies the repository, as a fresh clone would be.
func copied(t *testing.T, to string) {
	t.Helper()
	err := walk(func(path string) error {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return err
		}
		write(t, filepath.Join(to, path), text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// write writes a file, and the folders that it lies in.
func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

package openapi_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"punctual/integration/emulator/environment"
)

// within is several times what the longest test takes on a busy machine of two cores.
const within = 10 * time.Minute

// goGenerator makes clients in Go. It runs from the module cache, so that its dependencies are not ours.
const goGenerator = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"

//proof:of F29
func TestAPI_KeepsItsOpenAPIDocument(t *testing.T) {
	t.Parallel()
	python := tools(t)
	url := serve(t)
	here := folder(t)
	said, err := run(t, filepath.Join(filepath.Dir(python), "schemathesis"),
		"--config-file", filepath.Join(here, "schemathesis.toml"), "run", url+"/v1/openapi.json")
	if err != nil {
		t.Fatalf("the API does not keep its document: %v\n%s", err, said)
	}
	if !strings.Contains(said, "No issues found") {
		t.Errorf("schemathesis does not say that it found nothing:\n%s", said)
	}
	_, summary, _ := strings.Cut(said, "Test cases:")
	t.Log(strings.TrimSpace(summary))
}

//proof:of F29
func TestDocument_MakesAClientInPython(t *testing.T) {
	t.Parallel()
	python := tools(t)
	url := serve(t)
	client := filepath.Join(t.TempDir(), "client")
	said, err := run(t, filepath.Join(filepath.Dir(python), "openapi-python-client"),
		"generate", "--url", url+"/v1/openapi.json", "--output-path", client, "--fail-on-warning")
	if err != nil {
		t.Fatalf("generating a client in Python: %v\n%s", err, said)
	}
	if said, err := run(t, python, filepath.Join(folder(t), "client.py"), client, url); err != nil {
		t.Fatalf("working by the generated client: %v\n%s", err, said)
	}
}

// The folder is a package of Node.js: client.ts with the types of the document, and what it imports.
//
//proof:of F29
func TestDocument_MakesAClientInTypeScript(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		environment.SkipOrFail(t, "Node.js is needed; nothing but Go is with -short")
	}
	modules, err := environment.InstallNode(t.Context(), ".")
	if err != nil {
		environment.SkipOrFail(t, "the tools cannot be installed, which needs Node.js 20, npm and its registry once: "+
			err.Error())
	}
	url := serve(t)
	client := t.TempDir()
	if err := os.Symlink(modules, filepath.Join(client, "node_modules")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"client.ts", "package.json"} {
		write(t, filepath.Join(client, name), read(t, name))
	}
	_, shown, _ := strings.Cut(read(t, "../../shared/docs/clients.md"), "```ts\n")
	shown, _, _ = strings.Cut(shown, "```\n")
	write(t, filepath.Join(client, "shown.ts"), strings.ReplaceAll(shown, "http://localhost:8080", url))
	node := func(tool string, args ...string) (string, error) {
		return run(t, "node", append([]string{filepath.Join(modules, tool)}, args...)...)
	}
	said, err := node("openapi-typescript/bin/cli.js", url+"/v1/openapi.json", "-o", filepath.Join(client, "api.d.ts"))
	if err != nil {
		t.Fatalf("generating types of TypeScript: %v\n%s", err, said)
	}
	if lines := strings.Split(strings.TrimSpace(said), "\n"); len(lines) != 2 {
		t.Errorf("the generator says more than its version and what it has made:\n%s", said)
	}
	if said, err := node("typescript/bin/tsc", "--strict", "--module", "nodenext", "--target", "es2022",
		"--typeRoots", filepath.Join(modules, "@types"), filepath.Join(client, "client.ts"),
		filepath.Join(client, "shown.ts")); err != nil {
		t.Fatalf("compiling against the types: %v\n%s", err, said)
	}
	if said, err := run(t, "node", filepath.Join(client, "client.js"), url); err != nil {
		t.Fatalf("working by the types: %v\n%s", err, said)
	}
	if said, err := run(t, "node", filepath.Join(client, "shown.js")); err != nil || said != "SUCCEEDED\n" {
		t.Fatalf("what clients.md shows: %v\n%s", err, said)
	}
}

//proof:of F29
func TestDocument_MakesAClientInGo(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		environment.SkipOrFail(t, "the generator may have to be downloaded; nothing is with -short")
	}
	if said, err := run(t, "go", "run", goGenerator, "-version"); err != nil {
		environment.SkipOrFail(t, "oapi-codegen cannot be run: "+said)
	}
	answer, err := http.Get(serve(t) + "/v1/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	document := filepath.Join(t.TempDir(), "openapi.json")
	write(t, document, string(text))
	code := filepath.Join(filepath.Dir(document), "client.go")
	said, err := run(t, "go", "run", goGenerator, "-generate", "types,client", "-package", "client", "-o", code,
		document)
	if err != nil || said != "" {
		t.Fatalf("generating a client in Go: %v\n%s", err, said)
	}
	made := read(t, code)
	for _, want := range []string{
		"func (c *ClientWithResponses) CreateJobWithResponse(", "type JobView struct",
		"func (t *CalendarRequest) FromCronCalendarRequest(",
	} {
		if !strings.Contains(made, want) {
			t.Errorf("the client lacks %s", want)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tools installs the Python tools, and returns the interpreter with which they are installed.
func tools(t *testing.T) (python string) {
	t.Helper()
	if testing.Short() {
		environment.SkipOrFail(t, "Python is needed; nothing but Go is with -short")
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	python, err := environment.InstallPinned(ctx, environment.OpenAPI)
	if err != nil {
		environment.SkipOrFail(t, "the tools cannot be installed, which needs Python 3.10 and PyPI once: "+err.Error())
	}
	return python
}

// folder is this one.
func folder(t *testing.T) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return here
}

// run runs a command in a folder of its own, and returns what it said.
func run(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PYTHONPATH="+folder(t), "PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=localhost,127.0.0.1")
	if filepath.IsAbs(name) { // tools find each other by PATH
		cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(name)+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	said, err := cmd.CombinedOutput()
	return string(said), err
}

// serve runs the laptop's server on a free port until the test ends, and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "local")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "punctual/workers/cmd/local")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the laptop's server: %v\n%s", err, said)
	}
	server, end, err := environment.Tied(binary, "-addr", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end()
		_ = server.Wait() // it was killed: what it holds goes with it
	})
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), "http://"); ok {
			addr, _, _ := strings.Cut(rest, " ")
			return "http://" + addr
		}
	}
	t.Fatal("the laptop's server ended without saying where it serves")
	return ""
}

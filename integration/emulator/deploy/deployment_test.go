package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"punctual/integration/emulator/environment"
	"punctual/integration/story"
)

// prefix is that of everything deployed here; in an account of its own it need not be unique.
const prefix = "punctual"

// deployment is Punctual as deployed to the emulator.
type deployment struct {
	aws     *environment.Emulator
	issuer  *issuer
	folder  string            // holds bootstraps, binaries and the CDK's output
	outputs map[string]string // of all stacks
	took    []string          // the time of each step, for the log
	callers []string          // the variables of make that say who may call the API
	words   []string          // settings that belong to it from now on
	stream  string            // of the restored jobs table
	before  string            // the version of a function to go back to
}

// root is the root of the repository.
const root = "../../.."

var shared = sync.OnceValues(deployed)

// setup returns the deployment of this test process.
func setup(t *testing.T) *deployment {
	t.Helper()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			environment.SkipOrFail(t, tool+" is not here; CDK runs on Node.js")
		}
	}
	emulator = checkedEmulator(t) // skips the test where there is none
	d, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// emulator is where the tests of this process deploy to.
var emulator *environment.Emulator

// folder is removed when the process ends.
var folder string

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "punctual-deploy-"); err != nil {
		panic(err)
	}
	code := m.Run()
	if emulator != nil {
		emulator.Stop()
	}
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// deployed builds everything, bootstraps the emulator's account and deploys.
func deployed() (*deployment, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	iss, err := newIssuer()
	if err != nil {
		return nil, err
	}
	d := &deployment{aws: emulator, issuer: iss, folder: folder, outputs: map[string]string{},
		words:   []string{"search=yes"},
		callers: []string{"ISSUER=" + iss.url, "AUDIENCE=" + audience}}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"build", d.build}, {"install the CDK command", d.install},
		{"bootstrap", d.bootstrap}, {"deploy", d.first},
	} {
		began := time.Now()
		if err := step.do(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
		d.took = append(d.took, fmt.Sprintf("%s %.1fs", step.name, time.Since(began).Seconds()))
	}
	return d, nil
}

// run runs a command in the root of the repository; its output is in the error.
func (d *deployment) run(ctx context.Context, name string, args ...string) (string, error) {
	return d.runIn(ctx, root, name, args...)
}

func (d *deployment) runIn(ctx context.Context, dir, name string, args ...string) (string, error) {
	return execute(ctx, dir, d.aws.Environ(), name, args...)
}

func execute(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	cmd.Env = append(cmd.Env, "CDK_DISABLE_LEGACY_EXPORT_WARNING=1", "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=1",
		"NO_COLOR=1")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err,
			out.String())
	}
	return out.String(), nil
}

// build builds a bootstrap of each function and the worker for this machine. It omits
// the flags that make deployed builds reproducible: with them, nothing that other tests have
// compiled could be reused.
func (d *deployment) build(ctx context.Context) error {
	functions, err := filepath.Glob(filepath.Join(root, "functions/*/lambda"))
	if err != nil || len(functions) == 0 {
		return errors.Join(err, fmt.Errorf("found %d doors", len(functions)))
	}
	for _, function := range functions {
		name := filepath.Base(filepath.Dir(function))
		if err := d.buildFunction(ctx, name, d.functions()); err != nil {
			return err
		}
	}
	_, err = d.run(ctx, "go", "build", "-ldflags=-s -w", "-o", filepath.Join(d.folder, "worker"),
		"./workers/cmd/worker")
	return err
}

func (d *deployment) functions() string { return filepath.Join(d.folder, "functions") }

func (d *deployment) buildFunction(ctx context.Context, name, into string, flags ...string) error {
	args := append([]string{"build", "-tags", "lambda.norpc", "-ldflags=-s -w", "-o",
		filepath.Join(into, name, "bootstrap")}, flags...)
	_, err := d.run(ctx, "go", append(args, "./functions/"+name+"/lambda")...)
	return err
}

// cdkCommand is where npm puts the CDK command that infra/package-lock.json pins.
const cdkCommand = "infra/node_modules/.bin/cdk"

func (d *deployment) install(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(root, cdkCommand)); err == nil {
		return nil
	}
	// Without the emulator's environment, which trusts no certificates but the emulator's.
	_, err := execute(ctx, root, nil, "npm", "ci", "--prefix", "infra")
	return err
}

// bootstrap prepares the account.
func (d *deployment) bootstrap(ctx context.Context) error {
	_, err := d.typed(ctx, bootstraps, d.functions())
	return err
}

// first deploys. What the line says in SETTINGS belongs to the words of this deployment.
func (d *deployment) first(ctx context.Context) error {
	_, err := d.deploy(ctx, deploys, d.functions())
	if err != nil {
		return err
	}
	typed, err := deploys.find()
	if err != nil {
		return err
	}
	_, words, _ := strings.Cut(typed, "SETTINGS='")
	words, _, _ = strings.Cut(words, "'")
	d.words = append(strings.Fields(words), d.words...)
	return nil
}

// host is the Host of requests to the deployed API: what is https://<id>.execute-api.<region>.amazonaws.com/v1/ for
// AWS is served at <id>.execute-api.localhost.
func (d *deployment) host(t *testing.T) string {
	t.Helper()
	id, _, ok := strings.Cut(strings.TrimPrefix(d.outputs["ApiUrl"], "https://"), ".")
	if !ok {
		t.Fatalf("the stacks' outputs name no API: %v", d.outputs)
	}
	return id + ".execute-api.localhost:" + d.aws.URL[strings.LastIndex(d.aws.URL, ":")+1:]
}

// api returns the deployed API, with a token of a tenant; "" sends none.
func (d *deployment) api(t *testing.T, tenant string, scopes ...string) *story.API {
	t.Helper()
	token := ""
	if tenant != "" {
		token = d.issuer.token(t, tenant, scopes...)
	}
	return d.bearing(t, token)
}

// bearing returns the deployed API, with a token; "" sends none.
func (d *deployment) bearing(t *testing.T, token string) *story.API {
	t.Helper()
	return story.Remote(t, d.aws.Client(40*time.Second), d.aws.URL, d.host(t), token)
}

// work starts the real worker for a pool; it is drained when the test ends. It returns the file with
// what the worker logs.
func (d *deployment) work(t *testing.T, pool string) string {
	t.Helper()
	environ := append(os.Environ(), d.asWorker(t, pool)...)
	cmd, log := environment.Logged(t, "worker", filepath.Join(d.folder, "worker"), append(environ,
		"PUNCTUAL_PREFIX="+prefix, "PUNCTUAL_BUCKET="+d.outputs["PayloadBucket"], "PUNCTUAL_POOL="+pool,
		"PUNCTUAL_DRAIN_SECONDS=5")...)
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the worker ended badly: %v", err)
		}
	})
	return log
}

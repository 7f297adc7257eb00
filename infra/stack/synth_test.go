package stack

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"

	"punctual/infra/target"
)

// root is the repository's.
const root = "../.."

// temp is a folder for the templates and the placeholders of built files. It is deleted at the end.
var temp string

func TestMain(m *testing.M) {
	if _, err := exec.LookPath("node"); err != nil {
		fmt.Println("skipped: CDK runs on Node.js, and node is not here")
		if must, _ := strconv.ParseBool(os.Getenv("CI")); must {
			os.Exit(1)
		}
		return
	}
	_ = os.Setenv("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "1")
	os.Exit(func() int {
		var err error
		if temp, err = os.MkdirTemp("", "punctual-infra-"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(temp)
		defer jsii.Close()
		return m.Run()
	}())
}

// object is a JSON object.
type object = map[string]any

// template is the template of one stack.
type template struct {
	name      string // data, flow, watch or fleet
	size      int    // bytes
	resources map[string]object
	outputs   object
}

// synthesized is a deployment as templates.
type synthesized struct {
	settings  target.Settings
	stacks    Stacks
	out       string     // folder of the assembly
	templates []template // in the order in which they are built
}

// prod, dev, emulator and other are synthesized once for all tests: each takes seconds.
var (
	prod     = sync.OnceValue(func() *synthesized { return synth("prod", "prod") })
	dev      = sync.OnceValue(func() *synthesized { return synth("dev", "dev") })
	emulator = sync.OnceValue(func() *synthesized { return synth("emulator", "emulator") })
	// other is a second deployment, whose owner has chosen what there is to choose.
	other = sync.OnceValue(func() *synthesized {
		return synth("emulator", "other", "prefix", "other", "schedule_quota", "250")
	})
)

// searching keeps an index of jobs.
var searching = sync.OnceValue(func() *synthesized { return synth("prod", "searching", "search", "yes") })

// ownTokens makes its tokens itself.
var ownTokens = sync.OnceValue(func() *synthesized {
	return synth("dev", "own-tokens", "issuer", "", "audience", "", "auth", "cognito", "tenants", "acme,globex")
})

// signed knows its callers by their signatures.
var signed = sync.OnceValue(func() *synthesized {
	return synth("dev", "signed", "issuer", "", "audience", "", "auth", "iam")
})

// held waits for an operator, pays for capacity, copies its data to another account, has a restored jobs table, a web
// ACL, and a client of its issuer for people.
var held = sync.OnceValue(func() *synthesized {
	return synth("prod", "held", "hold", "yes", "jobs_stream", restored, "zone_layer", zoneLayer, "waf", "yes",
		"capacity", "provisioned", "backup_account", "210987654321",
		"console_client", "people", "console_origins", "https://in.example.com",
		"console_scope", "openid,punctual:read")
})

const restored = "arn:aws:dynamodb:us-east-1:123456789012:table/punctual-jobs/stream/2026-11-28T16:00:00.000"

const zoneLayer = "arn:aws:lambda:us-east-1:123456789012:layer:punctual-zoneinfo:3"

// one synthesis at a time: the process of CDK answers one caller.
var one sync.Mutex

// synth builds a target with placeholders for what is built, and checks it by cdk-nag on the way.
func synth(name, into string, more ...string) *synthesized {
	one.Lock()
	defer one.Unlock()
	s, err := target.Load(said(append(more, "target", name, "issuer", "https://id.example.com", "audience",
		"punctual")...))
	if err != nil {
		panic(err)
	}
	s.Origin = placeholders()
	out := filepath.Join(temp, into)
	app := awscdk.NewApp(&awscdk.AppProps{Context: flags(), Outdir: jsii.String(out),
		AnalyticsReporting: jsii.Bool(false)})
	stacks, err := New(app, s)
	if err != nil {
		panic(err)
	}
	if name == "prod" {
		awscdk.Aspects_Of(app).Add(cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{Reports: jsii.Bool(false)}), nil)
	}
	func() {
		// Findings end the synthesis after the templates are written; a test of its own checks them.
		defer func() {
			if said := recover(); said != nil && !strings.Contains(fmt.Sprint(said), "validation-report.json") {
				panic(said)
			}
		}()
		app.Synth(nil)
	}()
	d := &synthesized{settings: s, stacks: stacks, out: out}
	for _, stack := range []string{"data", "flow", "watch", "fleet"} {
		text, err := os.ReadFile(filepath.Join(out, s.Prefix+"-"+stack+".template.json"))
		if os.IsNotExist(err) && stack == "fleet" {
			continue
		}
		if err != nil {
			panic(err)
		}
		var t struct {
			Resources map[string]object
			Outputs   object
		}
		if err := json.Unmarshal(text, &t); err != nil {
			panic(err)
		}
		d.templates = append(d.templates, template{stack, len(text), t.Resources, t.Outputs})
	}
	return d
}

func said(pairs ...string) func(string) string {
	return func(key string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == key {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// flags are those of cdk.json: without them a test would see other templates than a deploy.
func flags() *map[string]any {
	text, err := os.ReadFile(filepath.Join(root, "cdk.json"))
	if err != nil {
		panic(err)
	}
	var c struct{ Context map[string]any }
	if err := json.Unmarshal(text, &c); err != nil {
		panic(err)
	}
	return &c.Context
}

// placeholders are files instead of the built ones: templates do not depend on their contents.
var placeholders = sync.OnceValue(func() target.Sources {
	put := func(parts ...string) string {
		at := filepath.Join(append([]string{temp, "built"}, parts...)...)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			panic(err)
		}
		if err := os.WriteFile(at, []byte(at), 0o755); err != nil {
			panic(err)
		}
		return filepath.Dir(at)
	}
	for _, p := range Programs() {
		put("functions", p, "bootstrap")
	}
	put("worker", "worker")
	put("layer.zip")
	return target.Sources{
		Functions: filepath.Join(temp, "built", "functions"), Worker: put("worker", "Dockerfile"),
		Kubectl: filepath.Join(temp, "built", "layer.zip"),
	}
})

// template returns one of the stacks.
func (d *synthesized) template(name string) template {
	i := slices.IndexFunc(d.templates, func(t template) bool { return t.name == name })
	if i < 0 {
		panic("no stack " + name)
	}
	return d.templates[i]
}

// each calls do for all resources of a type ("" for all), in the order of their ids.
func (d *synthesized) each(kind string, do func(t template, id string, r object)) {
	for _, t := range d.templates {
		for _, id := range sorted(t.resources) {
			if r := t.resources[id]; kind == "" || r["Type"] == kind {
				do(t, id, r)
			}
		}
	}
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// at walks into nested objects and lists by a path such as "Properties.Code.0"; nil if there is
// nothing.
func at(v any, path string) any {
	for _, step := range strings.Split(path, ".") {
		switch x := v.(type) {
		case object:
			v = x[step]
		case []any:
			var i int
			if _, err := fmt.Sscan(step, &i); err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// list is v as a list: a single value is a list of one.
func list(v any) []any {
	switch x := v.(type) {
	case nil:
		return nil
	case []any:
		return x
	}
	return []any{v}
}

func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

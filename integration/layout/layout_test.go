package layout

import (
	"go/ast"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const root = "../.."

func TestLayout_HoldsInThisRepository(t *testing.T) {
	t.Parallel()
	files, err := read(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 5 {
		t.Fatalf("only %d Go files found at %s: this test reads the wrong folder", len(files), root)
	}
	for _, breach := range check(files) {
		t.Error(breach)
	}
}

func TestLayout_HasOnlyListedNamesAtTheTop(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !ignored(e.Name()) {
			names = append(names, e.Name())
		}
	}
	for _, breach := range checkTop(names) {
		t.Error(breach)
	}
}

// ignored reports whether git ignores name at the root, such as what a build left there. Without
// git nothing is ignored.
func ignored(name string) bool {
	return len(checkTop([]string{name})) > 0 && exec.Command("git", "-C", root, "check-ignore", "-q", name).Run() == nil
}

// A meter without the deployment's namespace writes where no alarm looks, and nothing fails.
//
//proof:of M1
func TestMains_NameTheNamespaceOfEachMeter(t *testing.T) {
	t.Parallel()
	files, err := read(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	makers := 0
	for _, f := range files {
		if !inAny(mains, f.dir) && f.dir != "workers/cmd/worker" || f.test() {
			continue
		}
		named := map[ast.Node]bool{} // uses of the type that make no meter, or name its namespace
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StarExpr:
				named[n.X] = true
			case *ast.CompositeLit:
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok {
						if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Namespace" {
							named[n.Type] = true
							makers++
						}
					}
				}
			case *ast.SelectorExpr:
				if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "telemetry" && n.Sel.Name == "Meter" {
					if !named[n] {
						t.Errorf("%s makes a meter without the deployment's namespace", f.path())
					}
				}
			}
			return true
		})
	}
	if want := 3; makers < want { // of most functions, of the authorizer and of the worker
		t.Errorf("%d mains make a meter, want %d: this test reads the wrong folder", makers, want)
	}
}

// encodesJSON lists the files that use encoding/json to encode, and why they may. What is stored
// or sent and can hold users' texts goes through shared/text: encoding/json escapes markup, which
// makes it six times as long, and keeps characters that no queue takes.
var encodesJSON = map[string]string{
	"shared/text/text.go":                     "it encodes for all others",
	"shared/telemetry/meter.go":               "metrics hold names and numbers",
	"shared/aws/queue/create.go":              "a redrive policy holds a queue's ARN",
	"shared/aws/table/query.go":               "a cursor is base64 of it",
	"shared/memory/query.go":                  "a cursor is base64 of it",
	"shared/client/call.go":                   "it sends to the API only; markup is not escaped",
	"shared/client/rest/rest.gen.go":          "it is generated, and sends to the API",
	"functions/forecast/learnt.go":            "a forecast holds pools' names and numbers",
	"functions/api/rest/router.go":            "answers go to web clients, not queues; their markup is not escaped",
	"workers/worker/workertest/workertest.go": "a payload of a user's test stays in its process",
	"workers/executor/secret.go":              "it looks for the spelling that others use",
}

// ownMachine lists the programs that print JSON, or keep it in files of the machine on which they are started.
var ownMachine = []string{"workers/cmd/punctual", "shared/calendar/cmd"}

//proof:of F01
func TestJSON_IsEncodedByTextWhenStoredOrSent(t *testing.T) {
	t.Parallel()
	files, err := read(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, f := range files {
		top, _, _ := strings.Cut(f.dir, "/")
		if f.test() || inAny(ownMachine, f.dir) || top != "shared" && top != "functions" && top != "workers" {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := call.X.(*ast.Ident)
			encodes := strings.HasPrefix(call.Sel.Name, "Marshal") || call.Sel.Name == "NewEncoder"
			if ok && pkg.Name == "json" && encodes {
				found[f.path()] = true
			}
			return true
		})
	}
	for file := range found {
		if encodesJSON[file] == "" {
			t.Errorf("%s encodes JSON with encoding/json; what is stored or sent is encoded by shared/text", file)
		}
	}
	for file := range encodesJSON {
		if !found[file] {
			t.Errorf("%s is in encodesJSON and encodes nothing", file)
		}
	}
}

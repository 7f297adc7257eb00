package layout

import (
	"path"
	"strings"
	"testing"
	"testing/fstest"
)

func TestCheck_FindsEachBreach(t *testing.T) {
	t.Parallel()
	introduced := func(dir string) (string, *fstest.MapFile) {
		return dir + "/doc.go", &fstest.MapFile{
			Data: []byte("// Package " + path.Base(dir) + " is for this.\npackage " + path.Base(dir) + "\n"),
		}
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string // a part of the only breach; empty when there must be none
	}{
		"a package without a breach is accepted": {map[string]string{
			"shared/job/a.go": "package job\n\nimport \"time\"\n\n" +
				"func Late(now, due time.Time) bool { return now.After(due) }\n"}, ""},
		"a package has no doc.go": {map[string]string{
			"functions/status/a.go": "package status\n"}, "functions/status has no doc.go"},
		"the package comment is in another file": {map[string]string{
			"functions/status/a.go": "// Package status settles.\npackage status\n"}, "functions/status has no doc.go"},
		"the package comment does not begin with the name": {map[string]string{
			"functions/status/doc.go": "// This settles.\npackage status\n"}, "functions/status has no doc.go"},
		"a program needs no doc.go": {map[string]string{
			"workers/cmd/local/main.go": "package main\n"}, ""},
		"a folder of shared is unknown": {map[string]string{
			"shared/util/doc.go": "// Package util helps.\npackage util\n"},
			"shared/util/doc.go is in no known folder"},
		"a folder of functions is unknown": {map[string]string{
			"functions/reporter/doc.go": "// Package reporter reports.\npackage reporter\n"},
			"functions/reporter/doc.go is in no known folder"},
		"two files use each other": {map[string]string{
			"functions/engine/job/a.go": "package job\n\ntype row int\n\nfunc (r row) end() { r.notify() }\n",
			"functions/engine/job/b.go": "package job\n\nfunc (r row) notify() {}\n"},
			"a.go, b.go use each other in a circle (a.go uses notify of b.go; b.go uses row of a.go)"},
		"three files use each other": {map[string]string{
			"functions/engine/job/a.go": "package job\n\nfunc a() { b() }\n",
			"functions/engine/job/b.go": "package job\n\nfunc b() { _ = c{n: 1} }\n",
			"functions/engine/job/c.go": "package job\n\nimport \"time\"\n\ntype c struct{ n int }\n\n" +
				"func (c) run() { time.AfterFunc(1, func() { a() }) }\n"},
			"a.go, b.go, c.go use each other in a circle"},
		"files use each other in one direction": {map[string]string{
			"functions/engine/job/a.go": "package job\n\nfunc a(b int) { _ = c{n: b} }\n",
			"functions/engine/job/c.go": "package job\n\ntype c struct{ n int }\n\nfunc (x c) a(b int) { x.a(b) }\n"},
			""},
		"files of a stage use each other": {map[string]string{
			"functions/api/a.go": "package api\n\nfunc a() { b() }\n",
			"functions/api/b.go": "package api\n\nfunc b() { a() }\n"}, ""},
		"a call that gets a context is made under a mutex": {map[string]string{
			"functions/api/a.go": locked("b.mu.Lock()\ndefer b.mu.Unlock()\nb.read(ctx)")},
			"calls b.read with a context while b.mu is held"},
		"a call under a mutex is nested": {map[string]string{
			"functions/api/a.go": locked("b.mu.Lock()\nfor {\nswitch {\ncase true:\n" +
				"if b.read(ctx) {\nreturn\n}\n}\n}")},
			"calls b.read with a context while b.mu is held"},
		"a call under a mutex makes its context": {map[string]string{
			"functions/api/a.go": locked("b.mu.RLock()\nb.read(context.Background())\nb.mu.RUnlock()")},
			"calls b.read with a context while b.mu is held"},
		"a function that is called under a mutex makes the call": {map[string]string{
			"functions/api/a.go": locked("b.mu.Lock()\nb.guard(func() { b.read(ctx) })")},
			"calls b.read with a context while b.mu is held"},
		"a call that gets a context is made inside a sync.Once": {map[string]string{
			"functions/api/a.go": locked("_ = sync.OnceValue(func() bool { return b.read(ctx) })")},
			"calls b.read with a context while sync.OnceValue is held"},
		"a call is made after the mutex was given back": {map[string]string{
			"functions/api/a.go": locked("b.mu.Lock()\nif true {\nb.mu.Unlock()\nb.read(ctx)\nreturn\n}\n" +
				"b.mu.Unlock()\nb.read(ctx)\ngo b.read(ctx)")}, ""},
		"a goroutine that begins under a mutex may wait": {map[string]string{
			"functions/api/a.go": locked("b.mu.Lock()\ngo b.read(ctx)\nb.mu.Unlock()")}, ""},
		"a test repeats the name of another package's write": {map[string]string{
			"shared/job/name.go":           "package job\n\nconst WriteAccept = \"row.accept\"\n",
			"functions/api/accept_test.go": "package api\n\nvar awaited = \"row.accept\"\n"},
			`functions/api/accept_test.go repeats "row.accept", the name of a write of shared/job`},
		"a test repeats the text of a write that is made in place": {map[string]string{
			"workers/worker/claim.go":      "package worker\n\nvar probe = item.Write{Name: \"claim.probe\"}\n",
			"functions/api/accept_test.go": "package api\n\nvar awaited = \"claim.probe\"\n"},
			`repeats "claim.probe", the name of a write of workers/worker`},
		"a package's own test repeats the name of a write": {map[string]string{
			"shared/job/name.go":        "package job\n\nconst WriteAccept = \"row.accept\"\n",
			"shared/job/accept_test.go": "package job\n\nvar awaited = \"row.accept\"\n"}, ""},
		"two tests have writes of the same name": {map[string]string{
			"shared/job/a_test.go":    "package job\n\nvar w = item.Write{Name: \"test.put\"}\n",
			"functions/api/a_test.go": "package api\n\nvar w = item.Write{Name: \"test.put\"}\n"}, ""},
		"a method of a port is declared once more": {map[string]string{
			"shared/store/doc.go":  "// Package store stores.\npackage store\n",
			"shared/store/port.go": "package store\n" + interfaceOf("Runs", "k runs.Key"),
			"functions/api/a.go":   "package api\n" + interfaceOf("Store", "key run.Key")},
			"functions/api/a.go declares Run, a method of the port store.Runs"},
		"a method of a port is declared in an interface without a name": {map[string]string{
			"shared/store/doc.go":  "// Package store stores.\npackage store\n",
			"shared/store/port.go": "package store\n" + interfaceOf("Runs", "k runs.Key"),
			"functions/api/a.go":   "package api\n\nfunc show(" + interfaceOf("", "_ run.Key") + ") {}\n"},
			"functions/api/a.go declares Run, a method of the port store.Runs"},
		"two ports declare the same method": {map[string]string{
			"shared/store/doc.go":      "// Package store stores.\npackage store\n",
			"shared/store/port.go":     "package store\n" + interfaceOf("Runs", "k runs.Key"),
			"shared/store/port_run.go": "package store\n" + interfaceOf("RunReader", "k runs.Key")},
			"shared/store/port_run.go declares Run, a method of the port store.Runs"},
		"a method with the name of a port's has other types": {map[string]string{
			"shared/store/doc.go":  "// Package store stores.\npackage store\n",
			"shared/store/port.go": "package store\n" + interfaceOf("Runs", "k runs.Key"),
			"functions/api/a.go":   "package api\n" + interfaceOf("Runs", "k run.Key, name string")}, ""},
		"a top-level folder is unknown": {map[string]string{
			"cmd/doc.go": "// Package cmd runs.\npackage cmd\n"}, "cmd/doc.go is in no known folder"},
		"a verb of the engine is known": {map[string]string{
			"functions/engine/decide/doc.go": "// Package decide decides.\npackage decide\n"}, ""},
		"folders that the go command ignores are ignored": {map[string]string{
			"infra/testdata/a.go": "package anything\n", ".ci/tools/a.go": "package anything\n",
			"node_modules/x/a.go": "package x\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := fstest.MapFS{}
			for _, dir := range []string{"shared/job", "functions/api", "functions/engine/job", "workers/worker"} {
				at, doc := introduced(dir)
				repo[at] = doc
			}
			for at, text := range c.files {
				repo[at] = &fstest.MapFile{Data: []byte(text)}
			}
			files, err := read(repo)
			if err != nil {
				t.Fatal(err)
			}
			got := check(files)
			if c.want == "" && len(got) != 0 {
				t.Errorf("breaches found: %q", got)
			}
			if c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
				t.Errorf("got %q; want one breach that says %q", got, c.want)
			}
		})
	}
}

func TestCheckTop_FindsUnlistedNames(t *testing.T) {
	t.Parallel()
	if got := checkTop([]string{"shared", "go.mod", ".github", "LICENSE"}); len(got) != 0 {
		t.Errorf("a good top level breaks: %q", got)
	}
	got := checkTop([]string{"shared", "pkg"})
	if len(got) != 1 || !strings.HasPrefix(got[0], "pkg is at the top level") {
		t.Errorf("got %q; want a breach that names pkg", got)
	}
}

// locked returns a file with a method that has a context and a mutex.
func locked(body string) string {
	return "package api\n\nfunc (b *book) all(ctx context.Context) {\n" + body + "\n}\n"
}

// interfaceOf returns an interface that declares a method Run with these parameters; "" for one without a name.
func interfaceOf(name, params string) string {
	open := "\ntype " + name + " interface {\n"
	if name == "" {
		open = "x interface {\n"
	}
	return open + "\tRun(ctx context.Context, " + params + ") (run.Run, error)\n}"
}

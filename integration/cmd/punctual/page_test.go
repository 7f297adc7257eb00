package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// page is the document whose commands are run.
const page = "../../../shared/docs/cli.md"

// blocks are the contents of a page's fenced blocks of a language, in order.
func blocks(text, language string) (all []string) {
	for part := range strings.SplitSeq(text, "\n```"+language+"\n") {
		body, _, _ := strings.Cut(part, "\n```\n")
		all = append(all, body+"\n")
	}
	return all[1:]
}

func TestPage_ShowsCommandsThatWork(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "punctual"), ".")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the command line: %v\n%s", err, said)
	}
	files := blocks(string(text), "yaml")
	for _, body := range files {
		title, _, _ := strings.Cut(body, "\n")
		name := strings.TrimPrefix(title, "# ")
		if name == title || filepath.Base(name) != name {
			t.Fatalf("a block of YAML does not begin with the name of its file: %s", title)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commands := blocks(string(text), "sh")
	if len(files) == 0 || len(commands) == 0 {
		t.Fatalf("%d files, %d blocks of commands", len(files), len(commands))
	}
	shell := exec.CommandContext(t.Context(), "sh", "-eux", "-c", strings.Join(commands, ""))
	shell.Dir = dir
	// A server of its own: the page takes the newest dead letter for its own.
	shell.Env = append(os.Environ(), "PUNCTUAL_URL="+serving(), "PUNCTUAL_TOKEN=", "NO_PROXY=127.0.0.1",
		"PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	said, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if n := strings.Count(string(said), "it ended with 10"); n != 2*2 { // as typed, and as echoed
		t.Logf("%s", said)
		t.Errorf("the page's failures are seen %d times", n)
	}
	picture, err := os.ReadFile(filepath.Join(dir, "run.svg"))
	if err != nil || !strings.Contains(string(picture), "<svg") {
		t.Errorf("%.80s %v", picture, err)
	}
}

func TestPage_NamesEveryVerb(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	help := good(t, "--help")
	_, list, _ := strings.Cut(help, "Commands:\n")
	verbs := 0
	for line := range strings.SplitSeq(list, "\n") {
		verb, _, found := strings.Cut(strings.TrimPrefix(line, "  "), "  ")
		if !found || !strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "   ") {
			continue
		}
		verbs++
		words := strings.Fields(verb)
		at := len(words) // the verb itself, without its arguments
		for i, w := range words {
			if strings.ContainsAny(w, "<[") {
				at = min(at, i)
			}
		}
		if verb = strings.Join(words[:at], " "); !strings.Contains(string(text), verb) {
			t.Errorf("%s is not in %s", verb, page)
		}
	}
	if verbs < 20 {
		t.Errorf("%d verbs in %s", verbs, help)
	}
}

package docs

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// root is the repository.
const root = "../.."

// block is a fenced block of a page.
type block struct {
	line int    // of its opening fence, from 1
	info string // what follows the fence's marks
	body string
}

// The info strings of blocks that commands are in.
const (
	runs     = "sh"
	installs = "sh net"
	serves   = "sh serve"
	account  = "sh aws"
)

// excerpt is the info string of a block that repeats parts of a file of the repository, which its first line names.
const excerpt = "go excerpt"

// shown are the languages of blocks that are looked at and nothing else.
var shown = map[string]bool{"": true, "text": true, "mermaid": true, "json": true, "js": true}

var fence = regexp.MustCompile("^```(.*)$")

// blocks returns the fenced blocks of a page, in order.
func blocks(text string) ([]block, error) {
	var all []block
	open := false
	n := 0
	for line := range strings.Lines(text) {
		n++
		m := fence.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		switch {
		case m == nil && open:
			all[len(all)-1].body += line
		case m == nil:
		case open && m[1] != "":
			return nil, fmt.Errorf("line %d: a block begins within one", n)
		case open:
			open = false
		default:
			open = true
			all = append(all, block{line: n, info: strings.TrimSpace(m[1])})
		}
	}
	if open {
		return nil, fmt.Errorf("line %d: the block does not end", all[len(all)-1].line)
	}
	return all, nil
}

var title = regexp.MustCompile(`^(?:#|//) ([\w.-]+(?:/[\w.-]+)*)\n`)

// file returns the name of the file that a block is; "" says that it has none.
func (b block) file() string {
	if m := title.FindStringSubmatch(b.body); m != nil {
		return m[1]
	}
	return ""
}

// repeats returns an error where the file that an excerpt names lacks one of its parts, between which "// …" is.
func (b block) repeats(repository fs.FS) error {
	whole, err := fs.ReadFile(repository, b.file())
	if err != nil {
		return fmt.Errorf("the excerpt is of no file: %w", err)
	}
	_, text, _ := strings.Cut(b.body, "\n")
	for part := range strings.SplitSeq(text, "// …\n") {
		if !strings.Contains(string(whole), "\n"+part) {
			return fmt.Errorf("%s does not contain\n%s", b.file(), part)
		}
	}
	return nil
}

// page is a document that is run.
type page struct {
	path   string // from the root
	blocks []block
	files  map[string]string
	diffs  string // what it changes in files that are there
}

// read returns the page that is there, and what is wrong with it.
func read(at string) (page, error) {
	text, err := os.ReadFile(filepath.Join(root, at))
	if err != nil {
		return page{}, err
	}
	p := page{path: at, files: map[string]string{}}
	if p.blocks, err = blocks(string(text)); err != nil {
		return p, err
	}
	script := ""
	for _, b := range p.blocks {
		if b.info == runs || b.info == installs {
			script += b.body
		}
	}
	for _, b := range p.blocks {
		switch name := b.file(); {
		case b.info == runs, b.info == installs, b.info == serves, b.info == account, shown[b.info]:
			if b.info == "json" && !json.Valid([]byte(b.body)) {
				return p, fmt.Errorf("line %d: this is not JSON", b.line)
			}
		case b.info == excerpt:
			if err := b.repeats(os.DirFS(root)); err != nil {
				return p, fmt.Errorf("line %d: %w", b.line, err)
			}
		case b.info == "diff":
			p.diffs += b.body
		case name == "":
			return p, fmt.Errorf("line %d: a block of %s does not begin with the name of its file", b.line, b.info)
		case strings.Contains(p.files[name], b.body):
			return p, fmt.Errorf("line %d: %s is there twice", b.line, name)
		case !strings.HasPrefix(name, "workers/") && !names(script, name):
			return p, fmt.Errorf("line %d: no command names %s, so nothing runs it", b.line, name)
		default:
			p.files[name] = b.body
		}
	}
	return p, nil
}

// names says whether a script names a file, or its folder.
func names(script, file string) bool {
	dir := path.Dir(file)
	return strings.Contains(script, path.Base(file)) || dir != "." && strings.Contains(script, "./"+dir)
}

// inCopy says whether the page changes files of the repository.
func (p page) inCopy() bool {
	for name := range p.files {
		if strings.HasPrefix(name, "workers/") {
			return true
		}
	}
	return p.diffs != ""
}

// has says whether the page has a block of that kind.
func (p page) has(info string) bool {
	return slices.ContainsFunc(p.blocks, func(b block) bool { return b.info == info })
}

// documents lists the pages whose commands run: the README, and all of shared/docs.
func documents(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md"}
	for _, path := range markdown(t) {
		if strings.HasPrefix(path, "shared/docs/") {
			all = append(all, path)
		}
	}
	if len(all) < 3 {
		t.Fatalf("only %v are there: this test reads the wrong folder", all)
	}
	return all
}

// skipped are folders that hold nothing of ours.
var skipped = map[string]bool{".git": true, "node_modules": true, "bin": true, "build": true, "cdk.out": true,
	"dist": true, ".venv": true, "__pycache__": true}

// walk calls see for each file of the repository, with its path from the root.
func walk(see func(path string) error) error {
	return fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skipped[d.Name()] && (d.Name() != "build" || path == "build"):
			return fs.SkipDir
		case d.IsDir() || !d.Type().IsRegular():
			return nil
		}
		return see(path)
	})
}

// markdown lists the repository's Markdown files.
func markdown(t *testing.T) []string {
	t.Helper()
	var all []string
	err := walk(func(path string) error {
		if strings.HasSuffix(path, ".md") {
			all = append(all, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestBlocks_AreReadInOrder(t *testing.T) {
	t.Parallel()
	got, err := blocks("# x\n```sh\necho 1\n```\ntext\n```yaml\n# a.yaml\nb: 1\n```\n")
	if err != nil || len(got) != 2 {
		t.Fatalf("%v %v", got, err)
	}
	if got[0] != (block{2, "sh", "echo 1\n"}) || got[0].file() != "" {
		t.Errorf("%+v", got[0])
	}
	if got[1] != (block{6, "yaml", "# a.yaml\nb: 1\n"}) || got[1].file() != "a.yaml" {
		t.Errorf("%+v", got[1])
	}
	for _, text := range []string{"```sh\necho\n", "```sh\n```yaml\n```\n"} {
		if got, err := blocks(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestExcerpt_RepeatsItsFile(t *testing.T) {
	t.Parallel()
	repository := fstest.MapFS{"a/b.go": {Data: []byte("package a\n\nfunc b() {\n}\n\nfunc c() {\n}\n")}}
	for body, wrong := range map[string]string{
		"// a/b.go\nfunc b() {\n}\n":                      "",
		"// a/b.go\nfunc b() {\n}\n// …\nfunc c() {\n}\n": "",
		"// a/b.go\nfunc b() {\n}\nfunc c() {\n}\n":       "does not contain",
		"// a/b.go\nfunc b() {\n}\n// …\nfunc d() {\n}\n": "func d()",
		"// a/c.go\nfunc b() {\n}\n":                      "of no file",
		"func b() {\n}\n":                                 "of no file",
	} {
		err := block{info: excerpt, body: body}.repeats(repository)
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: %v, want %q", body, err, wrong)
		}
	}
}

// text is the contents of a file of the repository.
func text(t *testing.T, path string) string {
	t.Helper()
	all, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}
